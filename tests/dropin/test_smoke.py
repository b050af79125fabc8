"""The smoke script of somebody who migrates: empty parameters, a list, one call, all of it piped in at once."""

from __future__ import annotations

import json
import sys

import pytest

from tests.sdk.conftest import path_without_jq  # noqa: F401 (a fixture)
from tests.support.client import ALL_REVISIONS
from tests.support.programs import completed
from tests.support.wire import LATEST_HANDSHAKE, MODERN, Json, clean_environment, command_of_tests, modern_meta

from .conftest import ENVELOPE, OldTree

GREET = """
name="$(mcp_args_require '.name')"
times="$(mcp_args_int '.times' --default 1)"
mcp_result_success "$(mcp_json_obj message "Hello ${name}, ${times} times")"
"""
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "times": {"type": "integer"}, "tone": {"type": "string"}},
    "required": ["name"],
}
# As such scripts write it: with printf and a pipe, and with status and answers looked at afterwards.
SCRIPT = 'printf "%s\\n" "$@" | "$SERVER" && echo done >&2'


@pytest.fixture
def smoke_tree(tree: OldTree) -> OldTree:
    tree.shell_tool("greet", GREET, name="greet", description="Greets", inputSchema=SCHEMA, outputSchema=ENVELOPE)
    for name in ("LICENSE", "README.md", "ui/index.html"):
        tree.write(f"tools/greet/{name}", "<!doctype html>\n")
    tree.program("tools/greet/ui/build.sh", "echo built")
    for path in tree.root.rglob("*"):
        path.chmod(0o755)  # chmod -R 755
    return tree


def requests(revision: str | None) -> list[Json]:
    """What the script pipes in; without a revision it names none, as those for mcp-bash do."""
    meta = {"_meta": modern_meta()} if revision == MODERN else {}
    arguments = {"name": "Ada", "times": "3", "tone": None}
    asked: list[Json] = [
        {"id": 2, "method": "tools/list", "params": {**meta, "cursor": ""}},
        {"id": 3, "method": "tools/call", "params": {**meta, "name": "greet", "arguments": arguments}},
    ]
    if revision != MODERN:
        hello = {} if revision is None else {"protocolVersion": revision}
        asked[:0] = [
            {"id": 1, "method": "initialize", "params": hello},
            {"method": "notifications/initialized"},
        ]
    return [{"jsonrpc": "2.0", **message} for message in asked]


def answers(tree: OldTree, messages: list[Json], **env: str) -> dict[int, Json]:
    variables = {
        "MCPBASH_PROJECT_ROOT": str(tree.root),
        "MCPBASH_TOOL_ALLOWLIST": "*",
        "SERVER": str(command_of_tests()),
        "MCPGREEN_PYTHON": sys.executable,
    }
    done = completed(
        ["bash", "-c", SCRIPT, "smoke", *map(json.dumps, messages)], env={**clean_environment(variables), **env}
    )
    assert done.stderr.endswith("done\n"), done.stderr
    said = [json.loads(line) for line in done.stdout.splitlines()]
    return {message["id"]: message["result"] for message in said if "id" in message}


def assert_all_is_well(said: dict[int, Json], revision: str) -> None:
    if revision != MODERN:
        assert said[1]["protocolVersion"] == revision
    assert [tool["name"] for tool in said[2]["tools"]] == ["greet"]
    assert said[3]["isError"] is False
    assert json.loads(said[3]["content"][0]["text"])["result"] == {"message": "Hello Ada, 3 times"}


@pytest.mark.parametrize("revision", [None, *ALL_REVISIONS])
def test_a_smoke_script_works_on_every_revision(smoke_tree: OldTree, revision: str | None) -> None:
    said = answers(smoke_tree, requests(revision))
    assert_all_is_well(said, revision or LATEST_HANDSHAKE)


def test_a_smoke_script_works_on_a_host_without_jq(smoke_tree: OldTree, path_without_jq: str) -> None:  # noqa: F811
    """Old hosts have a shell and the usual programs, and neither jq nor gojq."""
    said = answers(smoke_tree, requests(None), PATH=path_without_jq)
    assert_all_is_well(said, LATEST_HANDSHAKE)
