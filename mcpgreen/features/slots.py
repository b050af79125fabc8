"""The places in which scripts run, of the server or of one tool.

Rule: a place that is taken is given back once, whatever happens to the call: see `Slot`.
"""

from __future__ import annotations

from gevent.lock import Semaphore

MOST_PLACES = 4096  # more scripts than that never run at a time


class Places:
    """So many at a time. How many may change while some are taken: then those that are too many are not given on."""

    def __init__(self, limit: int) -> None:
        self._limit = min(limit, MOST_PLACES)
        self._free = Semaphore(self._limit)
        self._too_many = 0
        self.acquire = self._free.acquire

    def release(self) -> None:
        if self._too_many:
            self._too_many -= 1
        else:
            self._free.release()

    def resize(self, limit: int) -> None:
        limit = min(limit, MOST_PLACES)
        for _ in range(self._limit, limit):
            self.release()
        for _ in range(limit, self._limit):
            if not self._free.acquire(blocking=False):
                self._too_many += 1
        self._limit = limit


class Slot:
    """One of the places in which scripts run. A call that waits for an answer leaves its own to others."""

    __slots__ = ("_is_held", "_is_over", "_slots")

    def __init__(self, slots: Semaphore | Places) -> None:
        self._slots = slots
        self._is_held = False
        self._is_over = False

    def leave(self) -> None:
        if self._is_held:
            self._is_held = False
            self._slots.release()

    def take(self) -> None:
        """May wait."""
        self._slots.acquire()
        if self._is_over:
            self._slots.release()  # the call has ended while its helper waited here
        else:
            self._is_held = True

    def __enter__(self) -> None:
        self.take()

    def __exit__(self, *_: object) -> None:
        self._is_over = True
        self.leave()
