"""Results of shell tools with files, pictures, sound, links and pages; through the bench and through the server."""

from __future__ import annotations

import base64
import json
import shutil
from typing import Any

import pytest

from tests.support.project import ProjectBuilder
from tests.support.wire import Start

from .conftest import SDK, Bench

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 300


def test_a_picture_is_encoded_and_its_type_known_by_its_name(either: Bench) -> None:
    (either.directory / "a b.PNG").write_bytes(PNG)
    run = either.shell("mcp_result_image 'a b.PNG' --text 'A \"chart\"'")
    assert run.exit_code == 0
    assert run.stdout.count("\n") == 1
    assert run.result == {
        "content": [
            {"type": "text", "text": 'A "chart"'},
            {"type": "image", "data": base64.b64encode(PNG).decode(), "mimeType": "image/png"},
        ],
        "isError": False,
    }


@pytest.mark.parametrize(
    ("name", "mime"),
    [
        ("x.jpg", "image/jpeg"),
        ("x.JPEG", "image/jpeg"),
        ("x.gif", "image/gif"),
        ("x.webp", "image/webp"),
        ("x.svg", "image/svg+xml"),
        ("x.wav", "audio/wav"),
        ("x.mp3", "audio/mpeg"),
        ("x.ogg", "audio/ogg"),
        ("x.flac", "audio/flac"),
        ("x.m4a", "audio/mp4"),
    ],
)
def test_pictures_and_sounds_are_known_by_their_names(either: Bench, name: str, mime: str) -> None:
    (either.directory / name).write_bytes(b"x")
    kind = mime.partition("/")[0]
    run = either.shell(f"mcp_result_{kind} {name}")
    assert run.result["content"] == [{"type": kind, "data": "eA==", "mimeType": mime}]


@pytest.mark.skipif(shutil.which("file") is None, reason="file(1) is not on PATH")
def test_a_picture_without_a_telling_name_is_recognised(either: Bench) -> None:
    (either.directory / "x").write_bytes(b"GIF89a\x01\x00\x01\x00\x00\x00\x00;")
    assert either.shell("mcp_result_image x").result["content"][0]["mimeType"] == "image/gif"


def test_encoded_data_is_taken_as_it_is_without_its_line_breaks(either: Bench) -> None:
    run = either.shell("mcp_result_audio --base64 $'YW\\nJj\\n' --mime audio/wav")
    assert run.result["content"] == [{"type": "audio", "data": "YWJj", "mimeType": "audio/wav"}]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("mcp_result_image", "mcp_result_image: cannot read a file without a name"),
        ("mcp_result_image gone.png", "mcp_result_image: cannot read gone.png"),
        ("mcp_result_image .", "mcp_result_image: cannot read ."),
        ("mcp_result_image empty.png", "mcp_result_image: cannot read empty.png"),
        ("mcp_result_audio x.png", "mcp_result_audio: --mime must be a type such as audio/…, found image/png"),
        ("mcp_result_image -", "mcp_result_image: --mime must be a type such as image/…, found none"),
        ("mcp_result_image --base64 '%' --mime image/png", "mcp_result_image: the data is not base64"),
        ("mcp_result_image --base64 '' --mime image/png", "mcp_result_image: the data is not base64"),
        ("mcp_result_image x.png --mime", "mcp_result_image: --mime needs a value"),
        ("mcp_result_image x.png --loud", "mcp_result_image: unknown option --loud"),
        ("mcp_result_resource_link", "mcp_result_resource_link: the first argument must be a URI, found nothing"),
        ("mcp_result_resource_link /x n", "mcp_result_resource_link: the first argument must be a URI, found /x"),
        ("mcp_result_resource_link file:///x", "mcp_result_resource_link: the second argument must be a name"),
        ("mcp_result_resource_link file:///x n --size x", "mcp_result_resource_link: --size must be a number of bytes"),
        ("mcp_result_resource_link file:///x n --mime", "mcp_result_resource_link: --mime needs a value"),
        ("mcp_result_resource_link file:///x n --loud 1", "mcp_result_resource_link: unknown option --loud"),
    ],
)
def test_what_cannot_be_shown_is_an_error_for_the_model(either: Bench, call: str, message: str) -> None:
    (either.directory / "x.png").write_bytes(b"x")
    (either.directory / "empty.png").touch()
    run = either.shell(f"{call} >&2; echo went on", LANG="C.UTF-8")
    warning, result = run.stderr.splitlines()
    assert (run.stdout, warning, json.loads(result)["isError"]) == ("went on\n", message, True)
    assert json.loads(result)["content"][0]["text"] == message


def test_a_link_to_a_resource_says_what_it_is(either: Bench) -> None:
    options = "--title 'The report' --description d --mime text/csv --size 12 --text 'See \"r\"'"
    run = either.shell(f"mcp_result_resource_link file:///r.csv 'r \"1\"' {options}")
    assert run.result == {
        "content": [
            {"type": "text", "text": 'See "r"'},
            {
                "type": "resource_link",
                "uri": "file:///r.csv",
                "name": 'r "1"',
                "title": "The report",
                "description": "d",
                "mimeType": "text/csv",
                "size": 12,
            },
        ],
        "isError": False,
    }


def test_clients_get_pictures_and_links(project: ProjectBuilder, start: Start) -> None:
    project.tool("chart", 'source "${MCP_SDK:?}/tool-sdk.sh"; printf abc >c.png; mcp_result_image c.png --text Chart')
    project.tool("link", 'source "${MCP_SDK:?}/tool-sdk.sh"; mcp_result_resource_link https://example.com/ home')
    client = start().greeted()
    assert client.call_tool("chart")["content"] == [
        {"type": "text", "text": "Chart"},
        {"type": "image", "data": "YWJj", "mimeType": "image/png"},
    ]
    assert client.call_tool("link")["content"] == [
        {"type": "resource_link", "uri": "https://example.com/", "name": "home"}
    ]


@pytest.mark.parametrize(("value", "shows"), [("1", "yes"), ("true", "yes"), ("0", "no"), ("", "no")])
def test_the_server_says_whether_the_client_shows_pages(either: Bench, value: str, shows: str) -> None:
    run = either.shell("mcp_client_supports_ui && echo yes || echo no", MCPBASH_CLIENT_SUPPORTS_UI=value)
    assert run.stdout == f"{shows}\n"


@pytest.mark.parametrize(
    ("call", "supports", "result"),
    [
        ("ui ui://x Text", "1", {"content": [{"type": "text", "text": "Text"}], "isError": False}),
        (
            "ui_data ui://x Text '{ \"a\": 1 }'",
            "1",
            {"content": [{"type": "text", "text": "Text"}], "structuredContent": {"a": 1}, "isError": False},
        ),
        (
            "ui_data ui://x 'Plain text' '{\"a\":1}'",
            "0",
            {"content": [{"type": "text", "text": "Plain text"}], "structuredContent": {"a": 1}, "isError": False},
        ),
        ("ui ui://x Text null", "1", {"content": [{"type": "text", "text": "Text"}], "isError": False}),
    ],
)
def test_a_result_for_a_page_reads_well_without_it(
    either: Bench, call: str, supports: str, result: dict[str, Any]
) -> None:
    assert either.shell(f"mcp_result_with_{call}", MCPBASH_CLIENT_SUPPORTS_UI=supports).result == result


@pytest.mark.parametrize(
    ("arguments", "visibility"), [("", ["model", "app"]), ("app", ["app"]), ("model,app", ["model", "app"])]
)
def test_the_metadata_of_a_tool_names_its_page(either: Bench, arguments: str, visibility: list[str]) -> None:
    run = either.shell(f"mcp_tool_meta_with_ui ui://s/x {arguments}")
    assert run.result == {"ui": {"resourceUri": "ui://s/x", "visibility": visibility}}


FORM = {"fields": [{"name": "title"}], "submitTool": "save"}


def test_pages_are_made_from_templates(either: Bench) -> None:
    form = either.shell('mcp_ui_form "$CONFIG" "New <task>"', CONFIG=json.dumps(FORM))
    assert (form.exit_code, form.stderr) == (0, "")
    assert form.stdout.lower().startswith("<!doctype html>")
    assert "New &lt;task&gt;" in form.stdout
    table = either.shell('mcp_ui_table "$CONFIG"', CONFIG='{"columns": [{"key": "name"}]}')
    assert (table.exit_code, '"columns"' in table.stdout) == (0, True)


@pytest.mark.parametrize(
    ("config", "reason"),
    [("{x", "the configuration must be a JSON object"), ("[]", "the configuration"), ("{}", "fields")],
)
def test_a_page_that_cannot_be_made_says_why(either: Bench, config: str, reason: str) -> None:
    run = either.shell('mcp_ui_form "$CONFIG" || echo $?', CONFIG=config)
    assert run.stdout == "1\n"
    assert run.stderr.startswith("mcp_ui_form: ")
    assert reason in run.stderr


def test_a_python_without_the_server_makes_no_pages(either: Bench) -> None:
    run = either.shell("mcp_ui_form '{}' || echo $?", MCPBASH_HOME="/nonexistent/mcpgreen", PYTHONPATH="/nonexistent")
    assert run.stdout == "1\n"
    assert "Traceback" not in run.stderr
    assert SDK.is_dir()
