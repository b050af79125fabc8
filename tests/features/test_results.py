"""From what a script prints to the result of the call."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support import ways
from tests.support.client import ALL_REVISIONS, HANDSHAKE_REVISIONS, Client, Speak
from tests.support.project import ProjectBuilder
from tests.support.wire import MODERN, Json, Start, text_of

way, project, shared_project = ways.way, ways.project, ways.shared_project

IMAGE = {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}
AUDIO = {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"}
LINK = {"type": "resource_link", "uri": "file:///x.txt", "name": "x.txt", "mimeType": "text/plain"}
EMBEDDED = {"type": "resource", "resource": {"uri": "file:///x.txt", "mimeType": "text/plain", "text": "x"}}
BLOB = {"type": "resource", "resource": {"uri": "file:///x.bin", "mimeType": "a/b", "blob": "AAAA"}}
TEXT = {"type": "text", "text": "hello", "annotations": {"audience": ["user"], "priority": 0.5}}
SINCE_STRUCTURE = ("2025-06-18", "2025-11-25", MODERN)


@pytest.fixture(scope="module", autouse=True)
def _tools(shared_project: ProjectBuilder) -> None:
    shared_project.tool("say", "exec cat output")
    shared_project.tool("bytes", r"printf 'a\xff\xfeb\xc3'; printf 'c\000d'; printf '\xed\xa0\x80'")


def said(client: Client, output: Any) -> Json:
    """The result of a tool that prints this."""
    text = output if isinstance(output, str) else json.dumps(output)
    (client.wire.root / "output").write_text(text, encoding="utf-8", newline="")
    return client.call_tool("say")


@pytest.mark.requirement("P-110")
@pytest.mark.parametrize("revision", ALL_REVISIONS)
@pytest.mark.parametrize(
    "output",
    [
        "hello\n",
        "",
        "  spaced  ",
        "42",
        "true",
        "null",
        '"quoted"',
        "[1,2]",
        '{"a":1}\n{"b":2}',
        '{"a":1',
        '{"content":[{"type":"text","text":"x"}],"structuredContent":{"ratio":NaN}}',
        '{"content":[{"type":"text","text":"x"}],"structuredContent":' + "[" * 200 + "]" * 200 + "} more",
        '{"content":[{"type":"text","text":"x"}],"structuredContent":{"ratio":1e999}}',
        "\u20ac\U0001f600",
    ],
    ids=ascii,
)
def test_text_is_one_block_verbatim(shared_speak: Speak, revision: str, output: str) -> None:
    result = said(shared_speak(revision), output)

    assert result["content"] == [{"type": "text", "text": output}]
    assert result["isError"] is False
    assert "structuredContent" not in result


@pytest.mark.requirement("P-003", "P-043")
@pytest.mark.parametrize("revision", ALL_REVISIONS)
@pytest.mark.parametrize(
    "value", [{"a": 1}, {}, {"nested": {"list": [1, {"b": None}]}}, {"content": "no list"}], ids=str
)
def test_a_json_object_is_structured_content_with_a_text_twin(shared_speak: Speak, revision: str, value: Json) -> None:
    result = said(shared_speak(revision), value)

    assert json.loads(text_of(result)) == value
    assert result.get("structuredContent") == (value if revision in SINCE_STRUCTURE else None)


@pytest.mark.requirement("P-004", "P-110")
@pytest.mark.parametrize("revision", ALL_REVISIONS)
def test_a_ready_made_result_passes_with_every_kind_of_block(shared_speak: Speak, revision: str) -> None:
    blocks = [TEXT, IMAGE, AUDIO, EMBEDDED, BLOB, LINK]
    content = said(shared_speak(revision), {"content": blocks, "isError": False})["content"]

    expected = list(blocks)
    if revision == "2024-11-05":
        assert content[2]["type"] == "resource"
        assert content[2]["resource"]["blob"] == AUDIO["data"]
        assert content[2]["resource"]["mimeType"] == "audio/wav"
        expected[2] = content[2]
    if revision in ("2024-11-05", "2025-03-26"):
        expected[5] = {"type": "text", "text": "x.txt <file:///x.txt>"}
    assert content == expected


@pytest.mark.requirement("P-043")
@pytest.mark.parametrize("revision", ALL_REVISIONS)
def test_members_of_blocks_that_came_later_are_dropped(shared_speak: Speak, revision: str) -> None:
    block = {**TEXT, "annotations": {"priority": 1, "lastModified": "2026-01-01T00:00:00Z"}, "_meta": {"a.b/c": 1}}
    (fitted,) = said(shared_speak(revision), {"content": [block], "isError": False})["content"]

    assert ("_meta" in fitted) == (revision in SINCE_STRUCTURE)
    assert ("lastModified" in fitted["annotations"]) == (revision in SINCE_STRUCTURE)


@pytest.mark.requirement("P-110")
@pytest.mark.parametrize("revision", ALL_REVISIONS)
def test_a_ready_made_error_passes_as_it_is(shared_speak: Speak, revision: str) -> None:
    result = said(shared_speak(revision), {"content": [TEXT], "isError": True, "_meta": {"com.example/why": "x"}})

    assert result["isError"] is True
    assert result["content"] == [TEXT]
    assert result["_meta"]["com.example/why"] == "x"


@pytest.mark.requirement("P-110")
def test_content_without_is_error_is_a_ready_made_result_too(shared_speak: Speak) -> None:
    result = said(shared_speak(), {"content": [IMAGE]})

    assert result["content"] == [IMAGE]
    assert result["isError"] is False


@pytest.mark.requirement("P-003", "P-043")
@pytest.mark.parametrize("revision", HANDSHAKE_REVISIONS)
def test_structured_content_that_a_revision_does_not_have_becomes_text(shared_speak: Speak, revision: str) -> None:
    """Otherwise such a client would get an empty result."""
    for value in ([1, 2], {"a": 1}) if revision in ("2024-11-05", "2025-03-26") else ([1, 2],):
        result = said(shared_speak(revision), {"content": [], "structuredContent": value, "isError": False})

        assert "structuredContent" not in result
        assert json.loads(text_of(result)) == value


@pytest.mark.requirement("P-111")
@pytest.mark.parametrize(
    "block",
    [
        {**IMAGE, "data": "not base64!"},
        {"type": "resource", "resource": {"uri": "a:b", "blob": "?"}},
        {"type": "resource", "resource": {"text": "no uri"}},
        {"type": "resource_link", "uri": "a:b"},
        {"type": "text"},
        {"type": "video", "data": "AAAA"},
    ],
    ids=str,
)
def test_a_block_that_clients_would_choke_on_is_an_error_result(shared_speak: Speak, block: Json) -> None:
    result = said(shared_speak(), {"content": [TEXT, block], "isError": False})

    assert result["isError"] is True
    assert "content[1]" in text_of(result)


@pytest.mark.requirement("P-115")
@pytest.mark.parametrize("revision", ALL_REVISIONS)
def test_bytes_that_are_no_text_are_replaced(shared_speak: Speak, revision: str) -> None:
    text = text_of(shared_speak(revision).call_tool("bytes"))

    assert text.startswith("a\ufffd\ufffdb\ufffdc\x00d\ufffd")


@pytest.mark.requirement("P-115")
def test_a_lone_surrogate_in_json_is_replaced(shared_speak: Speak) -> None:
    result = said(shared_speak(), r'{"a":"x\ud800y"}')

    assert result["structuredContent"] == {"a": "x\ufffdy"}


@pytest.mark.requirement("G-diagnostics")
@ways.cheapest(settings=[{}, {"result_meta": "always"}])
@pytest.mark.parametrize(
    ("settings", "meta"),
    [
        ({}, None),
        ({"result_meta": "failures"}, None),
        ({"result_meta": "never"}, None),
        ({"result_meta": "always"}, {"exitCode": 0, "stderr": "err in /usr/lib/x\n"}),
        ({"result_meta": "always", "tool_stderr_capture": "false"}, {"exitCode": 0}),
    ],
)
def test_a_success_tells_exit_code_and_stderr_only_where_a_setting_says_so(
    project: ProjectBuilder, speak: Speak, settings: dict[str, str], meta: dict[str, Any] | None
) -> None:
    """Many clients hand `_meta` to the model, and LangChain for JavaScript made JSON of a plain text because of it."""
    project.tool("chatty", "echo out; echo err in /usr/lib/x >&2")
    result = speak(**settings).call_tool("chatty")

    assert result.get("_meta") == meta
    assert text_of(result) == "out\n"


@pytest.mark.requirement("G-diagnostics")
@ways.cheapest(settings=[{}, {"result_meta": "always"}])
@pytest.mark.parametrize(
    ("settings", "meta"),
    [
        ({}, {"exitCode": 3, "stderr": "err in x\n"}),
        ({"tool_stderr_tail_limit": "5"}, {"exitCode": 3, "stderr": "in x\n"}),
        ({"tool_stderr_capture": "false"}, {"exitCode": 3}),
        ({"result_meta": "never"}, None),
        ({"result_meta": "always"}, {"exitCode": 3, "stderr": "err in /usr/lib/x\n"}),
    ],
)
def test_a_failure_tells_exit_code_and_stderr(
    project: ProjectBuilder, speak: Speak, way: str, settings: dict[str, str], meta: dict[str, Any] | None
) -> None:
    project.tool("failing", "echo err in /usr/lib/x >&2; exit 3")
    result = speak(**settings).call_tool("failing")

    assert (result.get("_meta"), text_of(result)) == (meta, ways.failure(way, 3, "err in x"))


@pytest.mark.requirement("G-diagnostics")
def test_only_the_end_of_a_long_stderr_is_told(project: ProjectBuilder, start: Start) -> None:
    project.tool("chatty", r"printf '%0100d\n' 0 >&2; printf 'the\000end' >&2; echo out")
    wire = start(tool_stderr_tail_limit=10, result_meta="always").greeted()

    assert wire.call_tool("chatty")["_meta"]["stderr"] == "00\ntheend"
