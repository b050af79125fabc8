"""The requests that wait for a place to run: how many they are, and how much memory they take.

Both are bounded. Beyond the first bound requests are refused. Beyond the second a transport reads slowly, which makes
the client wait, and beyond twice that requests are refused. Reading never stops: nothing could be cancelled then.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

from gevent.event import Event

from mcpgreen.errors import InternalError
from mcpgreen.links.stream import Request

REFUSED_FACTOR = 2  # of the memory from which on reading is slow
OWNERS_PART = 4  # one of many clients may take a quarter of all, and leaves the rest to the others


class Share(NamedTuple):
    """What the waiting requests of one client take."""

    calls: int
    bytes: int


NO_SHARE = Share(0, 0)


class WaitingCalls:
    """The line in front of all scripts of one server."""

    def __init__(self, *, max_calls: int, max_bytes: int) -> None:
        self._max_calls = max_calls
        self._max_bytes = max_bytes
        self._calls: set[Request] = set()
        self._bytes = 0
        self._share_of: dict[Hashable, Share] = {}
        self._room = Event()
        self._room.set()

    def __len__(self) -> int:
        return len(self._calls)

    @property
    def is_heavy(self) -> bool:
        """Whether less should be read."""
        return self._bytes > self._max_bytes

    def wait_for_room(self, secs: float) -> None:
        """At most so long."""
        self._room.wait(secs)

    def require_place(self, *, free_slots: int, owner: Hashable = None) -> None:
        """Raises InternalError if no more can wait."""
        if len(self._calls) - free_slots >= self._max_calls or self._bytes > REFUSED_FACTOR * self._max_bytes:
            raise InternalError("Too many requests are waiting; try again later.")
        share = self._share_of.get(owner)
        if share is not None and (
            OWNERS_PART * (share.calls - free_slots) >= self._max_calls or OWNERS_PART * share.bytes > self._max_bytes
        ):
            raise InternalError("Too many of your requests are waiting; try again later.")

    def add(self, call: Request) -> None:
        self._calls.add(call)
        self._bytes += call.weight_bytes
        owner = call.stream.owner
        if owner is not None:
            share = self._share_of.get(owner, NO_SHARE)
            self._share_of[owner] = Share(share.calls + 1, share.bytes + call.weight_bytes)
        if self.is_heavy:
            self._room.clear()

    def remove(self, call: Request) -> None:
        """It runs now, or never will. That it was not waiting is no error."""
        if call in self._calls:
            self._calls.remove(call)
            self._bytes -= call.weight_bytes
            self._take_from_share(call)
            if not self.is_heavy:
                self._room.set()

    def _take_from_share(self, call: Request) -> None:
        owner = call.stream.owner
        if owner is None:
            return
        share = self._share_of[owner]
        if share.calls == 1:
            del self._share_of[owner]
        else:
            self._share_of[owner] = Share(share.calls - 1, share.bytes - call.weight_bytes)
