"""Calls, put together from events: what `watch` shows, what filters choose from and what `trace` exports.

Bounded: the oldest calls that have ended are forgotten, and of a call with very many events the first and the last are
kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from mcpgreen.events.conventions import FAILURES, PARTS
from mcpgreen.text.json_types import Json

MAX_CALLS = 5000
MAX_EVENTS = 400  # of one call
HUNG_SECS = 30.0  # without a sign of life
FACTS = ("queued", "started", "exited", "task", "ended")  # kinds of events that describe the call as a whole
STATUS_AFTER = {"queued": "queued", "started": "running", "asked": "asks", "answered": "running"}


@dataclass(eq=False)
class Call:
    """One request."""

    number: int
    server: Json  # what is known by now of its server,
    opened: Json  # and of its client
    events: list[Json]
    about: Json = field(default_factory=dict)  # the fields of its events in `FACTS`
    status: str = "queued"
    at: float = 0.0  # when it came
    started_at: float | None = None
    ended_at: float | None = None  # a call that becomes a task goes on

    def take(self, event: Json) -> None:
        kind, at = event["kind"], float(event["at"])
        if kind == "output":  # it has what was printed before, too
            self.events[:] = [each for each in self.events if each.get("stream") != event["stream"]]
        if len(self.events) >= MAX_EVENTS:
            del self.events[MAX_EVENTS // 2]
        self.events.append(event)
        if kind in FACTS:
            self.about |= event
        if kind == "started":
            self.started_at = self.started_at or at
        if kind == "ended":
            self.status = str(event["outcome"])
            self.ended_at = None if self.status == "task" else at
        elif self.ended_at is None:
            listens = self.text("method") == "subscriptions/listen"
            self.status = "listens" if listens else STATUS_AFTER.get(kind, self.status)
        if kind == "queued":
            self.at = at
        elif "place" not in self.about:  # nobody looked when it came
            self.at = at - sum(self._told_ms()) / 1000

    def text(self, field: str) -> str:
        return str(self.about.get(field, ""))

    @property
    def client(self) -> str:
        only_one = {"name": self.server.get("client", "")} if self.server.get("transport") != "http" else {}
        return " ".join(str((self.opened.get("client") or only_one).get("name", "")).split())

    @property
    def is_failure(self) -> bool:
        return self.status in FAILURES

    @property
    def is_hung(self) -> bool:
        return self.status in ("queued", "running") and time.time() - float(self.events[-1]["at"]) > HUNG_SECS

    @property
    def parts_ms(self) -> tuple[float, ...]:
        """How long it waited, ran, and was written; until now, if it has not ended."""
        if self.ended_at is not None and (self.status != "cancelled" or self.started_at is None):
            return self._told_ms()
        end = self.ended_at or time.time()
        started_at = min(self.started_at or end, end)
        return max(0.0, started_at - self.at) * 1000, (end - started_at) * 1000, 0.0

    @property
    def took_ms(self) -> float:
        return sum(self.parts_ms)

    def _told_ms(self) -> tuple[float, ...]:
        return tuple(float(self.about.get(part, 0)) for part in PARTS)


class Calls:
    """The calls of all servers that are watched. `servers` has the latest that is known of each, by process number."""

    def __init__(self) -> None:
        self.servers: dict[int, Json] = {}
        self.lost = 0  # events that came too fast for us
        self._calls: dict[tuple[int, int], Call] = {}
        self._opened: dict[Any, Json] = {}  # by server and link
        self._frames: dict[Any, list[Json]] = {}  # by server, link and request id: they come before their calls

    def __len__(self) -> int:
        return len(self._calls)

    def chosen(self, is_wanted: Callable[[Call], bool] = lambda call: True) -> list[Call]:
        """Return the calls that are wanted, the oldest first."""
        return sorted(filter(is_wanted, self._calls.values()), key=lambda call: call.at)

    def take(self, event: Json) -> Call | None:
        """Take an event; return the call that it is about."""
        pid, kind, link = int(event["server"]), event["kind"], event.get("link")
        server, request = self.servers.setdefault(pid, {}), (pid, link, repr(event.get("id")))
        if "call" in event or kind == "ended":
            number = event.get("call") or -int(event["n"])  # refused before it became a call
            if (pid, number) not in self._calls:
                opened = self._opened.setdefault((pid, link), {})
                events = self._frames.get(request, []) if kind == "queued" else []
                self._calls[pid, number] = Call(number, server, opened, events)
                self._forget_old()
            call = self._calls[pid, number]
            call.take(event)
            return call
        if kind in ("server", "sample"):
            server.update(event)
        elif kind == "opened":
            self._opened.setdefault((pid, link), {}).update(event)
        elif kind == "closed" and link is None:
            server["has_ended"] = True
        elif kind == "lost":
            self.lost += int(event["count"])
        elif kind == "frame" and event["way"] == "in" and "method" in event:
            self._frames[request] = [event]
        elif kind == "frame" and "method" not in event and request in self._frames:
            self._frames[request].append(event)  # the answer to a quick request
        return None

    def _forget_old(self) -> None:
        for table in (self._opened, self._frames):
            while len(table) > MAX_CALLS:
                del table[next(iter(table))]
        if len(self._calls) > MAX_CALLS:
            over = (key for key, call in self._calls.items() if call.ended_at is not None)
            del self._calls[next(over, next(iter(self._calls)))]
