"""A queue for greenlets: in order, so many at a time, and nobody who is killed takes a place along."""

from __future__ import annotations

import gevent
import pytest

from mcpgreen.running.shares import OneAtATime, Places, Starts


def enter(queue: Places, number: int, inside: list[int], done: list[int]) -> None:
    with queue:
        inside.append(number)
        gevent.sleep(0)
        inside.remove(number)
        done.append(number)


@pytest.mark.parametrize("places", [1, 3])
def test_everybody_gets_in_and_in_order(places: int) -> None:
    queue, inside, done = Places(places), [], []
    most = 0

    def watch() -> None:
        nonlocal most
        while len(done) < 20:
            most = max(most, len(inside))
            gevent.sleep(0)

    gevent.joinall([gevent.spawn(watch), *(gevent.spawn(enter, queue, each, inside, done) for each in range(20))])

    assert done == list(range(20))
    assert most == places


@pytest.mark.parametrize("turns_before", range(4))
def test_a_greenlet_that_is_killed_leaves_its_place_to_others(turns_before: int) -> None:
    """Also at the very moment at which it gets its place."""
    for queue in (Places(1), OneAtATime(), Starts()):
        inside, done = [], []
        greenlets = [gevent.spawn(enter, queue, each, inside, done) for each in range(6)]
        for _ in range(turns_before):
            gevent.sleep(0)
        gevent.killall(greenlets[:4], block=False)
        gevent.joinall(greenlets, timeout=120)

        assert done[-2:] == [4, 5]
        with queue:
            pass


@pytest.mark.parametrize("victim", range(3))
def test_a_greenlet_that_is_killed_right_after_it_got_a_place_passes_it_on(victim: int) -> None:
    queue = Places(1)
    done: list[int] = []
    inside: list[int] = []
    queue.__enter__()
    waiting = [gevent.spawn(enter, queue, each, inside, done) for each in range(3)]
    gevent.sleep(0)
    queue.__exit__()  # the first one's turn, but it does not know yet
    waiting[victim].kill(block=False)
    gevent.joinall(waiting, timeout=120)

    assert done == [each for each in range(3) if each != victim] or (victim == 0 and done == [0, 1, 2])
