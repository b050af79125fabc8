"""`mcpgreen run-tool`: permissions, and what it says of a tool that it does not run."""

from __future__ import annotations

import json

import pytest

from tests.cli.test_commands import mcpgreen, run_tool
from tests.support.project import ProjectBuilder


def test_permissions_are_only_ever_added(project: ProjectBuilder) -> None:
    """`--allow other` forbade the tool that was run, although nothing was restricted."""
    project.tool("one", "echo 1")
    assert run_tool(project, "one", "--allow", "other").returncode == 0
    assert run_tool(project, "one", "--allow", "other", env={"MCPGREEN_TOOL_ALLOWLIST": "one"}).returncode == 0


def test_where_nothing_is_allowed_only_what_is_named_is(project: ProjectBuilder) -> None:
    project.tool("one", "echo 1")
    env = {"MCPGREEN_TOOL_ALLOW_DEFAULT": "deny"}
    assert run_tool(project, "one", "--allow", "other", env=env).returncode == 1
    for flags in (["--allow", "one"], ["--allow-self"], ["--allow-all"]):
        assert run_tool(project, "one", *flags, env=env).returncode == 0


def test_a_variable_that_the_tool_would_not_get_is_reported(project: ProjectBuilder) -> None:
    project.tool("one", 'echo "$API_KEY"')
    warning = "reads API_KEY, which the server does not pass on to it; declare it: # @env API_KEY!;"
    assert warning in run_tool(project, "one").stderr


def forbidden_by_list(project: ProjectBuilder) -> str:
    project.write("server.d/env", "MCPGREEN_TOOL_ALLOWLIST=other\n")
    return "Tool 'mark' blocked by policy (not in MCPGREEN_TOOL_ALLOWLIST)"


def forbidden_by_mode(project: ProjectBuilder) -> str:
    (project.root / "tools" / "mark").chmod(0o777)
    return "Tool 'mark' path rejected by policy: it can be written to by others (run mcpgreen validate --fix)"


def forbidden_by_hook(project: ProjectBuilder) -> str:
    hook = 'mcp_tools_policy_check() { mcp_tools_error -32602 "Not on Sundays"; return 1; }'
    project.write("server.d/policy.sh", hook).chmod(0o644)
    return "Not on Sundays"


@pytest.mark.parametrize("forbid", [forbidden_by_list, forbidden_by_mode, forbidden_by_hook])
def test_a_dry_run_says_that_the_policy_would_refuse(project: ProjectBuilder, forbid: object) -> None:
    project.tool("mark", "touch ran")
    reason = forbid(project)  # type: ignore[operator]
    done = run_tool(project, "mark", "--dry-run")
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == f"Status: {reason}"
    assert not (project.root / "ran").exists()


READY_MADE = '{"content": [{"type": "text", "text": "not today"}], "isError": true}'


@pytest.mark.parametrize(
    ("script", "arguments", "status"),
    [
        ("echo fine", "{}", 0),
        (f"echo '{READY_MADE}'", "{}", 0),
        (f"echo '{READY_MADE}'; exit 3", "{}", 1),
        ("exit 3", "{}", 1),
        ("sleep 60", "{}", 1),
        ("echo fine", '{"count": "three"}', 1),
    ],
    ids=["well", "says-so", "says-so-and-fails", "fails", "too-late", "refused"],
)
def test_the_status_tells_whether_the_script_failed(
    project: ProjectBuilder, script: str, arguments: str, status: int
) -> None:
    """`run-tool NAME || exit 1` never ended the scripts of those who wrote it."""
    schema = {"type": "object", "properties": {"count": {"type": "integer"}}}
    project.tool("one", script, inputSchema=schema, timeoutSecs=2)
    done = run_tool(project, "one", "--args", arguments)
    assert done.returncode == status
    assert "content" in json.loads(done.stdout)


def test_a_file_to_source_may_lie_in_the_project(project: ProjectBuilder) -> None:
    project.tool("show", 'printf "%s" "$MCP_A $MCP_B"')
    project.write("config/one.sh", "export MCP_A=1 MCP_B=1\n")
    project.write("two.sh", 'export MCP_B="after $MCP_A"\n')
    done = run_tool(project, "show", "--source", "config/one.sh", "--source", "two.sh")
    assert json.loads(done.stdout)["content"][0]["text"] == "1 after 1"
    done = run_tool(project, "show", "--source", "three.sh")
    assert (done.returncode, done.stdout) == (2, "")


COUNTER = """#!/usr/bin/env python3
import mcp_tool
count = 0
@mcp_tool.tool(stays="session")
def add(step: int = 1) -> int:
    global count
    count += step
    return count
"""


def test_further_calls_come_from_stdin_and_find_the_same_state(project: ProjectBuilder) -> None:
    project.program("tools/add.py", COUNTER)
    lines = b'step=5\nnonsense\nstep=x\n{"step": 10}\n{"step": \nstep=\xff\n\n'
    (project.root / "lines").write_bytes(lines)
    with (project.root / "lines").open("rb") as stdin:
        done = run_tool(project, "add", "--repeat", "2", "--stay", "--plain", stdin=stdin.fileno())
    assert done.stdout.split() == ["1", "2", "7", "17", "18"]
    for said in ("nonsense: write key=value", "step=x: ", "The line is not valid JSON", "can't decode byte"):
        assert said in done.stderr
    assert done.returncode == 0


@pytest.mark.parametrize("times", ["0", "x", "-1", "9999999", "²"])
def test_the_number_of_calls_is_bounded(project: ProjectBuilder, times: str) -> None:
    project.tool("one", "echo 1")
    done = run_tool(project, "one", f"--repeat={times}")
    assert (done.returncode, "--repeat must be a number from 1 to 999999." in done.stderr) == (2, True)


def test_processes_of_running_servers_are_not_listed_yet(project: ProjectBuilder) -> None:
    done = mcpgreen("list", "--processes", cwd=project.root)
    assert (done.returncode, done.stdout) == (1, "")
    assert "cannot ask running servers" in done.stderr
