"""The checker of messages itself: it must not let a bad message pass."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.client import ALL_REVISIONS, Json
from tests.support.validation import MODERN, SERVER_INFO, Invalid, check

TEXT = {"type": "text", "text": "hello"}
AUDIO = {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}
LINK = {"type": "resource_link", "uri": "a:b", "name": "b"}
WITH_BOOLEAN = {"type": "object", "properties": {"a": True}}
TOOL = {"name": "t", "inputSchema": {"type": "object"}}


def check_result(method: str, result: Json, revision: str) -> None:
    if revision == MODERN:
        meta = {SERVER_INFO: {"name": "s", "version": "1"}, **result.get("_meta", {})}
        result = {"resultType": "complete", **result, "_meta": meta}
        if method == "tools/list":
            result = {"ttlMs": 0, "cacheScope": "private", **result}
    message = {"jsonrpc": "2.0", "id": 1, "result": result}
    check(message, revision=revision, methods={1: method}, modern=[1] if revision == MODERN else [])


def check_message(message: Any, **options: Any) -> None:
    check(message, **{"revision": "2025-11-25", "methods": {1: "ping"}, **options})


@pytest.mark.parametrize("revision", ALL_REVISIONS)
@pytest.mark.parametrize(
    ("method", "result"),
    [
        ("tools/call", {"content": [TEXT], "isError": False}),
        ("tools/call", {"content": [], "_meta": {"anything": [1]}}),
        ("tools/list", {"tools": [TOOL], "nextCursor": "x"}),
    ],
)
def test_a_good_result_passes(method: str, result: Json, revision: str) -> None:
    check_result(method, result, revision)


@pytest.mark.parametrize("revision", ALL_REVISIONS)
@pytest.mark.parametrize(
    ("method", "result"),
    [
        ("tools/call", {}),
        ("tools/call", {"content": "text"}),
        ("tools/call", {"content": [{"type": "text"}]}),
        ("tools/call", {"content": [{"type": "video", "data": "AAAA"}]}),
        ("tools/call", {"content": [{"type": "image", "data": "?", "mimeType": "image/png"}]}),
        ("tools/call", {"content": [{**TEXT, "colour": "red"}]}),
        ("tools/call", {"content": [TEXT], "name": "t"}),
        ("tools/call", {"content": [TEXT], "isError": "yes"}),
        ("tools/list", {"tools": [{"name": "t"}]}),
        ("tools/list", {"tools": [{**TOOL, "path": "t.sh"}]}),
        ("tools/list", {"tools": [{**TOOL, "description": None}]}),
        ("tools/list", {"tools": [], "nextCursor": None}),
        ("tools/list", {"tools": [{**TOOL, "inputSchema": {"type": "array"}}]}),
    ],
)
def test_a_bad_result_is_noticed_in_every_revision(method: str, result: Json, revision: str) -> None:
    with pytest.raises(Invalid):
        check_result(method, result, revision)


@pytest.mark.parametrize(
    ("last_without", "method", "result"),
    [
        ("2024-11-05", "tools/call", {"content": [AUDIO]}),
        ("2025-03-26", "tools/call", {"content": [LINK]}),
        ("2025-03-26", "tools/call", {"content": [{**TEXT, "_meta": {}}]}),
        ("2025-03-26", "tools/call", {"content": [TEXT], "structuredContent": {}}),
        ("2025-11-25", "tools/call", {"content": [TEXT], "structuredContent": [1]}),
        ("2024-11-05", "tools/list", {"tools": [{**TOOL, "annotations": {}}]}),
        ("2025-03-26", "tools/list", {"tools": [{**TOOL, "title": "T"}]}),
        ("2025-06-18", "tools/list", {"tools": [{**TOOL, "icons": [{"src": "data:,"}]}]}),
        ("2025-11-25", "tools/list", {"tools": [{**TOOL, "outputSchema": {"type": "array"}}]}),
        ("2025-11-25", "tools/list", {"tools": [{**TOOL, "inputSchema": WITH_BOOLEAN}]}),
    ],
)
def test_a_member_passes_from_its_first_revision_on(last_without: str, method: str, result: Json) -> None:
    for revision in ALL_REVISIONS:
        if ALL_REVISIONS.index(revision) <= ALL_REVISIONS.index(last_without):
            with pytest.raises(Invalid):
                check_result(method, result, revision)
        else:
            check_result(method, result, revision)


@pytest.mark.parametrize(
    "message",
    [
        [],
        {"id": 1, "result": {}},
        {"jsonrpc": "2.0", "id": 1},
        {"jsonrpc": "2.0", "id": 1, "result": {}, "error": {"code": 1, "message": "x"}},
        {"jsonrpc": "2.0", "id": 1, "result": {}, "extra": 1},
        {"jsonrpc": "2.0", "id": None, "result": {}},
        {"jsonrpc": "2.0", "id": True, "result": {}},
        {"jsonrpc": "2.0", "id": 2, "result": {}},
        {"jsonrpc": "2.0", "id": 1, "result": []},
        {"jsonrpc": "2.0", "id": 1, "result": {"resultType": "complete"}},
        {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "x"}},
        {"jsonrpc": "2.0", "id": 1, "error": {"code": "1", "message": "x"}},
        {"jsonrpc": "2.0", "id": 1, "error": {"code": 1}},
        {"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "x", "more": 1}},
        {"jsonrpc": "2.0", "id": 7, "method": "tools/list"},
        {"jsonrpc": "2.0", "id": None, "method": "ping"},
        {"jsonrpc": "2.0", "id": 7, "method": "roots/list", "params": []},
        {"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": {"notifications": {}}},
        {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1}},
        {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1, "progressToken": 1, "x": 1}},
        {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "loud", "data": 1}},
    ],
)
def test_a_bad_envelope_or_notification_is_noticed(message: Any) -> None:
    with pytest.raises(Invalid):
        check_message(message)
