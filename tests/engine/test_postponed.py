"""Messages that wait for their turn, without a pipe: their order, how much of them is kept, and how they end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gevent

from mcpgreen.engine import link
from mcpgreen.engine.link import PostponedMessages
from mcpgreen.links.sink import MemorySink, Sink
from tests.support.effort import lines_run


class Office:
    """Serves what it gets, in a turn for each, and remembers it."""

    def __init__(self, *, max_bytes: int = 1000, on_serve: Callable[[Any], object] = lambda message: None) -> None:
        self.served: list[Any] = []
        self.faults: list[Any] = []
        self.sink = MemorySink()
        self._on_serve = on_serve
        self.postponed = PostponedMessages(self.sink, max_bytes=max_bytes)

    def serve(self, message: Any, sink: Sink, weight_bytes: int) -> None:
        self._on_serve(message["id"])
        self.served.append(message["id"])
        gevent.sleep(0)

    def add(self, *messages: int) -> None:
        for message in messages:
            self.postponed.add({"id": message, "method": "x"}, 100, self.serve, self.faults.append)


def test_reading_has_to_wait_once_messages_take_too_much_and_goes_on_when_some_are_served() -> None:
    office = Office(max_bytes=500)
    office.add(*range(5))
    office.postponed.wait_for_room()
    assert office.served == []  # there is room: nobody had to wait

    office.add(5, 6)
    office.postponed.wait_for_room()
    assert 2 <= len(office.served) < 7

    office.postponed.wait_until_served()
    assert office.served == [*range(7)]


def test_to_drop_one_of_many_takes_no_longer_than_one_of_few() -> None:
    """A cancellation for each of thousands would otherwise look through all of them."""
    office, small = Office(max_bytes=10**9), Office()
    office.add(*range(1000))
    small.add(999)
    effort, least = (lines_run(lambda o=o: o.postponed.drop(999), module=link) for o in (office, small))

    assert effort == least
    for id in range(999):
        office.postponed.drop(id)
    office.postponed.wait_until_served()
    small.postponed.wait_until_served()
    assert office.served == small.served == []
