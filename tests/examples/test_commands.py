"""`examples/run`, `examples/send` and `examples/check-env`, as somebody at a terminal starts them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from examples.harness import commands, fitness, ladder, wire
from examples.harness.ladder import EXAMPLES, Example, all_examples, find
from tests.examples.support import our_python
from tests.support.programs import completed
from tests.support.wire import clean_environment

COMMANDS = ("run", "send", "check-env")
NAP = '{"method": "tools/call", "params": {"name": "nap", "arguments": {"seconds": %d}}}'


def typed(command: str, *arguments: str, stdin: str = "", path: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = clean_environment(our_python())
    return completed(
        [EXAMPLES / command, *arguments], input=stdin, env={**environment, "PATH": path or environment["PATH"]}, cwd="/"
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command: str) -> None:
    done = typed(command, "--help")

    assert (done.returncode, done.stderr) == (0, "")
    assert f"Usage: examples/{command} " in done.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_an_unknown_example_is_named_with_those_that_there_are(command: str) -> None:
    done = typed(command, "99")

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"examples/{command}: there is no example '99'. There are:\n  00-hello-tool\n")


@pytest.mark.parametrize("wanted", ["1", "01", "args-and-validation", "01-args-and-validation"])
def test_an_example_is_found_by_number_and_by_name(wanted: str) -> None:
    assert find(wanted).name == "01-args-and-validation"


def test_a_program_that_is_missing_is_named_instead_of_a_conversation(tmp_path: Path) -> None:
    path = without_bash(tmp_path)

    done = typed("run", "01", path=path)

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "examples/run: 01-args-and-validation needs bash; see examples/check-env.\n"


def test_a_server_that_says_less_than_the_page_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Closing the pipe that a thread still reads kept the command waiting for ever."""
    page = Path(shutil.copytree(find("07").folder, tmp_path / "07-prompts-and-rendering")) / "README.md"
    page.write_text(page.read_text(encoding="utf-8").replace("<-- ", "<-- \n<-- ", 1), encoding="utf-8")
    monkeypatch.setattr(ladder, "EXAMPLES", tmp_path)
    monkeypatch.setattr(wire, "PATIENCE_SECS", 1.0)
    for variable, value in our_python().items():
        monkeypatch.setenv(variable, value)

    status = commands.run(["07"], "")

    assert status == 1
    assert "07-prompts-and-rendering: the server said nothing for 1 s" in capsys.readouterr().err


def test_send_takes_lines_from_stdin_and_adds_what_is_left_out() -> None:
    done = typed("send", "04", stdin=f'{NAP % 0}\n\n{{"method": "ping", "id": "mine"}}\n')

    assert done.returncode == 0
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["id"] for answer in answers] == [1, "mine"]


def test_a_line_that_is_no_json_is_refused_before_anything_is_sent() -> None:
    done = typed("send", "00", "tools/list")

    assert (done.returncode, done.stdout) == (2, "")
    assert "line 1 is not JSON" in done.stderr


def test_check_env_says_which_examples_lack_a_program(tmp_path: Path) -> None:
    done = typed("check-env", "00", "01", path=without_bash(tmp_path))

    assert done.returncode == 1
    assert "missing  bash (apt install bash, or brew install bash), for 01\n" in done.stdout
    assert done.stdout.endswith("Cannot be run: 01-args-and-validation\n")


def test_damaged_copies_are_noticed(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(find("00").folder, tmp_path / "00-hello-tool"))
    script = folder / "tools" / "hello.sh"
    script.write_bytes(script.read_bytes().replace(b"\n", b"\r\n"))
    script.chmod(0o644)

    report = fitness.report_on([Example(folder)])

    damages = [line for line in report.lines if line.startswith("damaged  00-hello-tool/tools/hello.sh ")]
    assert ["Windows line endings" in damages[0], "not executable" in damages[1]] == [True, True]
    assert not report.is_good


def test_every_script_of_the_examples_is_executable() -> None:
    lost = [path for path in EXAMPLES.rglob("*") if path.is_file() and is_script(path) and not os.access(path, os.X_OK)]

    assert lost == []
    assert all_examples()


def without_bash(directory: Path) -> str:
    """A PATH with what the commands themselves need."""
    (directory / "sh").symlink_to("/bin/sh")
    (directory / "python3").symlink_to(Path(sys.executable).resolve())
    return str(directory)


def is_script(path: Path) -> bool:
    with open(path, "rb") as file:
        return file.read(2) == b"#!"
