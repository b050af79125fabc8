"""What a command line is told that cannot be obeyed."""

from __future__ import annotations

import pytest

from tests.cli.test_commands import mcpgreen
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
        (
            ["wrap", "--makefile", "Makefile", "--server=http://a"],
            "--server cannot be used with --makefile; leave out one of them",
        ),
        (["wrap", "--all", "--only", "x", "--", "ls"], "--only cannot be used with --all; leave out one of them"),
        (
            ["wrap", "--makefile", "a", "--justfile", "b"],
            "--justfile cannot be used with --makefile; leave out one of them",
        ),
        (["config", "--client", "zed", "--client", "cursor"], "--client may be given only once"),
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


def test_the_project_may_be_named_before_the_command(project: ProjectBuilder) -> None:
    project.tool("greet", "echo hi")
    done = mcpgreen("--project-root", str(project.root), "run-tool", "greet")
    assert (done.returncode, done.stderr) == (0, "")
