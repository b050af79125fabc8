"""The places in which scripts run: none is ever lost."""

from __future__ import annotations

import gevent
from gevent.lock import Semaphore

from mcpgreen.features.slots import Slot


def test_who_gets_a_place_after_the_call_is_over_gives_it_back() -> None:
    """A helper waits to come back to the place of its call; the call ends in the very turn in which one is free."""
    slots = Semaphore(1)
    own, others = Slot(slots), Slot(slots)
    with own:
        own.leave()
        others.take()
        helper = gevent.spawn(own.take)
        gevent.sleep(0)
        others.leave()
    helper.join()

    assert slots.counter == 1


def test_a_place_is_given_back_once() -> None:
    slots = Semaphore(2)
    slot = Slot(slots)
    with slot:
        assert slots.counter == 1
        slot.leave()
        slot.leave()
        assert slots.counter == 2
        slot.take()

    assert slots.counter == 2
