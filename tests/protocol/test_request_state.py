"""A sealed state: opened where it was sealed, in time, for the same request; anything else is refused in one way."""

from __future__ import annotations

from typing import Any

import pytest

from mcpgreen.errors import InvalidParams
from mcpgreen.protocol.input.state import Seal

NOW = 1_800_000_000.0
IDENTITY = {"m": "tools/call", "t": "greet"}


@pytest.fixture
def seal() -> Seal:
    return Seal(b"k" * 32)


def closed(seal: Seal, **payload: Any) -> str:
    return seal.close({**IDENTITY, **payload}, expires_at=NOW + 60)


def refused(seal: Seal, state: Any, *, now: float = NOW, belongs_to: dict[str, Any] = IDENTITY) -> None:
    with pytest.raises(InvalidParams) as caught:
        seal.open(state, now=now, belongs_to=belongs_to)
    assert caught.value.message == "Invalid requestState"  # why, is for the operator


@pytest.mark.requirement("P-205")
@pytest.mark.parametrize("memo", [{}, {"who": {"action": "accept", "content": {"name": "Zoë \U0001f600", "n": 1.5}}}])
def test_what_was_sealed_is_opened_whole(seal: Seal, memo: dict[str, Any]) -> None:
    opened = seal.open(closed(seal, memo=memo, h="handle"), now=NOW + 59, belongs_to=IDENTITY)

    assert opened["memo"] == memo
    assert opened["h"] == "handle"


@pytest.mark.requirement("P-205")
def test_every_changed_character_is_noticed(seal: Seal) -> None:
    state = closed(seal, h="handle")

    # The last character of the MAC has bits that mean nothing.
    for index, character in enumerate(state[:-1]):
        refused(seal, state[:index] + ("A" if character != "A" else "B") + state[index + 1 :])


@pytest.mark.requirement("P-205")
@pytest.mark.parametrize(
    "state",
    [
        *("", "v1", "v1.", "v1..", "v2.e30.x", "null", "v1.e30.", "\ud800", "v1.\ud800.\ud800", "x" * 9_000_000),
        *(None, 5, True, [], {}, ["v1.e30.x"]),
    ],
    ids=lambda state: repr(state)[:20],
)
def test_rubbish_is_refused(seal: Seal, state: Any) -> None:
    refused(seal, state)


@pytest.mark.requirement("P-205")
def test_a_state_of_another_key_is_refused(seal: Seal) -> None:
    refused(seal, closed(Seal(b"other")))


@pytest.mark.requirement("P-205")
def test_a_state_is_refused_when_its_time_is_over(seal: Seal) -> None:
    refused(seal, closed(seal), now=NOW + 61)


@pytest.mark.requirement("P-205")
@pytest.mark.parametrize("other", [{"m": "prompts/get", "t": "greet"}, {"m": "tools/call", "t": "erase"}])
def test_a_state_of_another_request_is_refused(seal: Seal, other: dict[str, Any]) -> None:
    refused(seal, closed(seal), belongs_to=other)


def test_two_servers_with_one_key_open_each_other_s_states() -> None:
    assert Seal(b"shared").open(closed(Seal(b"shared")), now=NOW, belongs_to=IDENTITY)["t"] == "greet"
