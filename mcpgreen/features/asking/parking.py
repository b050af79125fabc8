"""Calls whose script waits for an answer that only another request can bring. Bounded in number and in time.

They belong to the server: the stream on which such a call came may be gone when its client comes back on another one.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Hashable
from typing import Any, NamedTuple

import gevent
from gevent.event import AsyncResult
from gevent.event import Event as Bell

from mcpgreen import journal
from mcpgreen.features.asking.interaction import Event
from mcpgreen.features.call import Call
from mcpgreen.links.sink import Line


class Parked(NamedTuple):
    """A call that was answered with input requests, and where its script gets the answers."""

    call: Call
    asked: dict[str, Any]
    answers: AsyncResult

    @property
    def is_past_waiting(self) -> bool:
        """Whether its script needs no answer any more: it is over, or lost patience."""
        return bool(self.answers.ready())

    def answer_with_what_is_asked(self, line: Line) -> None:
        """Nothing more of the call is written until another request adopts it."""
        interaction = self.call.interaction
        interaction.on(Event.PARK)
        interaction.adopted = Bell()
        self.call.leave_stream()
        self.call.sink.respond(line)  # not as a line of the call: it is to be written also if that is given up soon

    def stop_waiting(self) -> None:
        if not self.answers.ready():
            self.answers.set({})

    def resume(self, retry: Call) -> None:
        """Go on as the call of another request, which has brought the answers."""
        interaction = self.call.interaction
        interaction.on(Event.ADOPT)
        self.call.continue_as(retry)
        if interaction.adopted is not None:
            interaction.adopted.set()
        if not self.is_past_waiting:
            self.answers.set({key: retry.interaction.answers[key] for key in self.asked})


class Parking:
    """What is parked, by handles that nobody can guess."""

    def __init__(self, *, limit: int, ttl_secs: float) -> None:
        self._limit = limit
        self._ttl_secs = ttl_secs
        self._parked: dict[str, tuple[Parked, Any]] = {}  # with the timer of each

    @property
    def is_empty(self) -> bool:
        return not self._parked

    def add(self, parked: Parked) -> str:
        while self._parked and len(self._parked) >= self._limit:
            journal.warning("too many scripts wait for an answer; the oldest of who has most is stopped")
            self._give_up(self._oldest_of_greediest(parked.call.stream.owner))
        handle = os.urandom(16).hex()
        self._parked[handle] = parked, gevent.spawn_later(self._ttl_secs, self._give_up, handle)
        return handle

    def _oldest_of_greediest(self, newcomer: Hashable) -> str:
        """A client pushes out what another has parked only if it has less itself, with what it parks now."""
        owners = [parked.call.stream.owner for parked, _ in self._parked.values()]
        greediest, _ = Counter([*owners, newcomer]).most_common(1)[0]
        return next(handle for handle, owner in zip(self._parked, owners, strict=True) if owner == greediest)

    def require_scopes(self, handle: Any, retry: Call) -> None:
        """Raises InsufficientScope if whoever comes back may not use any more what is parked; it stays where it is."""
        if isinstance(handle, str) and handle in self._parked:
            parked, _ = self._parked[handle]
            retry.require_scopes(parked.call.required_scopes)

    def take(self, handle: Any) -> Parked | None:
        """Each handle once. None if it is unknown, used or too old."""
        if not isinstance(handle, str) or handle not in self._parked:
            return None
        parked, timer = self._parked.pop(handle)
        if timer is not gevent.getcurrent():
            timer.kill(block=False)
        return parked

    def clear(self) -> None:
        for handle in list(self._parked):
            self._give_up(handle)

    def _give_up(self, handle: str) -> None:
        """Nobody came back: end the script."""
        parked = self.take(handle)
        if parked is not None:
            parked.call.end_early(Event.GIVE_UP)
