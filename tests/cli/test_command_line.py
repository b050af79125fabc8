"""What a command line is told that cannot be obeyed."""

from __future__ import annotations

import pytest

from tests.cli.test_commands import mcpgreen, run_tool
from tests.support.project import ProjectBuilder


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run-tool"], "run-tool needs a NAME"),
        (["run-tool", "--args", "{}"], "run-tool needs a NAME"),
        (["registry"], "registry needs refresh or status"),
        (["registry", "fly"], "unexpected word: fly"),
        (["registry", "status", "fly"], "unexpected word: fly"),
        (["scan", "extra"], "unexpected word: extra"),
        (["serve", "--project-root", ".", "twice"], "unexpected word: twice"),
        (["run-tool", "greet", "--args", "{}", "extra"], "unexpected word: extra"),
        (["--project-root"], "--project-root needs a value"),
        (["scan", "--project-root"], "--project-root needs a value"),
        (["scan", "--filt"], "--filter needs a value"),
        (["fly", "--high"], "unknown command: fly"),
    ],
)
def test_what_is_wrong_is_named(arguments: list[str], message: str) -> None:
    done = mcpgreen(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"mcpgreen: {message}\nTry: mcpgreen --help\n"


@pytest.mark.parametrize("command", [[], ["serve"], ["scan"], ["health"], ["run-tool", "x"]])
@pytest.mark.parametrize("option", [["--project-root", ""], ["--project-root="]])
def test_a_project_root_without_a_name_is_refused(
    project: ProjectBuilder, command: list[str], option: list[str]
) -> None:
    """An unset variable of a script made it serve whatever was around."""
    done = mcpgreen(*command, *option, cwd=project.root)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "mcpgreen: --project-root needs a value\nTry: mcpgreen --help\n"


@pytest.mark.parametrize(
    "word", ["new", "init", "scaffold", "config", "doctor", "vendor", "bundle", "publish", "debug"]
)
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
