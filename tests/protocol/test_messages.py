"""JSON-RPC envelopes: which ids are valid, and that a line is always one line of JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcpgreen.protocol import messages


@pytest.mark.requirement("P-026")
@pytest.mark.parametrize("id", [0, -1, "", "1", 1, 2**60, 10**30, "\u20ac"])
def test_a_string_or_an_integer_is_an_id(id: Any) -> None:
    assert messages.normal_id(id) == id
    assert type(messages.normal_id(id)) is type(id)


@pytest.mark.requirement("P-027")
@pytest.mark.parametrize("id", [1.0, -2.0, 1e3])
def test_a_float_without_fraction_is_that_integer(id: float) -> None:
    assert type(messages.normal_id(id)) is int
    assert messages.normal_id(id) == id


@pytest.mark.requirement("P-027")
@pytest.mark.parametrize("id", [None, True, False, 1.5, {}, [], float("inf"), float("nan")])
def test_anything_else_is_no_id(id: Any) -> None:
    assert messages.normal_id(id) is None


@pytest.mark.requirement("P-013", "P-028")
@pytest.mark.parametrize("id", [0, -1, "", "1", 1, 2**60, 10**30, 'quo"te', "new\nline"])
def test_a_reply_carries_the_id_with_its_type(id: Any) -> None:
    for line in (messages.response(id, b"{}"), messages.error(id, {"code": 1, "message": "x"})):
        echoed = json.loads(line)["id"]
        assert type(echoed) is type(id)
        assert echoed == id


@pytest.mark.requirement("P-010")
def test_an_error_without_a_usable_id_has_no_id_member() -> None:
    line = messages.error(None, {"code": -32700, "message": "Parse error"})

    assert json.loads(line) == {"jsonrpc": "2.0", "error": {"code": -32700, "message": "Parse error"}}


@pytest.mark.requirement("P-020")
@pytest.mark.parametrize("text", ["a\nb", "a\r\nb", "\u2028\u2029\x85", "\x00"])
def test_a_message_never_holds_a_line_break(text: str) -> None:
    line = messages.notification("notifications/message", {"level": "info", "data": text})

    assert len(line.decode("utf-8").splitlines()) == 1
    assert json.loads(line)["params"]["data"] == text


@pytest.mark.requirement("P-115")
def test_a_lone_surrogate_does_not_reach_the_wire() -> None:
    line = messages.notification("notifications/message", {"level": "info", "data": "a\ud800b"})

    assert json.loads(line)["params"]["data"] == "a\ufffdb"


def test_a_notification_without_params_has_no_params_member() -> None:
    assert json.loads(messages.notification("x")) == {"jsonrpc": "2.0", "method": "x"}
