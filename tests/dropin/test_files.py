"""Roots, resources, and files that tools embed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.waiting import eventually
from tests.support.wire import text_of

from .conftest import ENVELOPE, OldTree, Serve

READ = """
json_tool="${MCPBASH_JSON_TOOL_BIN:-}"
path="$(mcp_args_get '.path // empty' 2>/dev/null || true)"
if [[ -z "${path}" && $# -ge 1 ]]; then path="$1"; fi
if [[ -z "${path}" ]]; then mcp_fail_invalid_args "Missing required argument: path"; fi
if ! mcp_roots_contains "${path}"; then
  mcp_error "permission_denied" "Path is outside allowed roots" \\
    --hint "Roots: $(mcp_roots_list | tr '\\n' ' ')" --data "$(mcp_json_obj path "${path}")"
fi
content="$(cat "${path}")"
mcp_result_success "$("${json_tool}" -n --arg content "${content}" --argjson bytes "${#content}" '{$content, $bytes}')"
"""

EMBED = """
report="${MCPBASH_PROJECT_ROOT}/resources/report.txt"
mkdir -p "$(dirname "${report}")"
printf 'Embedded report' >"${report}"
mcp_result_text_with_resource "$(mcp_json_obj message "The report is attached")" --path "${report}" --mime text/plain
"""


@pytest.fixture
def reader(tree: OldTree) -> OldTree:
    tree.write("data/sample.txt", "a line of the sample\n")
    tree.json("config/roots.json", {"roots": [{"path": "./data", "name": "Data"}]})
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    tree.shell_tool("read", READ, name="example-roots-read", inputSchema=schema, outputSchema=ENVELOPE, timeoutSecs=5)
    return tree


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25", "2026-07-28"])
def test_04_a_path_is_relative_to_the_project(reader: OldTree, serve: Serve, revision: str) -> None:
    result = serve(revision).call_tool("example-roots-read", {"path": "./data/sample.txt"})
    assert result["structuredContent"]["result"] == {"content": "a line of the sample", "bytes": 20}


@pytest.mark.parametrize("path", ["/etc/passwd", "data/../server.d/server.meta.json"])
def test_04_what_is_outside_the_roots_is_refused_and_stays_unread(reader: OldTree, serve: Serve, path: str) -> None:
    """The script goes on after `mcp_error` and prints what it was not to read: the first document is the result."""
    result = serve().call_tool("example-roots-read", {"path": path})
    assert result["isError"] is True
    assert result["structuredContent"]["error"]["type"] == "permission_denied"
    assert str(reader.root / "data") in result["structuredContent"]["error"]["hint"]
    assert "root:" not in str(result)
    assert "test-project" not in str(result)


def test_04_without_a_path_the_request_is_wrong(reader: OldTree, serve: Serve) -> None:
    refused = serve().error("tools/call", {"name": "example-roots-read", "arguments": {}})
    assert (refused["code"], refused["message"]) == (-32602, "Missing required argument: path")


def test_04_the_roots_of_the_client_take_the_place_of_the_configured(
    reader: OldTree, serve: Serve, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "note.txt").write_text("from the client\n", encoding="utf-8")
    client = serve(capabilities={"roots": {"listChanged": True}})
    client.answer(client.asked("roots/list"), {"roots": [{"uri": (tmp_path / "elsewhere").as_uri()}]})

    read = client.call_tool("example-roots-read", {"path": str(tmp_path / "elsewhere" / "note.txt")})
    assert read["structuredContent"]["result"]["content"] == "from the client"
    assert client.call_tool("example-roots-read", {"path": "data/sample.txt"})["isError"] is True


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25", "2026-07-28"])
def test_05_a_relative_address_is_read_in_the_project(tree: OldTree, serve: Serve, revision: str) -> None:
    tree.write("resources/greeting.txt", "Hello from a resource\n")
    meta = {
        "name": "example-greeting",
        "description": "A greeting",
        "uri": "file://./resources/greeting.txt",
        "mimeType": "text/plain",
        "provider": "file",
    }
    tree.json("resources/greeting.meta.json", meta)
    client = serve(revision)

    (listed,) = client.result("resources/list")["resources"]
    assert (listed["name"], listed["uri"]) == ("example-greeting", "file://./resources/greeting.txt")
    (content,) = client.result("resources/read", {"uri": listed["uri"]})["contents"]
    assert content["text"] == "Hello from a resource\n"
    assert content["mimeType"] == "text/plain"


@pytest.mark.parametrize("ends_by", ["uri", "subscriptionId"])
def test_05_a_subscriber_hears_of_changes(tree: OldTree, serve: Serve, ends_by: str) -> None:
    tree.write("resources/greeting.txt", "Hello")
    tree.json("resources/greeting.meta.json", {"uri": "file://./resources/greeting.txt"})
    client = serve(MCPBASH_RESOURCES_POLL_INTERVAL_SECS="1")
    uri = {"uri": "file://./resources/greeting.txt"}
    subscribed = client.result("resources/subscribe", uri)
    tree.write("resources/greeting.txt", "Good evening")

    assert client.wire.notice("notifications/resources/updated")["params"] == uri
    client.result("resources/unsubscribe", {ends_by: {**uri, **subscribed["_meta"]}[ends_by]})


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25"])
def test_06_a_file_is_embedded_and_the_list_changes(tree: OldTree, serve: Serve, revision: str) -> None:
    tree.shell_tool("embed-resource", EMBED, name="example-embed-resource", outputSchema=ENVELOPE)
    client = serve(revision)
    assert client.result("resources/list")["resources"] == []

    result = client.call_tool("example-embed-resource")
    text, embedded = result["content"]
    assert text["type"] == "text"
    assert "The report is attached" in text_of(result)
    report = {"uri": (tree.root / "resources" / "report.txt").as_uri(), "mimeType": "text/plain"}
    assert embedded == {"type": "resource", "resource": {**report, "text": "Embedded report"}}
    client.wire.notice("notifications/resources/list_changed")
    eventually(lambda: [each["name"] for each in client.result("resources/list")["resources"]] == ["report"])
