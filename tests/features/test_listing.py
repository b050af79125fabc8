"""`tools/list`: what each revision sees of a tool."""

from __future__ import annotations

import json

import pytest

from tests.support.client import ALL_REVISIONS, Speak
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually
from tests.support.wire import META_PREFIX, MODERN, Json, Start, modern_meta

ICON = {"src": "data:image/png;base64,AAAA", "mimeType": "image/png", "sizes": ["16x16"]}
FULL: Json = {
    "title": "Full",
    "description": "has everything",
    "inputSchema": {"properties": {"any": True, "none": False, "text": {"type": "string"}}, "required": ["text"]},
    "outputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}},
    "annotations": {"readOnlyHint": True, "openWorldHint": False},
    "icons": [ICON],
    "_meta": {"com.example/x": 1},
    "timeoutSecs": 5,
    "timeoutHint": "hurry",
    "novelty": {"unknown": True},
}

# What frameworks stumble over, and what the list has in its place.
HARD: Json = {
    "type": "object",
    "properties": {"unit": {"$ref": "#/$defs/unit", "description": "mine"}, "size": {"type": ["integer", "null"]}},
    "required": ["size"],
    "$defs": {"unit": {"type": "string", "enum": ["cm", "m"], "description": "theirs"}},
}
PLAIN: Json = {
    "type": "object",
    "properties": {
        "unit": {"type": "string", "enum": ["cm", "m"], "description": "mine"},
        "size": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
    },
    "required": ["size"],
}
GIVES: Json = {
    "$ref": "#/definitions/all",
    "definitions": {"all": {"type": "object", "properties": {"n": {"type": ["integer", "null"]}}}},
}
WRAPPING: Json = {"type": "object", "properties": {"result": {"type": "integer"}}, "required": ["result"]}
MARKED: Json = {"type": "object", "properties": {"n": {"type": "integer"}}}


@pytest.fixture(scope="module", autouse=True)
def _tools(shared_project: ProjectBuilder) -> None:
    shared_project.tool("full", "echo '{}'", meta=FULL)
    shared_project.tool("plain", "echo")
    roots: Json = {"array": {"type": "array"}, "ref": {"$ref": "#/$defs/a", "$defs": {"a": {}}}, "any": {}}
    for name, schema in roots.items():
        shared_project.tool(f"gives-{name}", "echo '[]'", outputSchema=schema)
    shared_project.tool("hard", "printf '{\"n\": null}'", inputSchema=HARD, outputSchema=GIVES)
    for name in ("dotted.name", "twice.named", "twice_named"):
        shared_project.tool(f"{name}.sh", f"printf %s {name}")


def is_since(first: str, revision: str) -> bool:
    return ALL_REVISIONS.index(revision) >= ALL_REVISIONS.index(first)


@pytest.mark.requirement("P-043")
@pytest.mark.parametrize("revision", ALL_REVISIONS)
def test_a_tool_shows_exactly_what_its_revision_knows(shared_speak: Speak, revision: str) -> None:
    tool = shared_speak(revision).tools()["full"]

    expected = {"name", "description", "inputSchema"}
    expected |= {"annotations"} if is_since("2025-03-26", revision) else set()
    expected |= {"title", "outputSchema", "_meta"} if is_since("2025-06-18", revision) else set()
    expected |= {"icons"} if is_since("2025-11-25", revision) else set()
    assert set(tool) == expected


@pytest.mark.requirement("P-043")
def test_the_title_is_an_annotation_where_tools_have_no_title(shared_speak: Speak) -> None:
    annotations = shared_speak("2025-03-26").tools()["full"]["annotations"]

    assert annotations == {"title": "Full", "readOnlyHint": True, "openWorldHint": False}


@pytest.mark.requirement("P-100")
@pytest.mark.parametrize("revision", ALL_REVISIONS)
def test_every_input_schema_is_an_object_schema(shared_speak: Speak, revision: str) -> None:
    schemas = {name: tool["inputSchema"] for name, tool in shared_speak(revision).tools().items()}

    assert {schema["type"] for schema in schemas.values()} == {"object"}
    assert schemas["full"]["required"] == ["text"]


@pytest.mark.requirement("P-005")
@pytest.mark.parametrize("revision", ALL_REVISIONS)
def test_boolean_property_schemas_are_for_the_stateless_era(shared_speak: Speak, revision: str) -> None:
    properties = shared_speak(revision).tools()["full"]["inputSchema"]["properties"]

    whole = {"any": True, "none": False} if revision == MODERN else {"any": {}, "none": {"not": {}}}
    assert properties == {**whole, "text": {"type": "string"}}


@pytest.mark.requirement("P-002")
@pytest.mark.parametrize("revision", ALL_REVISIONS)
@pytest.mark.parametrize("name", ["gives-array", "gives-ref", "gives-any"])
def test_an_output_schema_with_another_root_is_for_the_stateless_era(
    shared_speak: Speak, revision: str, name: str
) -> None:
    assert ("outputSchema" in shared_speak(revision).tools()[name]) == (revision == MODERN)


@pytest.mark.requirement("P-112")
@pytest.mark.parametrize("revision", ["2024-11-05", MODERN])
def test_a_project_without_tools_has_an_empty_list(speak: Speak, revision: str) -> None:
    assert speak(revision).tools() == {}


@pytest.mark.requirement("P-066")
def test_the_order_is_by_name(shared_speak: Speak) -> None:
    names = list(shared_speak().tools())

    assert names == sorted(names)


@pytest.mark.parametrize("revision", ALL_REVISIONS)
def test_schemas_are_listed_without_references_and_lists_of_types(shared_speak: Speak, revision: str) -> None:
    """Agent frameworks failed on the whole list because of one `$ref`, and providers on `["integer", "null"]`."""
    tool = shared_speak(revision).tools()["hard"]

    assert tool["inputSchema"] == PLAIN
    if is_since("2025-06-18", revision):
        properties = {"n": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}
        assert tool["outputSchema"] == {"type": "object", "properties": properties}


def test_calls_are_checked_by_the_schema_of_the_author(shared_speak: Speak) -> None:
    client = shared_speak()

    assert client.call_tool("hard", {"size": None, "unit": "m"})["structuredContent"] == {"n": None}
    refused = client.call_tool("hard", {"size": 1, "unit": "km"})
    assert refused["isError"] and "unit" in refused["content"][0]["text"]


def test_the_registry_has_the_schema_of_the_author(shared_speak: Speak, shared_project: ProjectBuilder) -> None:
    shared_speak().tools()
    entries = json.loads(shared_project.read(".registry/tools.json"))["items"]

    assert next(each["inputSchema"] for each in entries if each["name"] == "hard") == HARD


def test_names_keep_their_dots_by_default(shared_speak: Speak) -> None:
    client = shared_speak()

    assert "dotted.name" in client.tools()
    assert client.request("tools/call", {"name": "dotted_name"})["error"]["code"] == -32602


@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
def test_dots_in_names_are_replaced_if_a_setting_says_so(shared_speak: Speak, revision: str) -> None:
    client = shared_speak(revision, replace_dots=True)

    assert "dotted_name" in client.tools() and "dotted.name" not in client.tools()
    for name in ("dotted_name", "dotted.name"):
        assert client.call_tool(name)["content"][0]["text"] == "dotted.name"


def test_two_names_that_would_become_one_are_kept_and_told(shared_speak: Speak) -> None:
    client = shared_speak(replace_dots=True)

    assert {"twice.named", "twice_named"} <= client.tools().keys()
    assert client.call_tool("twice_named")["content"][0]["text"] == "twice_named"
    assert client.call_tool("twice.named")["content"][0]["text"] == "twice.named"
    eventually(lambda: "twice.named and twice_named keep their names" in client.wire.stderr)


@pytest.mark.parametrize(("name", "is_marked"), [("fastmcp", True), ("mcp", True), ("claude-code", False)])
def test_what_only_fastmcp_understands_is_sent_to_it_alone(
    project: ProjectBuilder, start: Start, name: str, is_marked: bool
) -> None:
    for each, schema in (("wraps", WRAPPING), ("marked", {**MARKED, "x-fastmcp-wrap-result": True}), ("not", MARKED)):
        project.tool(each, "echo '{}'", outputSchema=schema)
    wire = start()
    info = {"name": name, "version": "1"}
    wire.result("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info})
    wire.notify("notifications/initialized")
    meta = {**modern_meta(), META_PREFIX + "clientInfo": info}

    for params in ({}, {"limit": 2}, {"_meta": meta}):
        for tool in wire.result("tools/list", params)["tools"]:
            expected = is_marked and tool["name"] != "not"
            assert tool["outputSchema"].get("x-fastmcp-wrap-result", False) is expected, tool["name"]
