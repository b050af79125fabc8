"""The requests that wait for a place to run: how many they are, and how much memory they take.

Both are bounded. Beyond the first bound requests are refused. Beyond the second a transport stops reading, which makes
the client wait; requests are refused only when reading had to go on all the same.
"""

from __future__ import annotations

from gevent.event import Event

from mcpgreen.errors import InternalError
from mcpgreen.links.stream import Request

REFUSED_FACTOR = 2  # of the memory at which reading pauses; what one read brings may always wait


class WaitingCalls:
    """The line in front of all scripts of one server."""

    def __init__(self, *, max_calls: int, max_bytes: int) -> None:
        self._max_calls = max_calls
        self._max_bytes = max_bytes
        self._calls: set[Request] = set()
        self._bytes = 0
        self._room = Event()
        self._room.set()

    def __len__(self) -> int:
        return len(self._calls)

    @property
    def is_heavy(self) -> bool:
        """Whether nothing more should be read."""
        return self._bytes > self._max_bytes

    def wait_for_room(self, secs: float) -> None:
        """At most so long."""
        self._room.wait(secs)

    def require_place(self, *, free_slots: int) -> None:
        """Raises InternalError if no more can wait."""
        if len(self._calls) - free_slots >= self._max_calls or self._bytes > REFUSED_FACTOR * self._max_bytes:
            raise InternalError("Too many requests are waiting; try again later.")

    def add(self, call: Request) -> None:
        self._calls.add(call)
        self._bytes += call.weight_bytes
        if self.is_heavy:
            self._room.clear()

    def remove(self, call: Request) -> None:
        """It runs now, or never will. That it was not waiting is no error."""
        if call in self._calls:
            self._calls.remove(call)
            self._bytes -= call.weight_bytes
            if not self.is_heavy:
                self._room.set()
