"""`mcpgreen completion`: what a shell offers next."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mcpgreen.cli.commands import COMMANDS
from mcpgreen.cli.completion import SCRIPTS
from tests.cli.test_commands import mcpgreen
from tests.support.project import ProjectBuilder


@pytest.fixture
def greeter(project: ProjectBuilder) -> ProjectBuilder:
    schema = {"type": "object", "properties": {"name": {"type": "string"}, "times": {"type": "integer"}}}
    project.tool("greet", "echo hi", inputSchema=schema)
    project.tool("grow", "echo hi")
    project.prompt("ask.txt", "{{what}}", arguments=[{"name": "what"}])
    project.resource("about.txt", "x", uri="example://about")
    return project


def words(project: ProjectBuilder, *typed: str) -> list[str]:
    done = mcpgreen("completion", "words", "--", *typed, cwd=project.root)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ([""], [command.name for command in COMMANDS]),
        (["va"], ["validate"]),
        (["run-tool", ""], ["greet", "grow"]),
        (["run-tool", "gre"], ["greet"]),
        (["run-tool", "greet", ""], ["name=", "times="]),
        (["run-tool", "greet", "t"], ["times="]),
        (["run-tool", "--pl"], ["--plain"]),
        (["prompt", ""], ["ask"]),
        (["prompt", "ask", ""], ["what="]),
        (["read", ""], ["example://about"]),
        (["list", "t"], ["tools", "templates"]),
        (["registry", ""], ["refresh", "status"]),
        (["config", "--client", "cu"], ["cursor"]),
        (["doctor", "--as", "z"], ["zed"]),
        (["new", "demo", "--lang", "p"], ["python", "perl"]),
        (["scaffold", "t"], ["tool", "template", "test"]),
        (["fly", ""], []),
    ],
)
def test_what_may_come_next(greeter: ProjectBuilder, typed: list[str], found: list[str]) -> None:
    assert words(greeter, *typed) == found


def test_without_a_project_there_are_no_names(tmp_path: Path) -> None:
    done = mcpgreen("completion", "words", "--", "run-tool", "", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "")


def test_bash_completes_with_it(greeter: ProjectBuilder, tmp_path: Path) -> None:
    command = tmp_path / "mcpgreen"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m mcpgreen "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    script = 'source /dev/stdin; COMP_WORDS=(mcpgreen run-tool gre); COMP_CWORD=2; _mcpgreen; echo "${COMPREPLY[*]}"'
    path = f"{tmp_path}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", script],
        input=SCRIPTS["bash"],
        capture_output=True,
        text=True,
        cwd=greeter.root,
        env={"PATH": path},
        check=False,
    )
    assert (done.stdout, done.returncode) == ("greet\n", 0)


@pytest.mark.parametrize("shell", list(SCRIPTS))
def test_the_script_of_each_shell(shell: str) -> None:
    assert mcpgreen("completion", shell).stdout == SCRIPTS[shell]
