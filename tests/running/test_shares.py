"""Shares of a pool, and places for which callers take turns."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import gevent
import pytest
from gevent.event import Event

from mcpgreen.running.processes.pipes import PLACES, OutputPlace
from mcpgreen.running.runner import Runner
from mcpgreen.running.schema_checks import MANY_SLOW, Schema, SchemaChecks
from mcpgreen.running.shares import Places, Shares


def take_all(shares: Shares, owner: Hashable) -> int:
    """How much it gets."""
    taken = 0
    while shares.has_room(owner):
        shares.take(owner)
        taken += 1
    return taken


@pytest.mark.parametrize(
    ("size", "first", "second", "third"), [(1, 1, 0, 0), (2, 1, 1, 0), (3, 2, 1, 0), (4, 3, 1, 0), (16, 12, 3, 1)]
)
def test_whoever_takes_all_it_can_get_leaves_some_for_the_next(size: int, first: int, second: int, third: int) -> None:
    shares = Shares(size)

    assert [take_all(shares, owner) for owner in "abc"] == [first, second, third]


def test_a_client_without_others_may_have_everything() -> None:
    assert take_all(Shares(16), None) == 16


def test_a_share_grows_when_others_give_theirs_back() -> None:
    shares = Shares(16)
    take_all(shares, "a")
    take_all(shares, "b")
    shares.give_back("a", 12)

    assert take_all(shares, "b") == 9
    shares.give_back("b", 12)
    assert (shares.held, shares.held_by("b")) == (0, 0)


def test_those_that_wait_take_turns_by_their_owners() -> None:
    places, order = Places(1), []

    def run(owner: str) -> None:
        places.acquire(owner)
        order.append(owner)
        gevent.sleep(0)
        places.release(owner)

    gevent.joinall([gevent.spawn(run, owner) for owner in "aaaabb"], timeout=60)

    assert "".join(order) == "aababa"  # the first has its place before anybody waits


def test_places_are_given_on_however_those_that_wait_end() -> None:
    places = Places(2)

    def run(owner: str) -> None:
        places.acquire(owner)
        try:
            gevent.sleep(60)
        finally:
            places.release(owner)

    waiting = [gevent.spawn(run, owner) for owner in "aaabbb"]
    gevent.sleep(0)
    assert places.free == 0
    waiting[0].kill(block=False)  # which gives its place on to one that is killed before it knows
    gevent.killall(waiting, block=True)

    assert places.free == 2


def test_one_caller_does_not_hold_all_places_for_large_outputs() -> None:
    places = Shares(PLACES)
    first = [OutputPlace(places, "a") for _ in range(PLACES)]

    assert [place.take() for place in first] == [True, True, False]
    assert OutputPlace(places, "b").take()


def test_a_schema_that_is_slow_again_and_again_leaves_a_process_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two callers with slow patterns held both."""
    checks, done, begun = SchemaChecks(Runner(directory="/"), timeout_secs=5), Event(), []

    def check(schema: Schema, encoded: bytes, *, is_lenient: bool) -> Any:
        begun.append(schema)
        done.wait()
        return {"problems": []}

    monkeypatch.setattr(checks, "_answer", check)
    slow, other = Schema({}, noun="argument"), Schema({}, noun="argument")
    judging = [gevent.spawn(checks.judge, slow, b"{}", is_lenient=False, owner=owner) for owner in "aabb"]
    gevent.sleep(0)
    assert begun == [slow, slow]
    slow.slow_checks = MANY_SLOW  # while others wait
    for first in judging[::2]:
        first.kill()
    judging.append(gevent.spawn(checks.judge, other, b"{}", is_lenient=False, owner="c"))
    gevent.sleep(0)

    assert begun[2:] == [slow, other]
    done.set()
    gevent.joinall(judging, timeout=60, raise_error=True)
    assert begun[4:] == [slow]
    assert not slow.is_slow
