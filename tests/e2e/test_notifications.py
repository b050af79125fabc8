"""What needs no answer gets none, whatever it says; responses to nothing are nothing."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.client import HANDSHAKE_REVISIONS, Speak
from tests.support.wire import Wire, modern_meta


@pytest.mark.requirement("P-023", "P-030")
@pytest.mark.parametrize("revision", HANDSHAKE_REVISIONS)
@pytest.mark.parametrize(
    "message",
    [
        {"method": "notifications/no-such"},
        {"method": "no/such"},
        {"method": "tools/list"},
        {"method": "tools/call", "params": {"name": "none"}},
        {"method": "initialize", "params": {"protocolVersion": "2025-11-25"}},
        {"method": "notifications/initialized"},
        {"method": "notifications/initialized", "params": 5},
        {"method": "notifications/message", "params": {"level": "info", "data": "x"}},
        {"method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}},
        {"method": "notifications/roots/list_changed"},
        {"method": "notifications/cancelled"},
        {"method": "notifications/cancelled", "params": []},
        {"method": "notifications/cancelled", "params": {"requestId": {}}},
        {"method": "notifications/cancelled", "params": {"requestId": None}},
        {"method": "notifications/cancelled", "params": {"requestId": 12345}},
        {"method": "exit"},
        {"method": "shutdown"},
        {"method": 5},
        {"method": "ping", "jsonrpc": "1.0"},
        {"method": "subscriptions/listen", "params": {"notifications": {}, "_meta": modern_meta()}},
        {"id": 99, "result": {}},
        {"id": "mg-1", "result": {"roots": []}},
        {"id": 99, "error": {"code": -1, "message": "x"}},
        {"id": None, "error": {"code": -1, "message": "x"}},
        {"result": {}},
        {"id": [], "result": 5},
    ],
    ids=str,
)
def test_notifications_and_responses_are_never_answered(shared_speak: Speak, revision: str, message: Any) -> None:
    wire = shared_speak(revision).wire
    seen_before = len(wire.seen)
    wire.send({"jsonrpc": "2.0", **message})

    assert wire.settle()[seen_before:] == []


@pytest.mark.requirement("P-023")
def test_notifications_before_the_handshake_are_dropped(wire: Wire) -> None:
    wire.notify("notifications/initialized")
    wire.notify("notifications/no-such")
    wire.notify("tools/list")

    assert wire.settle() == []
    assert wire.error("tools/list")["code"] == -32000
