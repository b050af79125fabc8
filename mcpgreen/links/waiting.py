"""The calls that wait for a place to run: how many there are, and how much memory they take.

Both are limited, and each caller has a share of both. Beyond the number, requests are refused. Beyond the memory, a
transport reads slowly, which makes the client wait; beyond twice the memory, requests are refused. Reading never stops,
because then nothing could be cancelled.
"""

from __future__ import annotations

from collections.abc import Hashable

from gevent.event import Event

from mcpgreen.errors import InternalError
from mcpgreen.links.session import Request
from mcpgreen.running.shares import Shares

MAX_QUEUED_REQUESTS = 4096
MAX_QUEUED_BYTES = 16 << 20  # of memory, roughly
REFUSED_FACTOR = 2  # times the memory beyond which reading is slow


class WaitingCalls:
    """The queue in front of all scripts of one server."""

    def __init__(self, *, max_calls: int, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._calls: dict[Request, Hashable] = {}  # with their owners
        self._places = Shares(max_calls)
        self._bytes = Shares(REFUSED_FACTOR * max_bytes)
        self._room = Event()
        self._room.set()

    def __len__(self) -> int:
        return len(self._calls)

    @property
    def is_heavy(self) -> bool:
        """Whether transports should read slowly."""
        return self._bytes.held > self._max_bytes

    def wait_for_room(self, secs: float) -> None:
        """Wait until they take less memory, at most so long."""
        self._room.wait(secs)

    def require_place(self, *, free_slots: int, owner: Hashable = None) -> None:
        """Raises InternalError if no more calls can wait, of all callers or of this one."""
        for whose, what in ((None, "requests"), (owner, "of your requests")):
            if not (self._places.has_room(whose, spare=free_slots) and self._bytes.has_room(whose, 0)):
                raise InternalError(f"Too many {what} are waiting; try again later.")

    def add(self, call: Request) -> None:
        owner = self._calls[call] = call.stream.owner
        self._places.take(owner)
        self._bytes.take(owner, call.weight_bytes)
        if self.is_heavy:
            self._room.clear()

    def remove(self, call: Request) -> None:
        """The call runs now, or never will. If it was not waiting, do nothing."""
        if call in self._calls:
            owner = self._calls.pop(call)
            self._places.give_back(owner)
            self._bytes.give_back(owner, call.weight_bytes)
            if not self.is_heavy:
                self._room.set()
