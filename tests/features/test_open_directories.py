"""What lies in a directory that others may write to is not executed: they could have put it there."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.cli.test_commands import mcpgreen
from tests.support.client import Speak
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually
from tests.support.wire import Json, Start, Wire

COMPLETE = {"ref": {"type": "ref/prompt", "name": "pick"}, "argument": {"name": "colour", "value": "b"}}


def tool(project: ProjectBuilder) -> tuple[str, Json]:
    project.program("tools/sub/mark", "touch ran")
    return "tools/call", {"name": "mark", "arguments": {}}


def provider(project: ProjectBuilder) -> tuple[str, Json]:
    project.provider("mark.sh", "touch ran")
    return "resources/read", {"uri": "mark://x"}


def prompt(project: ProjectBuilder) -> tuple[str, Json]:
    project.prompt("mark.sh", "#!/bin/sh\ntouch ran\n")
    return "prompts/get", {"name": "mark"}


def completion(project: ProjectBuilder) -> tuple[str, Json]:
    project.prompt("pick.txt", "{{colour}}", arguments=[{"name": "colour"}])
    project.program("prompts/pick.completion", "touch ran; echo '[]'")
    return "completion/complete", COMPLETE


def registered_completion(project: ProjectBuilder) -> tuple[str, Json]:
    project.prompt("pick.txt", "{{colour}}", arguments=[{"name": "colour"}])
    project.program("scripts/pick.sh", "touch ran; echo '[]'")
    completions = [{"name": "pick", "path": "scripts/pick.sh"}]
    project.write("server.d/register.json", json.dumps({"version": 1, "completions": completions})).chmod(0o644)
    return "completion/complete", COMPLETE


@pytest.mark.requirement("G-safe-path")
@pytest.mark.parametrize("mode", [0o777, 0o1777])
@pytest.mark.parametrize(
    ("ask", "directory"),
    [
        (tool, "tools/sub"),
        (tool, "tools"),
        (provider, "providers"),
        (prompt, "prompts"),
        (completion, "prompts"),
        (registered_completion, "scripts"),
    ],
)
def test_what_others_could_have_put_there_is_refused_with_the_remedy(
    project: ProjectBuilder,
    speak: Speak,
    ask: Callable[[ProjectBuilder], tuple[str, Json]],
    directory: str,
    mode: int,
) -> None:
    """With a tools/ that others may write to, their code was run."""
    request = ask(project)
    (project.root / directory).chmod(mode)
    error = speak().error(*request)

    assert error["code"] == -32602
    assert f"its directory {directory} can be written to by others (run mcpgreen validate --fix)" in error["message"]
    assert str(project.root) not in error["message"]
    assert not (project.root / "ran").exists()


@pytest.mark.parametrize("ask", [tool, provider, prompt, completion])
def test_a_project_that_others_may_write_to_runs_nothing(
    project: ProjectBuilder, speak: Speak, ask: Callable[[ProjectBuilder], tuple[str, Json]]
) -> None:
    request = ask(project)
    project.root.chmod(0o777)
    error = speak().error(*request)

    assert "the project directory can be written to by others (run mcpgreen validate --fix)" in error["message"]
    assert not (project.root / "ran").exists()


def test_the_remedy_counts_at_once(project: ProjectBuilder, client: Wire) -> None:
    project.tool("a", "echo")
    (project.root / "tools").chmod(0o777)
    client.error("tools/call", {"name": "a"})
    (project.root / "tools").chmod(0o755)

    client.call_tool("a")


WARNING = (
    "5 files are not run because other users can write to them or their folders: tools/a, tools/b, tools/c and 2 more; "
    "run mcpgreen validate --fix"
)


def test_the_author_is_warned_when_the_project_is_read(project: ProjectBuilder, client: Wire) -> None:
    """Once, for all tools together."""
    for name in ("a", "b", "c", "d", "e"):
        project.tool(name, "echo")
    (project.root / "tools").chmod(0o777)
    (project.root / "tools" / "a").chmod(0o777)
    client.result("tools/list")

    eventually(lambda: WARNING in client.stderr)
    assert client.stderr.count("other users can write") == 1


@pytest.mark.parametrize("place", ["server.d/env", "server.d", "."])
def test_variables_that_others_could_have_written_keep_the_server_from_starting(
    project: ProjectBuilder, start: Start, place: str
) -> None:
    """They counted, and could name other directories of tools, or allow hooks. To ignore them would be no better: a
    remote token or an allow-list may be among them."""
    project.write("server.d/env", "MCPGREEN_TOOL_ALLOWLIST=a\n").chmod(0o644)
    path = project.root / place
    path.chmod(path.stat().st_mode | 0o022)
    wire = start()
    wire.close_stdin()  # one that starts all the same ends at once

    assert wire.wait() == 1
    eventually(
        lambda: "server.d/env: it is not trusted: " in wire.stderr and "run mcpgreen validate --fix" in wire.stderr
    )
    assert json.loads(mcpgreen("health", "--project-root", str(project.root)).stdout)["reason"] == "not_trusted"
