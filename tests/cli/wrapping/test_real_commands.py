"""`wrap` on the commands of this machine: the types of their options, and that they were asked for their help alone.

What the options take is written in real_commands.txt, by a reader of the help texts.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cli.test_commands import mcpgreen
from tests.support.project import ProjectBuilder
from tests.support.wire import clean_environment

HERE = Path(__file__).parent
FEWEST_COMMANDS = 25
FEWEST_RIGHT = 0.85
PLACES = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
CALL = re.compile(r'^command\.(?:flag|count|option)\("([^"]+)", "([^"]+?)(?:=?\{\}|=)?"', re.MULTILINE)


class Wrapped(NamedTuple):
    """One command: what a reader saw, and what `wrap` wrote."""

    expected: dict[str, str]  # only of options that this version documents
    found: dict[str, str]


def expectations() -> dict[str, dict[str, str]]:
    """By command and option: the JSON type."""
    table: dict[str, dict[str, str]] = {}
    kind = ""
    for line in (HERE / "real_commands.txt").read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        if not line.startswith(" "):
            rows = table.setdefault(line, {})
            continue
        if not line.startswith("    "):
            kind, _, line = line.strip().partition(":")
        rows.update(dict.fromkeys(line.split(), kind))
    return table


def documents(text: str, option: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", text) is not None


class Machine:
    """All commands that are here, wrapped. Each is found behind a script that writes down how it is started."""

    def __init__(self, directory: Path) -> None:
        self.project = ProjectBuilder(directory / "project")
        self.record = directory / "record"
        self.absent: list[str] = []
        self.wrapped: dict[str, Wrapped] = {}
        self.failures: dict[str, str] = {}
        shims = directory / "shims"
        shims.mkdir()
        environ = {"PATH": f"{shims}{os.pathsep}{PLACES}"}
        for command, expected in expectations().items():
            program = command.split()[0]
            real = shutil.which(program, path=PLACES)
            text = self._help(command, environ) if real else ""
            if not re.search("(?i)usage|synopsis", text):
                self.absent.append(command)  # or a script of a version manager, with nothing behind it
                continue
            shim = shims / program
            shim.write_text(f"#!/bin/sh\necho \"{program} $*\" >> '{self.record}'\nexec '{real}' \"$@\"\n")
            shim.chmod(0o755)
            done = mcpgreen("wrap", "--timeout", "60", "--", *command.split(), env=environ, cwd=self.project.root)
            if done.returncode != 0:
                self.failures[command] = done.stderr
                continue
            self.wrapped[command] = self._wrapped(Path(done.stdout.splitlines()[0]), expected, text)

    def _wrapped(self, script: Path, expected: dict[str, str], text: str) -> Wrapped:
        described = json.loads(script.with_suffix(".meta.json").read_text(encoding="utf-8"))
        properties = described["inputSchema"]["properties"]
        calls = CALL.findall(script.read_text(encoding="utf-8"))
        found = {option: properties[name]["type"] for name, option in calls}
        return Wrapped({name: kind for name, kind in expected.items() if documents(text, name)}, found)

    def _help(self, command: str, environ: dict[str, str]) -> str:
        """What a reader would have read, without the shims."""
        texts = []
        for option in ("--help", "-h") if command.startswith("git ") else ("--help",):
            done = subprocess.run(
                [*command.split(), option],
                env=clean_environment({**environ, "PATH": PLACES, "PAGER": "cat", "MANPAGER": "cat"}),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                timeout=60,
            )
            texts.append((done.stdout + done.stderr).decode("utf-8", "replace"))
        return "\n".join(texts)


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    return Machine(tmp_path_factory.mktemp("machine"))


def test_most_options_of_real_commands_have_the_right_type(machine: Machine) -> None:
    assert machine.failures == {}
    assert len(machine.wrapped) >= FEWEST_COMMANDS, f"not here: {', '.join(machine.absent)}"
    documented = right = 0
    wrong = {}
    for command, wrapped in machine.wrapped.items():
        misses = {
            name: (kind, wrapped.found.get(name))
            for name, kind in wrapped.expected.items()
            if wrapped.found.get(name) != kind
        }
        documented += len(wrapped.expected)
        right += len(wrapped.expected) - len(misses)
        if misses:
            wrong[command] = misses

    print(f"{right} of {documented} options of {len(machine.wrapped)} commands; not here: {machine.absent}")
    assert documented > 500
    assert right / documented >= FEWEST_RIGHT, wrong


def test_each_real_command_has_most_of_its_options(machine: Machine) -> None:
    """None is a failure that the others make up for."""
    shares = {
        command: sum(wrapped.found.get(name) == kind for name, kind in wrapped.expected.items()) / len(wrapped.expected)
        for command, wrapped in machine.wrapped.items()
        if wrapped.expected
    }

    assert {command: share for command, share in shares.items() if share < FEWEST_RIGHT} == {}


def test_each_real_command_was_run_once_and_for_its_help_alone(machine: Machine) -> None:
    started = machine.record.read_text(encoding="utf-8").splitlines()
    # The launcher of one command may start another, as npm starts node.
    own = [line for line in started if " ".join(line.split()[:-1]) in machine.wrapped]

    assert sorted(line for line in own if line.endswith("--help")) == sorted(
        f"{each} --help" for each in machine.wrapped
    )
    others = [line for line in own if not line.endswith("--help")]
    assert all(line.endswith(" -h") for line in others), others


def test_all_that_was_written_for_real_commands_is_valid(machine: Machine) -> None:
    done = mcpgreen("validate", "--json", "--strict", "--project-root", str(machine.project.root))
    report = json.loads(done.stdout)

    assert (done.returncode, report["errors"], report["warnings"]) == (0, 0, 0), report
    valid = {message["message"] for message in report["messages"] if message["level"] == "ok"}
    names = {re.sub("[^A-Za-z0-9_]+", "-", command.replace(" -m", "")) for command in machine.wrapped}
    assert {f"tool {name}" for name in names} <= valid
