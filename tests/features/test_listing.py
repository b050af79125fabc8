"""`tools/list`: what each revision sees of a tool."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.client import ALL_REVISIONS, Client
from tests.support.project import ProjectBuilder
from tests.support.wire import MODERN

Json = dict[str, Any]

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


@pytest.fixture(scope="module", autouse=True)
def _tools(shared_project: ProjectBuilder) -> None:
    shared_project.tool("full", "echo '{}'", meta=FULL)
    shared_project.tool("plain", "echo")
    roots: Json = {"array": {"type": "array"}, "ref": {"$ref": "#/$defs/a", "$defs": {"a": {}}}, "any": {}}
    for name, schema in roots.items():
        shared_project.tool(f"gives-{name}", "echo '[]'", outputSchema=schema)


def is_since(first: str, revision: str) -> bool:
    return ALL_REVISIONS.index(revision) >= ALL_REVISIONS.index(first)


@pytest.mark.requirement("P-043")
@pytest.mark.parametrize("revision", ALL_REVISIONS)
def test_a_tool_shows_exactly_what_its_revision_knows(shared_speak: Callable[..., Client], revision: str) -> None:
    tool = shared_speak(revision).tools()["full"]

    expected = {"name", "description", "inputSchema"}
    expected |= {"annotations"} if is_since("2025-03-26", revision) else set()
    expected |= {"title", "outputSchema", "_meta"} if is_since("2025-06-18", revision) else set()
    expected |= {"icons"} if is_since("2025-11-25", revision) else set()
    assert set(tool) == expected


@pytest.mark.requirement("P-043")
def test_the_title_is_an_annotation_where_tools_have_no_title(shared_speak: Callable[..., Client]) -> None:
    annotations = shared_speak("2025-03-26").tools()["full"]["annotations"]

    assert annotations == {"title": "Full", "readOnlyHint": True, "openWorldHint": False}


@pytest.mark.requirement("P-100")
@pytest.mark.parametrize("revision", ALL_REVISIONS)
def test_every_input_schema_is_an_object_schema(shared_speak: Callable[..., Client], revision: str) -> None:
    schemas = {name: tool["inputSchema"] for name, tool in shared_speak(revision).tools().items()}

    assert {schema["type"] for schema in schemas.values()} == {"object"}
    assert schemas["full"]["required"] == ["text"]


@pytest.mark.requirement("P-005")
@pytest.mark.parametrize("revision", ALL_REVISIONS)
def test_boolean_property_schemas_are_for_the_stateless_era(shared_speak: Callable[..., Client], revision: str) -> None:
    properties = shared_speak(revision).tools()["full"]["inputSchema"]["properties"]

    whole = {"any": True, "none": False} if revision == MODERN else {"any": {}, "none": {"not": {}}}
    assert properties == {**whole, "text": {"type": "string"}}


@pytest.mark.requirement("P-002")
@pytest.mark.parametrize("revision", ALL_REVISIONS)
@pytest.mark.parametrize("name", ["gives-array", "gives-ref", "gives-any"])
def test_an_output_schema_with_another_root_is_for_the_stateless_era(
    shared_speak: Callable[..., Client], revision: str, name: str
) -> None:
    assert ("outputSchema" in shared_speak(revision).tools()[name]) == (revision == MODERN)


@pytest.mark.requirement("P-112")
@pytest.mark.parametrize("revision", ["2024-11-05", MODERN])
def test_a_project_without_tools_has_an_empty_list(speak: Callable[..., Client], revision: str) -> None:
    assert speak(revision).tools() == {}


@pytest.mark.requirement("P-066")
def test_the_order_is_by_name(shared_speak: Callable[..., Client]) -> None:
    names = list(shared_speak().tools())

    assert names == sorted(names)
