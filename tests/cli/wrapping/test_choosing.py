"""Which arguments `wrap` chooses, with help texts laid out as those of usual commands, and how a person chooses."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import wave
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from mcpgreen.cli.wrapping.choosing import Choice, choose, is_risky, rank
from mcpgreen.cli.wrapping.reading.help_text import read_help
from mcpgreen.cli.wrapping.reading.options import Option
from mcpgreen.cli.wrapping.reading.value_types import words_in
from mcpgreen.cli.wrapping.tool_file import Blueprint, annotations_of, blueprint_of, description_of
from mcpgreen.errors import UsageError
from tests.cli.wrapping.test_wrap import call, recorder, text_of, wrap
from tests.support.project import ProjectBuilder
from tests.support.terminal import at_terminal

SAMPLES = Path(__file__).parent / "samples" / "commands"
RUNNING_OR_WRITING = words_in(
    "pre output ext_diff textconv to_command checkpoint_action use_compress_program info_script rmt_command index_file "
    "rsh_command volno_file delete remove_files remote_name upload_file exec execdir fprint fprintf fls rsh rsync_path "
    "remote_option log_file write_batch backup_dir cidfile entrypoint health_cmd privileged volume mount cap_add "
    "del files_from listed_incremental absolute_names use_api_socket pid ipc userns cgroupns device_cgroup_rule"
)


class Expected(NamedTuple):
    description: str  # how it begins
    arguments: str  # some of those that have to be there; the operands, in their order, behind a slash
    hints: str = ""


COMMANDS = {
    "rg": Expected(
        "Ripgrep (rg) looks for a pattern", "ignore_case glob context type / pattern! paths", "readOnlyHint"
    ),
    "git log": Expected(
        "List the commits of a history.",
        "since until author grep max_count patch / revision_range paths",
        "readOnlyHint",
    ),
    "tar": Expected("GNU 'tar' puts files into an archive", "create list extract file directory gzip / files"),
    "curl": Expected("Run curl", "data include user / url!", "openWorldHint"),
    "ffmpeg": Expected("Converter for sound and films.", "i c t ss vf / outfiles!"),
    "kubectl get": Expected(
        "Print resources of a cluster.", "selector output all_namespaces / type names", "readOnlyHint"
    ),
    "jq": Expected("Filter for JSON on the command line.", "c r s n arg / jq_filter! files", "readOnlyHint"),
    "find": Expected("Run find", "name type size mtime maxdepth / paths", "readOnlyHint"),
    "rsync": Expected(
        "Rsync copies files between directories",
        "archive dry_run exclude / srcs! dest!",
        "destructiveHint openWorldHint",
    ),
    "docker run": Expected("Start a fresh container", "rm env name detach / image! command args", "openWorldHint"),
    "docker ps": Expected("Print the containers of this host.", "all filter format last /", "readOnlyHint"),
}


def read(command: str, **how: Any) -> tuple[Blueprint, Choice]:
    words = command.split()
    documented = read_help((SAMPLES / f"{'-'.join(words)}.txt").read_text(encoding="utf-8"), words)
    choice = choose(documented, **{"only": None, "takes_all": False, "asks": False, **how})
    blueprint = blueprint_of("-".join(words), words, choice.documented, asked_by="--help")
    return blueprint._replace(annotations=annotations_of(words, is_harmless=choice.is_harmless)), choice


@pytest.mark.parametrize("command", COMMANDS)
def test_a_usual_command_becomes_a_small_tool(command: str) -> None:
    made, _ = read(command)
    listed = json.loads(description_of(made))
    names, operands = (part.split() for part in COMMANDS[command].arguments.split("/"))

    assert len(made.arguments) <= 15
    assert "(Runs" not in made.description or not made.description.startswith("Run ")  # the same thing twice
    assert len(json.dumps(listed)) / 4 <= 1500  # about four characters make a token
    assert made.description.startswith(COMMANDS[command].description)
    assert set(names) <= set(listed["inputSchema"]["properties"])
    found = [each.name + "!" * each.is_required for each in made.arguments if each.method == "operand"]
    assert found == operands
    risky = RUNNING_OR_WRITING - ({"output"} if command == "kubectl get" else set())  # there it is the format
    assert not risky & set(listed["inputSchema"]["properties"])
    assert " ".join(listed.get("annotations", {})) == COMMANDS[command].hints


@pytest.mark.parametrize("command", COMMANDS)
def test_even_all_options_are_without_the_risky_ones(command: str) -> None:
    made, choice = read(command, takes_all=True)

    assert choice.left == ()
    assert not RUNNING_OR_WRITING - {"output"} & {each.name for each in made.arguments}


def test_a_risky_option_is_taken_by_name_and_the_tool_no_longer_read_only() -> None:
    made, choice = read("rg", only=["--pre", "pattern", "i", "word_regexp"])

    assert [each.name for each in made.arguments] == ["ignore_case", "pre", "word_regexp", "pattern"]
    assert (dict(made.annotations), choice.missing) == ({}, ())
    assert read("rg", only=["glob"])[1].missing == ("PATTERN",)


@pytest.mark.parametrize(
    ("command", "only", "names"),
    [
        ("tar", "create,file,files", "create file files"),
        ("tar", "-f,FILE", "file files"),
        ("tar", "--file", "file"),
        ("rg", "files,pattern,stdin", "files pattern stdin"),
    ],
)
def test_a_name_is_that_of_the_tool_first_and_then_of_the_help(command: str, only: str, names: str) -> None:
    assert [each.name for each in read(command, only=only.split(","))[0].arguments] == names.split()


def test_with_an_option_that_replaces_an_operand_the_operand_is_not_required() -> None:
    made, choice = read("rg", only=["files", "pattern", "paths"])

    assert ([each.name for each in made.arguments if each.is_required], choice.missing) == ([], ())


def test_a_name_that_is_unknown_is_refused_with_a_suggestion() -> None:
    with pytest.raises(UsageError, match=r"--only ignore-cas: the command has no such .*did you mean ignore-case"):
        read("rg", only=["ignore-cas"])


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        (Option(("--lister",), ("PROG",)), True),
        (Option(("-F",), ("configfile",)), True),
        (Option(("--prune",), text="Automatically delete resource objects"), True),
        (Option(("--filter",), ("X",), text="Pipe the output through the given program"), True),
        (Option(("--x",), text="Run a shell command after each file"), True),
        (Option(("--x",), ("NAME",), text="program to sort with"), True),
        (Option(("--x",), ("FILE",), text="Write a summary to FILE instead of stdout"), True),
        (Option(("-o",), ("FILE",), text="where the result goes"), True),
        (Option(("-o", "--output"), ("FORMAT",), text="Output format"), False),
        (Option(("-o",), text="Show only what matches"), False),
        (Option(("--config",), ("FILE",)), True),
        (Option(("-filter_script",), ("filename",)), True),
        (Option(("--unzip-command",), ("X",)), True),
        (Option(("--ignore-command-error",)), False),
        (Option(("--pid",), ("string",), text="PID namespace to use"), True),
        (Option(("-p", "--pid"), ("PIDLIST",), text="Select by process ID"), False),
        (Option(("--delete-after",)), True),
        (Option(("-p",), ("name",), text="Early-load given plugin module name"), True),
        (Option(("--glob",), ("GLOB",), text="Files on the command line override it."), False),
        (Option(("--rm",), text="Remove the container when it exits"), False),
    ],
)
def test_what_an_option_could_do_is_seen_in_its_name_and_text(option: Option, expected: bool) -> None:
    assert is_risky(option) is expected


def test_shown_usual_and_short_options_come_first() -> None:
    options = [Option((name,)) for name in ("--odd", "--no-odd", "--name", "--in-example")]
    options.append(Option(("-s", "--short"), text="--short=0 is the same as --odd"))
    ranked = " ".join(option.name for option in rank(options, {"--in-example"}))
    assert ranked == "--name --in-example --short --odd --no-odd"


@pytest.mark.parametrize(
    ("page", "text"),
    [
        (".TH RAKE 1\n.SH NAME\ngather \\- gather \\fBleaves\\fP\n.SH SYNOPSIS\n", "Gather leaves. (Runs gather.)"),
        (".Dd today\n.Sh NAME\n.Nm rake\n.Nd gather leaves\n", "Gather leaves. (Runs gather.)"),
        ("nothing of the kind", "Run gather."),
    ],
)
def test_the_manual_says_what_the_help_does_not(project: ProjectBuilder, page: str, text: str) -> None:
    recorder(project, "gather 3.1\nAda Example <ada@example.org>\n\nUsage: gather [-a] FILE\n", "gather")
    project.write("share/man/man1/gather.1", page)

    assert wrap(project, "--", "gather").returncode == 0
    assert json.loads(project.read("tools/gather.meta.json"))["description"] == text


MANY = "Usage: rake [options] TREE\n\nGather leaves.\n\n" + "".join(
    f"  -{letter}, --long-{letter}   does {letter}\n" for letter in "abcdefghijklmnpqrstuvwxyz"
)
MANY += "  -o FILE   write to FILE\n"


def properties(project: ProjectBuilder) -> list[str]:
    return list(json.loads(project.read("tools/rake.meta.json"))["inputSchema"]["properties"])


def test_what_was_left_out_is_said_with_how_to_get_it(project: ProjectBuilder) -> None:
    recorder(project, MANY)

    done = wrap(project, "--", "rake")

    assert re.search(r"Left out 12: --long-n, .*\(choose with --only NAME,... or take all with --all\)\n", done.stderr)
    assert "Left out 1: -o (they can run programs, or write or delete files; take one with --only)\n" in done.stderr
    assert properties(project) == [*(f"long_{letter}" for letter in "abcdefghijklm"), "tree"]


def test_one_argument_and_one_guess_are_said_as_one(project: ProjectBuilder) -> None:
    recorder(project, "Usage: rake [-n N]\n\n  -n N   how deep\n")

    assert "rake: 1 argument, with 1 guess to check. Try: " in wrap(project, "--", "rake").stderr


@pytest.mark.parametrize(
    ("typed", "names"),
    [
        (["\n"], [*(f"long_{letter}" for letter in "abcdefghijklm"), "tree"]),
        (["3-4 no\n", "2,5-99 99\n", "2\n", "\n"], [*(f"long_{letter}" for letter in "npqrstuvwxyz"), "tree"]),
    ],
)
def test_a_person_at_a_terminal_ticks_the_arguments(
    project: ProjectBuilder, typed: list[str], names: list[str]
) -> None:
    recorder(project, MANY)

    answers = [("[done]: ", each) for each in typed]
    seen = at_terminal(["wrap", "--", "bin/rake"], cwd=project.root, answers=answers)

    assert seen.status == 0
    assert "   1 [x] TREE  \n   2 [ ] -o  (risky) write to FILE\n" in seen.text
    assert "   3 [x] --long-a  does a\n" in seen.text
    for word in ("no", "99"):
        told = f"{word} is not a number in the list. Type numbers, such as 3 7-9, or press Enter.\n"
        assert (told in seen.text) == (len(typed) > 1)
    assert properties(project) == names


class Real(NamedTuple):
    command: str
    arguments: dict[str, Any]
    answer: str  # a pattern


@pytest.fixture(scope="module")
def wrapped(tmp_path_factory: pytest.TempPathFactory) -> ProjectBuilder:
    project = ProjectBuilder(tmp_path_factory.mktemp("wrapped"))
    project.write("files/a.txt", "one apple\nTwo pears\n")
    project.write("files/b.json", '{"name": "Ada", "age": 36}')
    with wave.open(str(project.root / "files" / "a.wav"), "wb") as sound:
        sound.setparams((1, 2, 8000, 8000, "NONE", ""))
        sound.writeframes(bytes(16000))
    git = ["git", "-C", str(project.root), "-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    if shutil.which("git"):
        for words in (["init", "-q"], ["add", "files"], ["commit", "-qm", "Add files"]):
            subprocess.run([*git, *words], check=True)
    return project


@pytest.mark.parametrize(
    "real",
    [
        Real("rg", {"pattern": "two", "paths": ["files"], "ignore_case": True}, "Two pears"),
        Real(
            "tar",
            {"create": True, "file": "files/a.tar", "directory": "files", "files": ["a.txt"]},
            "It printed nothing",
        ),
        Real("tar", {"list": True, "file": "files/a.tar"}, r"^a\.txt$"),
        Real("tar", {"list": True, "file": "localhost:a.tar"}, "localhost.*: Cannot open: No such file"),  # without rsh
        Real("jq", {"c": True, "jq_filter": "{name}", "files": ["files/b.json"]}, '^{"name":"Ada"}$'),
        Real("find", {"paths": ["files"], "name": "*.json", "type": "f"}, r"^files/b\.json$"),
        Real("rsync", {"archive": True, "srcs": ["files/a.txt"], "dest": "files/copy.txt"}, "It printed nothing"),
        Real("curl", {"url": "http://127.0.0.1:9/"}, "curl failed with exit status 7"),
        Real("ffmpeg", {"i": ["files/a.wav"], "t": "0.1", "outfiles": ["files/b.wav"]}, "to 'files/b.wav'"),
        Real("git log", {"max_count": 1, "author": "Ada", "revision_range": "HEAD", "paths": ["files"]}, "Add files"),
        Real("kubectl get", {"type": "pods", "output": "name"}, "refused|connect|config|pod"),  # there is no cluster
        Real("docker ps", {"all": True, "last": 1}, "CONTAINER|[Cc]onnect|daemon"),
    ],
    ids=lambda real: real.command,
)
def test_a_wrapped_command_is_called_with_real_arguments(wrapped: ProjectBuilder, real: Real) -> None:
    program, name = real.command.split()[0], real.command.replace(" ", "-")
    if shutil.which(program) is None:
        pytest.skip(f"there is no {program}")
    if not (wrapped.root / "tools" / f"{name}.py").exists():
        assert wrap(wrapped, "--", *real.command.split()).returncode == 0

    result = call(wrapped, name, **real.arguments)

    assert re.search(real.answer, text_of(result), re.MULTILINE), text_of(result)
    assert not re.search(r"unknown (?:option|flag|shorthand)|unrecognized", text_of(result))
