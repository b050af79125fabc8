"""`mcpgreen completion`: what a shell offers next."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from mcpgreen.cli.commands import COMMANDS
from mcpgreen.cli.completion import SHELLS
from mcpgreen.cli.making.drafts import filled
from tests.cli.test_commands import mcpgreen
from tests.support.prerequisites import require_program
from tests.support.programs import completed
from tests.support.project import ProjectBuilder
from tests.support.terminal import at_terminal


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
        (["tasks", "c"], ["cancel", "clear"]),
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
    done = completed(["bash", "-c", script], input=filled("completion/bash"), cwd=greeter.root, env={"PATH": path})
    assert (done.stdout, done.returncode) == ("greet\n", 0)


ODD = "$(touch evil);`touch evil`&'a b\"*"
INSTALLED = {
    # As the help of the command says it, for a user who has nothing else.
    "bash": "mkdir -p $HOME; mcpgreen completion bash >> $HOME/.bashrc; exec bash --rcfile $HOME/.bashrc -i",
    "zsh": "mkdir -p $HOME/f; mcpgreen completion zsh > $HOME/f/_mcpgreen; "
    "echo 'PS1=; fpath=($HOME/f $fpath); autoload -Uz compinit; compinit -u' > $HOME/.zshrc; exec zsh -i",
    "fish": "mkdir -p $HOME/.config/fish/completions; "
    "mcpgreen completion fish > $HOME/.config/fish/completions/mcpgreen.fish; exec fish -i",
}


@pytest.mark.parametrize("shell", list(INSTALLED))
def test_what_a_tab_inserts_is_one_word(project: ProjectBuilder, tmp_path: Path, shell: str) -> None:
    """The name of an argument is of the project. It ran as a command when the line was sent; and in zsh, the first Tab
    after installing did nothing."""
    require_program(shell)
    project.tool("odd", "true", inputSchema={"type": "object", "properties": {ODD: {"type": "string"}}})
    command = tmp_path / "bin" / "mcpgreen"
    command.parent.mkdir()
    answering = f'[ $1 != completion ] || exec {sys.executable} -m mcpgreen "$@"'
    command.write_text(f"#!/bin/sh\n{answering}\nprintf '<%s>' \"$@\"; echo '|'\n", encoding="utf-8")
    command.chmod(0o755)
    env = {"PATH": f"{command.parent}:{os.environ['PATH']}", "HOME": str(tmp_path / "home"), "TERM": "xterm"}
    # What is asked is awaited, so that nothing is typed before the shell reads.
    answers = [("ready", "mcpgreen run-tool odd \t"), ("evil", "\n"), ("|", "exit\n")]
    start = f"cd {project.root}; {INSTALLED[shell].replace('exec', 'echo ready; exec')}"

    seen = at_terminal(["-c", start], cwd=project.root, env=env, answers=answers, program=["sh"], width=200)

    assert f"<run-tool><odd><{ODD}=>|" in seen.text
    assert not list(project.root.glob("**/evil"))


def test_a_tab_runs_nothing_of_the_project(greeter: ProjectBuilder) -> None:
    for name in ("env.sh", "register.sh"):
        greeter.program(f"server.d/{name}", "touch was-run")
    greeter.write("server.d/env", "MCPGREEN_ALLOW_PROJECT_HOOKS=true\n")

    for typed in (["run-tool", ""], ["run-tool", "greet", ""], ["prompt", ""], ["read", ""]):
        assert words(greeter, *typed)

    assert not (greeter.root / "was-run").exists()


def test_names_that_would_steer_a_terminal_are_not_offered(project: ProjectBuilder) -> None:
    properties: dict[str, object] = {"plain": {}, "a\x1b[2J": {}, "two\nlines": {}, "\u202egnol": {}}
    project.tool("odd", "true", inputSchema={"type": "object", "properties": properties})
    assert words(project, "run-tool", "odd", "") == ["plain="]


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_of_each_shell(shell: str) -> None:
    assert mcpgreen("completion", shell).stdout == filled(f"completion/{shell}")
