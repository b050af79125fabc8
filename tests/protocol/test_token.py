"""The remote token as a pure part: who is admitted, and what strangers are told."""

from __future__ import annotations

from typing import Any

import pytest

from mcpgreen.errors import ProjectError
from mcpgreen.protocol.token import RemoteToken, configured_token
from mcpgreen.settings.table import load

SECRET = "0123456789abcdef" * 2
KEY, FALLBACK = "example/token", "token"


def token(*, fallback_key: str = FALLBACK, max_failures: int = 2) -> RemoteToken:
    return RemoteToken(SECRET, key=KEY, fallback_key=fallback_key, max_failures_per_min=max_failures)


@pytest.mark.parametrize(
    "meta", [{KEY: SECRET}, {FALLBACK: SECRET}, {KEY: "wrong", FALLBACK: SECRET}, {KEY: SECRET, FALLBACK: 3}]
)
def test_the_right_token_under_either_key_is_admitted_and_taken_out(meta: dict[str, Any]) -> None:
    params = {"_meta": {**meta, "progressToken": 1}}

    assert token().admits(params)
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
    assert not token().admits(params)
    assert not token(fallback_key="").admits(params)


def test_an_empty_second_key_is_no_key() -> None:
    assert not token(fallback_key="").admits({"_meta": {FALLBACK: SECRET}})


def test_after_so_many_failures_in_a_minute_strangers_are_throttled() -> None:
    guard = token(max_failures=2)
    told = [guard.refusal(now).message for now in (0.0, 10.0, 20.0, 59.0, 60.0, 61.0)]

    plain = "Remote token missing or invalid"
    assert told == [plain, plain, f"{plain} (throttled)", f"{plain} (throttled)", plain, f"{plain} (throttled)"]
    assert guard.refusal(62.0).code == -32602


def test_the_right_token_is_admitted_however_many_wrong_ones_came_before() -> None:
    guard = token(max_failures=1)
    for now in range(5):
        guard.refusal(float(now))

    assert guard.admits({"_meta": {KEY: SECRET}})


def test_without_a_limit_nobody_is_throttled() -> None:
    guard = token(max_failures=0)

    assert {guard.refusal(1.0).message for _ in range(50)} == {"Remote token missing or invalid"}


def test_none_is_asked_for_when_none_is_set() -> None:
    assert configured_token(load({}, {}, {})) is None


def test_a_token_that_could_be_guessed_is_refused_without_being_shown() -> None:
    weak = "abcdefg" * 4
    with pytest.raises(ProjectError, match="at least 32 characters") as caught:
        configured_token(load({}, {"MCPBASH_REMOTE_TOKEN": weak}, {}))

    assert "MCPBASH_REMOTE_TOKEN" in str(caught.value)
    assert weak not in str(caught.value)


def test_the_second_key_can_be_switched_off_by_an_empty_value() -> None:
    guard = configured_token(load({}, {"MCPGREEN_REMOTE_TOKEN": SECRET, "MCPGREEN_REMOTE_TOKEN_FALLBACK_KEY": ""}, {}))

    assert guard is not None
    assert not guard.admits({"_meta": {"remoteToken": SECRET}})
    assert guard.admits({"_meta": {"mcpbash/remoteToken": SECRET}})
