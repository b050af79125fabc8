"""The command line of scripts that were written for mcp-bash."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.cli.test_commands import mcpgreen

from .conftest import OldTree, Serve

SHOW = """
mcp_result_success "$(mcp_json_obj root "${MCPBASH_PROJECT_ROOT}" sdk "${MCP_SDK}" greeting "${MCP_GREETING:-none}")"
"""


@pytest.fixture(autouse=True)
def _tool(tree: OldTree) -> None:
    tree.shell_tool("show", SHOW, name="show", description="Shows", inputSchema={"type": "object", "properties": {}})


def test_without_arguments_the_named_project_is_served(tree: OldTree, serve: Serve) -> None:
    client = serve("2025-06-18")
    assert client.call_tool("show")["structuredContent"]["result"]["root"] == str(tree.root)


def test_without_arguments_the_project_around_is_served(tree: OldTree) -> None:
    read_end, write_end = os.pipe()
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    os.write(
        write_end, json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}).encode() + b"\n"
    )
    os.close(write_end)
    done = mcpgreen(stdin=read_end, cwd=tree.root / "tools" / "show")
    os.close(read_end)

    assert done.returncode == 0
    assert json.loads(done.stdout)["result"]["serverInfo"]["name"] == "test-project"


def test_a_project_that_is_not_there_is_refused(tree: OldTree) -> None:
    done = mcpgreen(env={"MCPBASH_PROJECT_ROOT": str(tree.root / "nowhere")})
    assert (done.returncode, done.stdout) == (1, "")
    assert "nowhere" in done.stderr


def test_run_tool_takes_every_flag(tree: OldTree, tmp_path: Path) -> None:
    (tmp_path / "more.sh").write_text("export MCP_GREETING=sourced\n", encoding="utf-8")
    flags = ["--args", "{}", "--roots", str(tmp_path), "--timeout", "20", "--verbose", "--no-refresh"]
    flags += ["--allow-self", "--allow", "other", "--allow-all", "--with-server-env"]
    flags += ["--source", str(tmp_path / "more.sh"), "--project-root", str(tree.root)]
    done = mcpgreen("run-tool", "show", *flags)

    assert done.returncode == 0
    assert json.loads(done.stdout)["structuredContent"]["result"]["greeting"] == "sourced"


def test_run_tool_shows_where_things_are(tree: OldTree) -> None:
    done = mcpgreen("run-tool", "show", "--print-env", env={"MCPBASH_PROJECT_ROOT": str(tree.root)})
    names = {line.partition("=")[0] for line in done.stdout.splitlines()}

    assert {"MCPBASH_PROJECT_ROOT", "MCPBASH_HOME", "MCP_SDK", "MCPBASH_MODE", "ROOT[0]"} <= names


@pytest.mark.parametrize("command", ["health", "--health", "ready", "--ready"])
def test_probes_find_the_project_healthy(tree: OldTree, command: str) -> None:
    tree.write("server.d/health-checks.sh", "mcp_health_check_command bash 'no bash'\n").chmod(0o644)
    done = mcpgreen(command, "--project-root", str(tree.root), "--timeout", "10")
    report = json.loads(done.stdout)

    assert (done.returncode, report["status"], report["projectChecks"]) == (0, "ok", "ok")


def test_the_registry_is_refreshed_and_told(tree: OldTree) -> None:
    root = ["--project-root", str(tree.root)]
    refreshed = json.loads(mcpgreen("registry", "refresh", *root, "--no-notify").stdout)
    assert refreshed["tools"] == {"status": "ok", "count": 1, "error": None}
    assert refreshed["notificationsSent"] is False
    told = json.loads(mcpgreen("registry", "status", *root).stdout)
    assert (told["tools"]["status"], told["tools"]["count"]) == ("present", 1)


def test_a_tree_is_valid(tree: OldTree) -> None:
    done = mcpgreen("validate", "--strict", "--project-root", str(tree.root))
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "0 errors, 0 warnings")


def test_an_unknown_command_is_refused() -> None:
    done = mcpgreen("teleport")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("mcpgreen: unknown command: teleport")
