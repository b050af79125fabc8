"""What a command line is told that cannot be obeyed."""

from __future__ import annotations

import pytest

from mcpgreen.cli.commands import COMMANDS, Command
from tests.cli.test_commands import mcpgreen, run_tool
from tests.support.project import ProjectBuilder


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run-tool"], "run-tool needs a NAME"),
        (["run-tool", "--args", "{}"], "run-tool needs a NAME"),
        (["registry"], "registry needs refresh or status"),
        (["registry", "fly"], "registry needs refresh or status"),
        (["registry", "status", "fly"], "unexpected word: fly"),
        (["scan", "extra"], "unexpected word: extra"),
        (["serve", "--project-root", ".", "twice"], "unexpected word: twice"),
        (["read", "a:b", "extra"], "unexpected word: extra"),
        (["--project-root"], "--project-root needs a value"),
        (["scan", "--project-root"], "--project-root needs a value"),
        (["scan", "--filt"], "--filter needs a value"),
        (["fly", "--high"], "unknown command: fly"),
        (["lsit"], "unknown command: lsit; did you mean list?"),
    ],
)
def test_what_is_wrong_is_named(arguments: list[str], message: str) -> None:
    done = mcpgreen(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    meant = "" if message.startswith("unknown command") else next((w for w in arguments if w[0] != "-"), "serve") + " "
    assert done.stderr == f"mcpgreen: {message}\nTry: mcpgreen {meant}--help\n"


@pytest.mark.parametrize("command", [[], ["serve"], ["scan"], ["health"], ["run-tool", "x"]])
@pytest.mark.parametrize("option", [["--project-root", ""], ["--project-root="]])
def test_a_project_root_without_a_name_is_refused(
    project: ProjectBuilder, command: list[str], option: list[str]
) -> None:
    """An unset variable of a script made it serve whatever was around."""
    done = mcpgreen(*command, *option, cwd=project.root)
    assert (done.returncode, done.stdout) == (2, "")
    meant = command[0] if command else "serve"
    assert done.stderr == f"mcpgreen: --project-root needs a value\nTry: mcpgreen {meant} --help\n"


@pytest.mark.parametrize("word", ["publish", "debug"])
def test_commands_of_mcp_bash_are_known_to_be_missing(word: str) -> None:
    done = mcpgreen(word, "something", "--json")
    assert (done.returncode, done.stdout) == (2, "")
    said = f"{word} is a command of mcp-bash that mcpgreen does not have; see docs/from-mcp-bash.md"
    assert done.stderr == f"mcpgreen: {said}\nTry: mcpgreen --help\n"


@pytest.mark.parametrize("secs", ["0", "-1", "abc", "inf", "nan"])
@pytest.mark.parametrize("flags", [[], ["--dry-run"], ["--print-env"]])
def test_a_timeout_of_run_tool_is_positive(project: ProjectBuilder, secs: str, flags: list[str]) -> None:
    project.tool("mark", "touch ran")
    done = run_tool(project, "mark", "--timeout", secs, *flags)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "mcpgreen: error: --timeout must be a positive number of seconds.\n"
    assert not (project.root / "ran").exists()


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_each_command_has_a_text_with_an_example(command: Command) -> None:
    asked = mcpgreen(command.name, "--help")
    assert (asked.returncode, asked.stderr) == (0, "")
    assert asked.stdout == mcpgreen("help", command.name).stdout
    assert asked.stdout.startswith(f"mcpgreen {command.name}: ")
    assert "\nUsage:\n  mcpgreen " in asked.stdout
    assert "\nExample:\n  mcpgreen " in asked.stdout or "\nExamples:\n  mcpgreen " in asked.stdout
    assert max(map(len, asked.stdout.splitlines())) <= 100


def test_the_first_screen_is_short_and_names_all_commands() -> None:
    screen = mcpgreen("help").stdout
    assert screen == mcpgreen("--help").stdout
    assert [command.name for command in COMMANDS if f"\n  {command.name} " not in screen] == []
    assert len(screen.splitlines()) <= 60
    assert max(map(len, screen.splitlines())) <= 80


def test_help_on_what_does_not_exist() -> None:
    done = mcpgreen("help", "fly")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "mcpgreen: unknown command: fly\nTry: mcpgreen --help\n"


def test_the_project_may_be_named_before_the_command(project: ProjectBuilder) -> None:
    project.tool("greet", "echo hi")
    done = mcpgreen("--project-root", str(project.root), "run-tool", "greet")
    assert (done.returncode, done.stderr) == (0, "")
