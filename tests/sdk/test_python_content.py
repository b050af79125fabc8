"""The Python SDK: results of content blocks, as the server accepts them, and pages."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from mcpgreen.protocol.content import CONTENT_TYPES
from tests.support.client import Speak
from tests.support.project import ProjectBuilder

from .conftest import Bench

HEAD = 'import os, sys\nsys.path.insert(0, os.environ["MCP_SDK"])\nimport mcp_tool\n'
PIXEL = base64.b64decode(
    b"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)


def block(bench: Bench, expression: str) -> object:
    run = bench.python(f"mcp_tool.emit_json(mcp_tool.{expression})")
    assert run.exit_code == 0, run.stderr
    return run.result


def test_a_result_is_made_of_blocks(bench: Bench) -> None:
    run = bench.python("mcp_tool.result('one', mcp_tool.text_block('two'), structured={'n': 2}, meta={'k': 1})")

    assert run.result == {
        "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}],
        "isError": False,
        "structuredContent": {"n": 2},
        "_meta": {"k": 1},
    }


def test_a_result_may_be_an_error(bench: Bench) -> None:
    assert bench.python("mcp_tool.result('no', is_error=True)").result == {
        "content": [{"type": "text", "text": "no"}],
        "isError": True,
    }


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (
            "text_block('a', annotations={'priority': 1})",
            {"type": "text", "text": "a", "annotations": {"priority": 1}},
        ),
        ("image_block(b'ab', 'image/png')", {"type": "image", "data": "YWI=", "mimeType": "image/png"}),
        ("audio_block(b'ab', 'audio/wav')", {"type": "audio", "data": "YWI=", "mimeType": "audio/wav"}),
        (
            "resource_link_block('file:///a', 'a', mime_type='text/plain', size=0)",
            {"type": "resource_link", "uri": "file:///a", "name": "a", "mimeType": "text/plain", "size": 0},
        ),
        (
            "resource_link_block('file:///a', 'a', title='A', description='First')",
            {"type": "resource_link", "uri": "file:///a", "name": "a", "title": "A", "description": "First"},
        ),
        (
            "resource_block('x:a', 'text', 'text/plain')",
            {"type": "resource", "resource": {"uri": "x:a", "mimeType": "text/plain", "text": "text"}},
        ),
        ("resource_block('x:a', b'ab')", {"type": "resource", "resource": {"uri": "x:a", "blob": "YWI="}}),
    ],
)
def test_a_block_has_the_fields_of_its_kind(bench: Bench, expression: str, expected: object) -> None:
    assert block(bench, expression) == expected


@pytest.mark.parametrize(
    ("function", "name", "mime_type"), [("image_block", "a.png", "image/png"), ("audio_block", "a.mp3", "audio/mpeg")]
)
def test_the_type_of_a_file_comes_from_its_name(bench: Bench, function: str, name: str, mime_type: str) -> None:
    (bench.directory / name).write_bytes(b"\x00\xff")

    assert block(bench, f"{function}('{name}')") == {"type": mime_type[:5], "data": "AP8=", "mimeType": mime_type}


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("image_block(b'ab')", "ValueError: image_block: the MIME type is unknown"),
        ("image_block('plain')", "ValueError: image_block: the MIME type is unknown"),
        ("image_block(b'ab', 'audio/wav')", "ValueError: image_block: audio/wav is not image/"),
        ("audio_block(b'ab', 'image/png')", "ValueError: audio_block: image/png is not audio/"),
        ("image_block('gone.png')", "FileNotFoundError"),
        ("resource_link_block('', 'a')", "ValueError: resource_link_block: a URI and a name are required"),
        ("resource_link_block('x:a', '')", "ValueError: resource_link_block: a URI and a name are required"),
        ("resource_block('', 'a')", "ValueError: resource_block: a URI is required"),
    ],
)
def test_a_block_that_clients_would_refuse_is_not_printed(bench: Bench, expression: str, problem: str) -> None:
    (bench.directory / "plain").write_bytes(b"x")
    run = bench.python(f"mcp_tool.result(mcp_tool.{expression})")

    assert problem in run.stderr
    assert run.stdout == ""


@pytest.mark.parametrize(("value", "supports"), [("1", True), ("0", False), ("", False)])
def test_a_tool_sees_whether_the_client_shows_pages(bench: Bench, value: str, supports: bool) -> None:
    run = bench.python("print(mcp_tool.client_supports_ui())", MCPBASH_CLIENT_SUPPORTS_UI=value)

    assert run.stdout == f"{supports}\n"


@pytest.mark.parametrize(("value", "meta"), [("1", {"_meta": {"ui": {"resourceUri": "ui://s/p"}}}), ("0", {})])
def test_a_result_for_a_page_is_text_and_data(bench: Bench, value: str, meta: dict[str, object]) -> None:
    body = "mcp_tool.result_with_ui('Two rows', {'rows': [1, 2]}, uri='ui://s/p')"
    run = bench.python(body, MCPBASH_CLIENT_SUPPORTS_UI=value)

    assert run.result == {
        "content": [{"type": "text", "text": "Two rows"}],
        "isError": False,
        "structuredContent": {"rows": [1, 2]},
        **meta,
    }


def test_every_kind_of_block_reaches_a_client(project: ProjectBuilder, speak: Speak) -> None:
    (project.root / "pixel.png").write_bytes(PIXEL)
    body = """
mcp_tool.result(
    "text",
    mcp_tool.image_block("pixel.png"),
    mcp_tool.audio_block(b"sound", "audio/wav"),
    mcp_tool.resource_link_block("file:///a", "a"),
    mcp_tool.resource_block("x:a", "inside"),
    structured={"n": 5},
)"""
    project.python_tool("all.py", HEAD + body)
    result = speak().call_tool("all")

    assert [block["type"] for block in result["content"]] == ["text", "image", "audio", "resource_link", "resource"]
    assert base64.b64decode(result["content"][1]["data"]) == PIXEL
    assert result["structuredContent"] == {"n": 5}


def test_a_tool_embeds_a_file_by_its_path(project: ProjectBuilder, speak: Speak) -> None:
    project.write("notes.txt", "remember")
    project.python_tool("notes.py", HEAD + "mcp_tool.result_text_with_resource('ok', 'notes.txt')")
    [_, embedded] = speak().call_tool("notes")["content"]

    assert embedded["resource"]["text"] == "remember"
    assert Path(embedded["resource"]["uri"].removeprefix("file://")).name == "notes.txt"


def test_the_sdk_knows_the_content_types_of_the_server(bench: Bench) -> None:
    """The SDK runs inside tools and imports nothing of the server, so it has a table of its own."""
    body = """import mcp_tool
from mcp_tool_content import REQUIRED_MEMBERS
mcp_tool.emit_json(REQUIRED_MEMBERS)"""
    assert bench.python(body).result == {kind: list(row.required) for kind, row in CONTENT_TYPES.items()}
