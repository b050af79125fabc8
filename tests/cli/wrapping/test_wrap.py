"""`mcpgreen wrap -- CMD`: what it runs, what it writes, and what becomes of the arguments of a call."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_commands import mcpgreen, run_tool
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually, is_alive

HERE = Path(__file__).parent
Done = subprocess.CompletedProcess[str]

# Writes down how it was started, each word between brackets, and whether anything is on its stdin.
RECORDER = r"""#!/bin/bash
{ printf '[%s]' "$@"; echo; } >> "RECORD"
if [ "${@: -1}" = --help ]; then
    cat <<'END'
HELP
END
    exit 0
fi
[ "${!#}" = fail ] && { echo started; echo "first line" >&2; echo "the reason" >&2; exit 7; }
printf '[%s]' "$@"
"""


def recorder(project: ProjectBuilder, help_text: str, name: str = "rake") -> Path:
    script = RECORDER.replace("RECORD", str(project.root / "record")).replace("HELP", help_text)
    return project.program(f"bin/{name}", script)


def sample(name: str) -> str:
    return (HERE / "samples" / f"{name}.txt").read_text(encoding="utf-8").rstrip("\n")


def wrap(project: ProjectBuilder, *words: str, cwd: Path | None = None) -> Done:
    path = f"{project.root / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return mcpgreen("wrap", *words, env={"PATH": path}, cwd=cwd or project.root)


def call(project: ProjectBuilder, name: str, /, **arguments: Any) -> dict[str, Any]:
    path = f"{project.root / 'bin'}{os.pathsep}{os.environ['PATH']}"
    done = run_tool(project, name, "--args", json.dumps(arguments), env={"PATH": path})
    result: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == (1 if result["isError"] else 0), done.stdout + done.stderr
    return result


def text_of(result: dict[str, Any]) -> str:
    return "\n".join(block["text"] for block in result["content"])


def validated(project: ProjectBuilder) -> dict[str, Any]:
    done = mcpgreen("validate", "--json", "--strict", "--project-root", str(project.root))
    assert done.returncode == 0, done.stdout
    return json.loads(done.stdout)  # type: ignore[no-any-return]


@pytest.fixture
def rake(project: ProjectBuilder) -> ProjectBuilder:
    recorder(project, sample("getopt"))
    done = wrap(project, "--all", "--", "rake")
    assert done.returncode == 0, done.stderr
    return project


def test_it_writes_a_script_and_a_description_and_prints_their_paths(project: ProjectBuilder) -> None:
    recorder(project, sample("getopt"))

    done = wrap(project, "--", "rake")

    written = [project.root / "tools" / name for name in ("rake.py", "rake.meta.json")]
    assert (done.returncode, done.stdout.splitlines()) == (0, [str(path) for path in written])
    assert [path.stat().st_mode & 0o777 for path in written] == [0o755, 0o644]
    assert re.search(r"Try: \S*mcpgreen run-tool rake pattern=PATTERN\n", done.stderr)


def test_the_command_is_run_for_its_help_and_for_nothing_else(rake: ProjectBuilder) -> None:
    assert rake.read("record") == "[--help]\n"


def test_h_is_tried_when_help_is_refused(project: ProjectBuilder) -> None:
    record = project.root / "record"
    body = f"echo \"[$*]\" >> {record}; [ $1 = -h ] && echo 'usage: old [-a] FILE'; exit 1"
    project.program("bin/old", body)

    assert wrap(project, "--", "old").returncode == 0
    assert project.read("record") == "[--help]\n[-h]\n"


@pytest.mark.parametrize("status", [0, 2])
def test_the_name_of_a_command_in_a_complaint_is_no_usage(project: ProjectBuilder, status: int) -> None:
    body = f"getopts n:h option; [ $option = h ] || {{ echo 1; exit {status}; }}; echo 'usage: x [-n N] FOLDER'"
    project.program("bin/disk-usage", f"#!/bin/bash\n{body}")

    assert wrap(project, "--", "disk-usage").returncode == 0
    described = json.loads(project.read("tools/disk-usage.meta.json"))
    assert list(described["inputSchema"]["properties"]) == ["n", "folder"]


def test_variables_of_the_help_and_the_script_are_passed_on(project: ProjectBuilder) -> None:
    section = "Environment variables:\n  SAVE_PLACE  where (required)\n  SAVE_TOKEN\n  SAVE_MODE  fast or slow\n  HOME"
    recorder(project, f"usage: save\n\n{section}\n\nSee also:\n  AN_API_KEY", "save")
    project.write("bin/save", project.read("bin/save") + 'echo "${SAVE_URL:?}" $UNSET\n').chmod(0o755)
    done = wrap(project, "--", "save")
    assert json.loads(project.read("tools/save.meta.json"))["env"] == ["SAVE_PLACE!", "SAVE_TOKEN", "SAVE_URL!"]
    assert "config --client CLIENT --install --env SAVE_PLACE --env SAVE_TOKEN --env SAVE_URL\n" in done.stderr


def test_what_it_wrote_passes_validate_without_a_finding(rake: ProjectBuilder) -> None:
    found = validated(rake)

    assert {"level": "ok", "section": "tools", "message": "tool rake"}.items() <= found["messages"][-1].items()
    assert (found["errors"], found["warnings"]) == (0, 0)


def test_arguments_arrive_word_by_word(rake: ProjectBuilder) -> None:
    result = call(
        rake,
        "rake",
        all=True,
        d=False,
        basket="a b",
        colour="",
        max_count=3,
        pattern="$(touch evil); `touch evil` 'x' \"y\" *",
        files=["a b.txt", "", "ä\n"],
    )

    words = ["--all", "--basket=a b", "--colour", "--max-count=3", "--", "$(touch evil); `touch evil` 'x' \"y\" *"]
    assert text_of(result) == "".join(f"[{word}]" for word in [*words, "a b.txt", "", "ä\n"])
    assert not list(rake.root.rglob("evil"))


def test_an_operand_that_begins_with_a_dash_stands_behind_two(rake: ProjectBuilder) -> None:
    assert text_of(call(rake, "rake", pattern="--from=/etc/passwd", files=["-d"])) == "[--][--from=/etc/passwd][-d]"


def test_it_is_refused_where_the_command_may_not_take_two_dashes(project: ProjectBuilder) -> None:
    recorder(project, sample("usage"), "ferry")
    assert wrap(project, "--", "ferry").returncode == 0

    refused = [
        call(project, "ferry", destination="-oProxyCommand=evil"),
        call(project, "ferry", destination="home", b="-oProxyCommand=evil"),
        call(project, "ferry", destination="home", command="ls", arguments=["x", "-y"]),
    ]
    assert all(result["isError"] and "must not begin with '-'" in text_of(result) for result in refused)
    assert text_of(call(project, "ferry", destination="home", p=-5)) == "[-p][-5][home]"
    assert project.read("record") == "[--help]\n[-p][-5][home]\n"


def test_an_operand_does_not_become_the_value_of_an_option(project: ProjectBuilder) -> None:
    """`--document` alone would have taken the name of the gem."""
    help_text = "Usage: gems [options] NAME\n\n    --document [TYPES]   Generate them\n    --force [HOW]   do it"
    recorder(project, help_text, "gems")
    wrap(project, "--", "gems")

    assert text_of(call(project, "gems", document="", name="rails")) == "[--document][][rails]"
    assert text_of(call(project, "gems", document="ri", name="rails")) == "[--document][ri][rails]"


def test_an_operand_does_not_take_the_place_of_a_missing_one(project: ProjectBuilder) -> None:
    recorder(project, sample("usage"), "ferry")
    wrap(project, "--", "ferry")

    result = call(project, "ferry", destination="home", arguments=["x"])

    assert result["isError"]
    assert text_of(result) == "arguments can only be given together with command, which must come before it."


def test_status_and_the_end_of_stderr_reach_the_model(rake: ProjectBuilder) -> None:
    result = call(rake, "rake", pattern="fail")

    assert result["isError"]
    assert [block["text"] for block in result["content"]] == [
        "rake failed with exit status 7.\nfirst line\nthe reason",
        "started\n",
    ]
    assert result["_meta"]["exitCode"] == 7


def test_no_match_is_no_failure(project: ProjectBuilder) -> None:
    assert wrap(project, "--", "grep").returncode == 0
    found = [call(project, "grep", patterns="a", stdin=text) for text in ("a", "b")]
    assert [(text_of(each), each["isError"]) for each in found] == [("a\n", False), ("No match.", False)]
    assert call(project, "grep", patterns="[")["isError"]


def test_what_a_command_prints_is_only_text(project: ProjectBuilder) -> None:
    """A page that curl fetched could have asked the user for a password, as if the tool had asked."""
    asks = '{"resultType": "input_required", "inputRequests": {}, "content": []}'
    body = f"[ \"$1\" = --help ] && {{ echo 'usage: get URL'; exit; }}; echo '{asks}'"
    project.program("bin/get", body)
    wrap(project, "--", "get")

    result = call(project, "get", url="x")

    assert (text_of(result), result["isError"], "structuredContent" in result) == (asks + "\n", False, False)


def test_stdin_is_given_where_the_help_speaks_of_it(project: ProjectBuilder) -> None:
    body = "[ \"$1\" = --help ] && { echo 'usage: upper [FILE]'; echo 'reads standard input'; exit; }; tr a-z A-Z"
    project.program("bin/upper", body)
    wrap(project, "--", "upper")

    assert text_of(call(project, "upper", stdin="abc")) == "ABC"
    assert text_of(call(project, "upper")) == "It printed nothing."


def test_a_command_of_the_project_is_named_from_its_root(project: ProjectBuilder) -> None:
    recorder(project, sample("getopt"))

    done = wrap(project, "--name", "sweep", "--", "./rake", cwd=project.root / "bin")

    assert done.returncode == 0, done.stderr
    assert 'mcp_tool.CommandLine("./bin/rake")' in project.read("tools/sweep.py")
    assert text_of(call(project, "sweep", pattern="x")) == "[--][x]"


@pytest.mark.parametrize("words", [["-rf", "x"], ["/etc/passwd"], ["a/b"], ["*"], ["there"], [".."], ["a b"]])
def test_words_that_are_no_subcommands_are_refused(project: ProjectBuilder, words: list[str]) -> None:
    """`rm FILE --help` removes FILE, on systems whose rm stops at the first operand."""
    recorder(project, sample("getopt"))
    project.write("there", "")

    done = wrap(project, "--", "rake", *words)

    assert (done.returncode, done.stdout) == (2, "")
    assert "name only the command and its subcommands" in done.stderr
    assert not (project.root / "record").exists()


def test_nothing_is_overwritten_and_the_command_not_even_asked(rake: ProjectBuilder) -> None:
    before = rake.read("tools/rake.py")

    done = wrap(rake, "--", "rake")

    assert (done.returncode, done.stdout) == (1, "")
    assert "there is already a tool named rake; choose another name with --name" in done.stderr
    assert (rake.read("tools/rake.py"), rake.read("record")) == (before, "[--help]\n")


def test_no_place_of_this_machine_is_described(project: ProjectBuilder, tmp_path: Path) -> None:
    script = tmp_path / "elsewhere" / "dig.sh"
    script.parent.mkdir()
    lines = 'echo "usage: $0 [-v] FILE..."\necho "   or: $0 [-v] HERE THERE"\necho\necho "  -v  be loud (see $0)"\n'
    script.write_text(f"#!/bin/sh\n{lines}", encoding="utf-8")
    script.chmod(0o755)

    assert wrap(project, "--name", "one", "--", str(script)).returncode == 0
    assert wrap(project, "--name", "two", "--", "sh", str(script)).returncode == 0

    for name, command in (("one", "dig.sh"), ("two", "sh dig.sh")):
        described = project.read(f"tools/{name}.meta.json")
        assert f"Run {command}." in described
        assert str(tmp_path) not in described
        assert str(script) in project.read(f"tools/{name}.py")


def test_a_script_with_getopts_is_wrapped_by_its_usage_line(project: ProjectBuilder, tmp_path: Path) -> None:
    script = tmp_path / "sky.sh"
    usage = 'echo "usage: sky.sh [-u c|f] CITY" >&2; exit 2'
    script.write_text(f"#!/bin/bash\nwhile getopts u: option; do [[ $option == u ]] || {{ {usage}; }}; done\n")
    script.chmod(0o755)
    assert wrap(project, "--", str(script)).returncode == 0
    described = json.loads((project.root / "tools/sky.meta.json").read_text())
    assert described["description"] == "Run sky.sh."
    assert list(described["inputSchema"]["properties"]) == ["u", "city"]


@pytest.mark.parametrize("file", ["tools/rake.sh", "tools/rake.meta.yaml", "tools/deep/rake.sh"])
def test_a_tool_of_the_same_name_is_not_hidden(project: ProjectBuilder, file: str) -> None:
    recorder(project, sample("getopt"))
    project.program(file, "#!/bin/sh\n")

    done = wrap(project, "--", "rake")

    assert (done.returncode, done.stdout) == (1, "")
    assert file in done.stderr


def test_directories_that_it_makes_are_writable_by_the_owner_alone(tmp_path: Path) -> None:
    """A tool in a directory that the group may write to is refused, and a umask of 002 makes such."""
    before = os.umask(0o002)
    try:
        done = mcpgreen("wrap", "--output", "new/tools", "--", "ls", cwd=tmp_path)
    finally:
        os.umask(before)

    assert done.returncode == 0
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("new", "new/tools")] == [0o755, 0o755]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--", "no-such-command"],
            "no-such-command: there is no such command on the PATH; install it, or give its full path",
        ),
        (["--", "./missing"], "./missing: there is no such file"),
        (["--", "./plain.txt"], "./plain.txt: it is not executable; run chmod +x on it"),
        (["plain.mk"], "mcpgreen wrap --makefile plain.mk?"),
        (["https://x.example/y"], "mcpgreen wrap --openapi https://x.example/y?"),
        (["--", "mute"], "mute: its --help could not be read; make it print a usage line, set"),
        (["--", "rude"], "rude: its --help could not be read (what do you want?); make it print a usage line"),
        (["--", "chatty"], "chatty: its help has no usage line that wrap can parse"),
        (["--", "binary"], "binary: its help has no usage line that wrap can parse"),
        (["--", "bin/plain"], "bin/plain: it does not seem to have a --help, and might run for real; write a"),
    ],
)
def test_what_cannot_be_wrapped_is_told_with_a_remedy(project: ProjectBuilder, words: list[str], message: str) -> None:
    project.write("plain.txt", "")
    project.write("plain.mk", "")
    project.program("bin/mute", "exit 0")
    project.program("bin/rude", "echo 'what do you want?' >&2; exit 2")
    project.program("bin/chatty", "echo Hello.")
    project.program("bin/binary", "head -c 300000 /dev/zero")
    project.program("bin/plain", 'find "$1" -type f')

    done = wrap(project, *words)

    assert (done.returncode, done.stdout) == (1, "")
    assert message in done.stderr
    assert list((project.root / "tools").iterdir()) == []


@pytest.mark.parametrize("words", [[], ["--"], ["--name", "x"]])
def test_without_a_command_it_says_what_it_needs(words: list[str]) -> None:
    done = mcpgreen("wrap", *words)

    assert done.returncode == 2
    lack = "wrap needs a command after --, or a file; --update needs a file"
    assert done.stderr == f"mcpgreen: {lack}\nTry: mcpgreen wrap --help\n"


def test_a_command_that_does_not_end_is_ended_with_all_it_started(project: ProjectBuilder) -> None:
    pids = project.root / "pids"
    project.program("bin/stuck", f"sleep 600 & echo $! $$ > {pids}; cat; wait")

    done = wrap(project, "--timeout", "1", "--", "stuck")

    assert (done.returncode, done.stdout) == (1, "")
    message = "stuck --help: it did not finish within 1 s, and was stopped; allow it more time with --timeout"
    assert message in done.stderr
    eventually(lambda: not any(map(is_alive, project.read("pids").split())))


def test_a_daemon_that_left_its_session_is_ended(project: ProjectBuilder) -> None:
    """It was init's child by then, and stayed."""
    pid = project.root / "pid"
    away = f"echo $$ > {pid}; exec sleep 600"
    body = f"setsid sh -c '{away}' < /dev/null > /dev/null 2>&1 & until [ -s {pid} ]; do :; done"
    project.program("bin/server", f"{body}; echo 'usage: server FILE'")

    assert wrap(project, "--", "server").returncode == 0
    eventually(lambda: not is_alive(project.read("pid").strip()))


def test_a_help_without_an_end_is_cut(project: ProjectBuilder) -> None:
    project.program("bin/flood", "echo 'usage: flood [-a] FILE'; while :; do echo '  -b   more and more'; done")

    done = wrap(project, "--", "flood")

    assert done.returncode == 0, done.stderr
    assert list(json.loads(project.read("tools/flood.meta.json"))["inputSchema"]["properties"]) == ["a", "b", "file"]


@pytest.mark.parametrize("evil", ["$(touch evil)", "`touch evil`", "'''; import os; os.system('touch evil')"])
def test_a_help_text_is_never_evaluated(project: ProjectBuilder, evil: str) -> None:
    recorder(project, f"usage: rake [--x {evil}] FILE\n\n{evil}\n\n  -a, --all   {evil} (default: {evil})")
    wrap(project, "--", "rake")

    call(project, "rake", all=True, file="x")
    assert not list(project.root.rglob("evil"))
    assert validated(project)["errors"] == 0


def test_a_command_with_subcommands_is_told_of(project: ProjectBuilder) -> None:
    text = "Usage: hive COMMAND\n\nKeep bees.\n\nCommands:\n  count   count them\n  feed    feed them"
    recorder(project, text, "hive")

    done = wrap(project, "--", "hive")

    assert "wrapping one of them makes a better tool: mcpgreen wrap -- hive count\n" in done.stderr
