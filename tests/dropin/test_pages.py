"""Pages: beside a tool, on their own, and from templates."""

from __future__ import annotations

import pytest

from tests.support.prerequisites import require_program
from tests.support.wire import text_of

from .conftest import Json, OldTree, Serve

REVISIONS = ("2025-06-18", "2025-11-25", "2026-07-28")
MIME = "text/html;profile=mcp-app"
CDN = "https://cdn.jsdelivr.net"
CSP: Json = {"connectDomains": [CDN], "resourceDomains": [CDN], "frameDomains": [], "baseUriDomains": []}
UI: Json = {"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": [MIME]}}}

WEATHER = """
location="$(mcp_args_get '.location' 2>/dev/null || echo Oslo)"
result="$(mcp_json_obj location "${location}" temperature "7")"
text="$(printf '%s' "${result}" | jq -c . | jq -Rs .)"
cat <<END
{
  "content": [{"type": "text", "text": ${text}}],
  "structuredContent": ${result},
  "isError": false
}
END
"""

ROWS = """
if mcp_client_supports_ui; then shown=page; else shown=text; fi
mcp_result_with_ui "ui://unused" "$(mcp_json_obj shown "${shown}")" '{"rows":[{"cpu":"4"}]}'
"""


@pytest.fixture(autouse=True)
def _tree(tree: OldTree) -> None:
    tree.json("server.d/server.meta.json", {"name": "ui-demo", "title": "Pages", "version": "1.0.0"})
    tree.shell_tool("weather", WEATHER, name="get-weather", description="The weather")
    tree.write("tools/weather/ui/index.html", "<!DOCTYPE html><title>Weather</title>\n")
    meta = {"csp": CSP, "permissions": {}, "prefersBorder": True}
    tree.json("tools/weather/ui/ui.meta.json", {"description": "The weather, drawn", "meta": meta})
    tree.write("ui/dashboard/index.html", "<!DOCTYPE html><title>Dashboard</title>\n")
    tree.json("ui/dashboard/ui.meta.json", {"description": "On its own"})
    tree.write("ui/plain/index.html", "<!DOCTYPE html><title>Plain</title>\n")
    tree.shell_tool("system-info", ROWS, name="system-info", description="A table")
    config = {"title": "Machines", "columns": [{"key": "cpu", "label": "CPU", "sortable": True}]}
    tree.json("tools/system-info/ui/ui.meta.json", {"template": "data-table", "config": config})


@pytest.mark.parametrize("revision", REVISIONS)
def test_13_a_tool_points_at_the_page_beside_it(serve: Serve, revision: str) -> None:
    tools = serve(revision, capabilities=UI).tools()

    assert tools["get-weather"]["_meta"]["ui"] == {
        "resourceUri": "ui://ui-demo/weather",
        "visibility": ["model", "app"],
    }


@pytest.mark.parametrize("revision", REVISIONS)
def test_13_pages_are_listed_and_read(serve: Serve, revision: str) -> None:
    client = serve(revision, capabilities=UI)
    listed = {each["uri"]: each for each in client.result("resources/list")["resources"]}

    assert sorted(listed) == [f"ui://ui-demo/{name}" for name in ("dashboard", "plain", "system-info", "weather")]
    assert {each["mimeType"] for each in listed.values()} == {MIME}
    (content,) = client.result("resources/read", {"uri": "ui://ui-demo/weather"})["contents"]
    assert content["mimeType"] == MIME
    assert "<title>Weather</title>" in content["text"]
    ui = content["_meta"]["ui"]
    assert (ui["csp"]["connectDomains"], ui["prefersBorder"]) == ([CDN], True)
    (other,) = client.result("resources/read", {"uri": "ui://dashboard"})["contents"]
    assert "<title>Dashboard</title>" in other["text"]
    assert other["_meta"]["ui"] == {"csp": {}, "permissions": {}, "prefersBorder": True}
    assert listed["ui://ui-demo/dashboard"]["_meta"]["ui"] == other["_meta"]["ui"]
    plain = listed["ui://ui-demo/plain"]
    assert (plain["description"], plain["_meta"]) == ("MCP App plain", other["_meta"])


def test_13_a_ready_made_result_passes_as_it_is(serve: Serve) -> None:
    require_program("jq")
    result = serve().call_tool("get-weather", {"location": 'Up "north"'})
    assert result["structuredContent"] == {"location": 'Up "north"', "temperature": "7"}


@pytest.mark.parametrize("revision", REVISIONS)
def test_14_a_template_becomes_a_page(serve: Serve, revision: str) -> None:
    (content,) = serve(revision).result("resources/read", {"uri": "ui://ui-demo/system-info"})["contents"]

    assert content["text"].lower().startswith("<!doctype html>")
    assert "Machines" in content["text"]
    assert "CPU" in content["text"]


@pytest.mark.parametrize(("capabilities", "expected"), [(UI, {"rows": [{"cpu": "4"}]}), ({}, {"shown": "text"})])
def test_14_a_tool_knows_whether_the_client_shows_pages(serve: Serve, capabilities: Json, expected: Json) -> None:
    result = serve(capabilities=capabilities).call_tool("system-info")
    found = result["structuredContent"]
    assert found == expected or found["result"] == expected


def test_14_a_client_that_shows_pages_is_told_that_they_are_there(serve: Serve) -> None:
    client = serve(capabilities=UI)
    (hello,) = [message["result"] for message in client.wire.seen if message.get("id") == 1]
    assert hello["capabilities"]["extensions"]["io.modelcontextprotocol/ui"]["mimeTypes"] == [MIME]


def test_13_a_server_without_a_description_has_the_name_that_its_variable_says(tree: OldTree, serve: Serve) -> None:
    (tree.root / "server.d" / "server.meta.json").unlink()
    tree.shell_tool("named", 'mcp_emit_text "${MCPBASH_SERVER_NAME}"', name="named")
    client = serve(capabilities=UI, MCPBASH_SERVER_NAME="mcp-server")

    assert client.tools()["get-weather"]["_meta"]["ui"]["resourceUri"] == "ui://mcp-server/weather"
    (content,) = client.result("resources/read", {"uri": "ui://mcp-server/dashboard"})["contents"]
    assert "<title>Dashboard</title>" in content["text"]
    assert text_of(client.call_tool("named")) == "mcp-server"
