"""The remote token as a pure part: who is admitted, and what strangers are told."""

from __future__ import annotations

from typing import Any

import pytest

from mcpgreen.protocol import token as module
from mcpgreen.protocol.token import RemoteToken

SECRET = "0123456789abcdef" * 2
KEY, FALLBACK = "example/token", "remoteToken"


def token() -> RemoteToken:
    return RemoteToken(SECRET, key=KEY)


@pytest.mark.parametrize(
    "meta", [{KEY: SECRET}, {FALLBACK: SECRET}, {KEY: "wrong", FALLBACK: SECRET}, {KEY: SECRET, FALLBACK: 3}]
)
def test_the_right_token_under_either_key_is_admitted_and_taken_out(meta: dict[str, Any]) -> None:
    params = {"_meta": {**meta, "progressToken": 1}}

    assert token().take(params)
    assert params == {"_meta": {"progressToken": 1}}


@pytest.mark.parametrize(
    "params",
    [
        None,
        [],
        {},
        {"_meta": None},
        {"_meta": SECRET},
        {"_meta": {}},
        {KEY: SECRET},
        {"_meta": {KEY: SECRET[:-1]}},
        {"_meta": {KEY: SECRET + " "}},
        {"_meta": {KEY: SECRET.upper()}},
        {"_meta": {KEY: [SECRET]}},
        {"_meta": {KEY: None, FALLBACK: 7}},
        {"_meta": {KEY: "\ud800é"}},
        {"_meta": {"": SECRET}},
    ],
)
def test_everybody_else_is_a_stranger(params: Any) -> None:
    assert not token().take(params)


def test_after_so_many_failures_in_a_minute_strangers_are_throttled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_FAILURES_PER_MIN", 2)
    guard = token()
    told = [guard.refusal(now).message for now in (0.0, 10.0, 20.0, 59.0, 60.0, 61.0)]

    plain = "Remote token missing or invalid"
    assert told == [plain, plain, f"{plain} (throttled)", f"{plain} (throttled)", plain, f"{plain} (throttled)"]
    assert guard.refusal(62.0).code == -32602


def test_the_right_token_is_admitted_however_many_wrong_ones_came_before() -> None:
    guard = token()
    for now in range(15):
        guard.refusal(float(now))

    assert guard.take({"_meta": {KEY: SECRET}})
