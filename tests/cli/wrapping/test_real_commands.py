"""`wrap` on the commands of this machine: the types of their options, and that they were asked for their help alone.

What the options take is written in real_commands.txt, by a reader of the help texts. A command that is not here is
passed over, and so is an option that its version does not have.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from tests.cli.test_commands import mcpgreen
from tests.cli.wrapping.expected_commands import Command, Tool, documented, expected_commands, is_default, tool_of
from tests.support.project import ProjectBuilder

FEWEST_COMMANDS = 25
FEWEST_OPTIONS = 500
FEWEST_RIGHT = 0.85
PLACES = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

# Stands before a command: writes down how it is started and what it says, and says it.
SHIM = """#!/bin/sh
echo "{program} $*" >> '{record}'
'{real}' "$@" > '{said}.out' 2> '{said}.err'
status=$?
cat '{said}.out'
cat '{said}.err' >&2
exit $status
"""


class Machine:
    """All commands that are here, wrapped."""

    def __init__(self, directory: Path) -> None:
        self.project = ProjectBuilder(directory / "project")
        self.record = directory / "record"
        self.absent: dict[str, str] = {}  # with the reason
        self.failures: dict[str, str] = {}
        self.wrapped: dict[str, tuple[Command, Tool]] = {}
        shims = directory / "shims"
        shims.mkdir()
        for command, expected in expected_commands().items():
            program = command.split()[0]
            real = shutil.which(program, path=PLACES)
            if real is None:
                self.absent[command] = f"there is no {program} on the PATH"
                continue
            said = directory / re.sub(r"\W+", "-", command)
            (shims / program).write_text(SHIM.format(program=program, record=self.record, real=real, said=said))
            (shims / program).chmod(0o755)
            self._wrap(command, expected, said, path=f"{shims}{os.pathsep}{PLACES}")

    def _wrap(self, command: str, expected: Command, said: Path, *, path: str) -> None:
        words = command.split()
        done = mcpgreen("wrap", "--all", "--timeout", "60", "--", *words, env={"PATH": path}, cwd=self.project.root)
        files = [said.with_name(f"{said.name}.{stream}") for stream in ("out", "err")]
        text = "\n".join(file.read_text(encoding="utf-8", errors="replace") for file in files)
        if not re.search("(?i)usage|synopsis", text):
            self.absent[command] = (
                f"{command} is not there: {text.strip()[:100]}"  # such as a stub of a version manager
            )
        elif done.returncode != 0:
            self.failures[command] = done.stderr
        else:
            self.wrapped[command] = documented(expected, text, words), tool_of(Path(done.stdout.splitlines()[0]))


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    return Machine(tmp_path_factory.mktemp("machine"))


def test_most_options_of_real_commands_have_the_right_type(machine: Machine) -> None:
    """The right values, too, where the help names them."""
    assert machine.failures == {}
    assert len(machine.wrapped) >= FEWEST_COMMANDS, machine.absent
    total = 0
    wrong = []
    for command, (expected, tool) in machine.wrapped.items():
        total += len(expected.options)
        for option in expected.options:
            schema = next((tool.options[name] for name in option.names if name in tool.options), None)
            if not option.is_met_by(schema):
                wrong.append((command, *option, schema))

    share = 1 - len(wrong) / total
    print(f"{share:.1%} of {total} options of {len(machine.wrapped)} commands; not here: {machine.absent}")
    assert total >= FEWEST_OPTIONS
    assert share >= FEWEST_RIGHT, wrong


def test_most_defaults_and_operands_of_real_commands_are_right(machine: Machine) -> None:
    total = 0
    wrong = []
    for command, (expected, tool) in machine.wrapped.items():
        total += len(expected.defaults) + bool(expected.operands)
        for name, value in expected.defaults.items():
            if not is_default(tool.options.get(name), value):
                wrong.append((command, name, value))
        if expected.operands and tool.operands != expected.operands:
            wrong.append((command, "operands", str(tool.operands)))

    assert 1 - len(wrong) / total >= FEWEST_RIGHT, wrong


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
