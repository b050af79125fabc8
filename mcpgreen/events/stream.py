"""The stream of one server: code that sees something happen tells it here, and readers hear of the kinds they want.

The lines of the log are written by readers, and viewers are served by one (`viewing`).

Rules: while no reader wants a kind, telling it costs one comparison, at the place of the event:
`if "frame" in events.wants: events.tell("frame", ...)`. Telling never waits, and no reader disturbs what it reads of.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from mcpgreen import journal
from mcpgreen.text.json_types import Json


class Event(NamedTuple):
    """`fields` are as they were told: their secrets are still in them."""

    kind: str
    at: float  # seconds since 1970
    call: Any  # None, or a call: with a number, and a stream whose `link` is the number of the client
    fields: Json


MAX_EARLY = 200
Take = Callable[[Event], None]


class Events:
    """What is told before viewers can be served waits here: what serves them is imported after the first answers."""

    def __init__(self) -> None:
        self._early: list[Event] | None = []
        self.wants: frozenset[str] = frozenset()  # what any reader wants
        self._readers: dict[Take, frozenset[str]] = {}
        self._takers: tuple[tuple[Take, frozenset[str]], ...] = ()  # the same, of which no reader can take any away
        self._switches: list[tuple[str, Callable[[bool], None]]] = []

    def read(self, take: Take, kinds: Iterable[str]) -> None:
        """From now on, call `take` with each event of these kinds. Without kinds, call it no more."""
        self._readers.pop(take, None)
        if kinds := frozenset(kinds):
            self._readers[take] = kinds
        self._takers = tuple(self._readers.items())
        before, self.wants = self.wants, frozenset().union(*self._readers.values())
        for kind, switch in self._switches:
            if (kind in before) != (kind in self.wants):
                switch(kind in self.wants)

    def when_wanted(self, kind: str, switch: Callable[[bool], None]) -> None:
        """Call `switch` now and whenever it changes whether somebody wants this kind: for a place that must not even
        compare."""
        self._switches.append((kind, switch))
        switch(kind in self.wants)

    def take_early(self) -> list[Event]:
        """Return what waits. From now on, nothing does."""
        early, self._early = self._early, None
        return early or []

    def tell(self, kind: str, call: Any, fields: Json) -> None:
        event = Event(kind, time.time(), call, fields)
        if self._early is not None and len(self._early) < MAX_EARLY:
            self._early.append(event)
        for take, kinds in self._takers:
            try:
                if kind in kinds:
                    take(event)
            except Exception as error:  # as when no file can be opened: what happens goes on
                journal.error("cannot log a call: %s", error)
