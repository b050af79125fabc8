"""Fitting results to a revision, feature by feature; every outcome is checked as a message of that revision."""

from __future__ import annotations

import pytest

from mcpgreen.errors import InvalidParams, ScriptError
from mcpgreen.protocol import revision_fields
from mcpgreen.protocol.revisions import BY_NAME
from tests.support import validation
from tests.support.client import ALL_REVISIONS
from tests.support.wire import MODERN, Json

SERVER = {"name": "s", "version": "1"}
FULL_TOOL: Json = {
    "name": "t",
    "title": "Tool",
    "description": "does",
    "inputSchema": {"type": "object", "properties": {"any": True, "none": False, "text": {"type": "string"}}},
    "outputSchema": {"type": "object"},
    "annotations": {"readOnlyHint": True},
    "icons": [{"src": "data:image/png;base64,AAAA", "sizes": ["16x16"]}],
    "_meta": {"com.example/x": 1},
}
MARKED: Json = {"annotations": {"priority": 0.5, "lastModified": "2026-01-01T00:00:00Z"}, "_meta": {"com.example/x": 1}}
BLOCKS: list[Json] = [
    {"type": "text", "text": "hello", **MARKED},
    {"type": "image", "data": "AAAA", "mimeType": "image/png", **MARKED},
    {"type": "audio", "data": "AAAA", "mimeType": "audio/wav", **MARKED},
    {"type": "resource", "resource": {"uri": "a:b", "text": "x", "_meta": {"com.example/x": 1}}, **MARKED},
    {"type": "resource_link", "uri": "a:b", "name": "b", "title": "B", "icons": FULL_TOOL["icons"], **MARKED},
]


def fitted_tool(tool: Json, revision: str) -> Json:
    fitted = revision_fields.fit_tool(tool, BY_NAME[revision])
    check("tools/list", {"tools": [fitted], "ttlMs": 0}, revision)
    return fitted


def fitted_result(result: Json, revision: str) -> Json:
    fitted = revision_fields.fit_call_result(result, BY_NAME[revision])
    check("tools/call", fitted, revision)
    return fitted


def check(method: str, result: Json, revision: str) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "result": revision_fields.finish(result, BY_NAME[revision], SERVER)}
    modern = [1] if revision == MODERN else []
    validation.check(message, revision=revision, methods={1: method}, modern=modern)


def since(first: str, revision: str) -> bool:
    return ALL_REVISIONS.index(revision) >= ALL_REVISIONS.index(first)


@pytest.mark.requirement("P-043")
@pytest.mark.parametrize("revision", ALL_REVISIONS)
@pytest.mark.parametrize(
    ("field", "first"),
    [
        ("annotations", "2025-03-26"),
        ("title", "2025-06-18"),
        ("outputSchema", "2025-06-18"),
        ("_meta", "2025-06-18"),
        ("icons", "2025-11-25"),
        ("description", "2024-11-05"),
    ],
)
def test_a_tool_has_a_field_from_its_first_revision_on(field: str, first: str, revision: str) -> None:
    assert (field in fitted_tool(FULL_TOOL, revision)) == since(first, revision)


def test_an_annotated_title_is_kept() -> None:
    tool = {**FULL_TOOL, "annotations": {"title": "Own"}}

    assert fitted_tool(tool, "2025-03-26")["annotations"] == {"title": "Own"}


@pytest.mark.requirement("P-004", "P-043")
@pytest.mark.parametrize("revision", ALL_REVISIONS)
@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block["type"])
def test_every_kind_of_block_can_be_said_in_every_revision(block: Json, revision: str) -> None:
    result = fitted_result({"content": [block], "isError": False}, revision)

    assert len(result["content"]) == 1


@pytest.mark.requirement("P-004")
def test_audio_becomes_an_embedded_resource_where_there_is_no_audio() -> None:
    (block,) = fitted_result({"content": [BLOCKS[2]], "isError": False}, "2024-11-05")["content"]

    assert block["type"] == "resource"
    assert block["resource"]["blob"] == "AAAA"
    assert block["resource"]["mimeType"] == "audio/wav"


@pytest.mark.requirement("P-004")
@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26"])
def test_a_link_becomes_text_with_name_and_uri_where_there_are_no_links(revision: str) -> None:
    (block,) = fitted_result({"content": [BLOCKS[4]], "isError": False}, revision)["content"]

    assert block["type"] == "text"
    assert "<a:b>" in block["text"]


@pytest.mark.requirement("P-065", "P-265")
def test_only_the_stateless_era_stamps_results() -> None:
    result = {"tools": [], "ttlMs": 5}

    assert revision_fields.finish(result, BY_NAME["2025-11-25"], SERVER) == {"tools": []}
    assert revision_fields.finish(result, BY_NAME[MODERN], SERVER) == {
        "resultType": "complete",
        "tools": [],
        "ttlMs": 5,
        "cacheScope": "private",
        "_meta": {validation.SERVER_INFO: SERVER},
    }


def test_a_later_stateless_revision_can_have_fields_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    later = BY_NAME[MODERN].next("later", gains={"colours"})
    for kind in ("result", "implementation"):
        monkeypatch.setitem(revision_fields.FIELD_NEEDS[kind], "colour", "colours")
    result, server = {"colour": "red"}, {**SERVER, "colour": "blue"}

    assert revision_fields.finish(result, later, server) == {
        "resultType": "complete",
        "colour": "red",
        "_meta": {validation.SERVER_INFO: server},
    }
    assert revision_fields.finish(result, BY_NAME[MODERN], server) == {
        "resultType": "complete",
        "_meta": {validation.SERVER_INFO: SERVER},
    }


def test_meta_of_a_result_is_kept_beside_the_stamp() -> None:
    finished = revision_fields.finish({"_meta": {"x": 1}}, BY_NAME[MODERN], SERVER)

    assert finished["_meta"] == {"x": 1, validation.SERVER_INFO: SERVER}


@pytest.mark.requirement("P-011")
@pytest.mark.parametrize("code", [-32002, -32042, -32020, -32021, -32022, -32050, -32099])
def test_a_script_cannot_choose_a_reserved_code_in_the_stateless_era(code: int) -> None:
    error = ScriptError(code, "mine")

    assert revision_fields.error_object(error, BY_NAME[MODERN])["code"] == -32603
    assert revision_fields.error_object(error, BY_NAME["2025-11-25"])["code"] == code


@pytest.mark.requirement("P-010")
def test_an_error_has_data_only_when_there_is_some() -> None:
    assert revision_fields.error_object(InvalidParams("no")) == {"code": -32602, "message": "no"}
    assert revision_fields.error_object(InvalidParams("no", data=[]))["data"] == []
