"""How often something is worth a line: what a client can bring about as fast as it likes must not fill a log."""

from __future__ import annotations

import time
from collections.abc import Callable

A_SECOND = 20


class Mentions:
    """Counts by kind, in each second anew. There are only a few kinds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._second = 0
        self._counts: dict[str, int] = {}

    def count(self, kind: str) -> int:
        """The how manieth of its kind in this second it is."""
        second = int(self._clock())
        if second != self._second:
            self._second = second
            self._counts.clear()
        self._counts[kind] = self._counts.get(kind, 0) + 1
        return self._counts[kind]
