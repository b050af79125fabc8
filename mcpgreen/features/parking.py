"""Calls whose script waits for an answer that only another request can bring. Bounded in number and in time."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import gevent
from gevent.event import AsyncResult

from mcpgreen import journal
from mcpgreen.features.call import Call


class Parked(NamedTuple):
    """A call that was answered with questions, and where its script gets the answers."""

    call: Call
    asked: dict[str, Any]
    answers: AsyncResult

    @property
    def is_past_waiting(self) -> bool:
        """Whether its script needs no answer any more: it is over, or lost patience."""
        return bool(self.answers.ready())

    def stop_waiting(self) -> None:
        if not self.answers.ready():
            self.answers.set({})

    def resume(self, retry: Call) -> None:
        """Go on as the call of another request, whose memo has the answers."""
        self.call.adopt(retry)
        if not self.is_past_waiting:
            self.answers.set({key: retry.memo[key] for key in self.asked})


class Parking:
    """What is parked, by handles that nobody can guess."""

    def __init__(self, *, limit: int, ttl_secs: float) -> None:
        self._limit = limit
        self._ttl_secs = ttl_secs
        self._parked: dict[str, Parked] = {}
        self._timers: dict[str, Any] = {}

    def __len__(self) -> int:
        return len(self._parked)

    def add(self, parked: Parked) -> str:
        while self._parked and len(self._parked) >= self._limit:
            oldest = next(iter(self._parked))
            journal.warning("too many scripts wait for an answer; the oldest is stopped")
            self._drop(oldest)
        handle = os.urandom(16).hex()
        self._parked[handle] = parked
        self._timers[handle] = gevent.spawn_later(self._ttl_secs, self._drop, handle)
        return handle

    def take(self, handle: Any) -> Parked | None:
        """Each handle once. None if it is unknown, used or too old."""
        parked = self._parked.pop(handle, None) if isinstance(handle, str) else None
        if parked is not None:
            self._timers.pop(handle).kill(block=False)
        return parked

    def drop_those_of(self, link: Any) -> None:
        for handle in [handle for handle, parked in self._parked.items() if parked.call.link is link]:
            self._drop(handle)

    def clear(self) -> None:
        for handle in list(self._parked):
            self._drop(handle)

    def _drop(self, handle: str) -> None:
        parked = self._parked.pop(handle, None)
        timer = self._timers.pop(handle, None)
        if timer is not None and timer is not gevent.getcurrent():
            timer.kill(block=False)
        if parked is not None:
            parked.call.give_up()
