"""Long work in short turns, so that whoever else is served by the hub is served meanwhile."""

from __future__ import annotations

import time
from typing import Any

import gevent
from gevent.lock import Semaphore

TURN_SECS = 0.005
# A pause of nothing would not do: the hub takes up to fifty such turns before it looks at its descriptors.
PAUSE_SECS = 0.0005


class Turns:
    """For the work of one greenlet: call `pause` wherever it may be interrupted."""

    def __init__(self) -> None:
        self._since = time.monotonic()

    def pause(self) -> None:
        """Let others have their turn, if this one has been long."""
        if time.monotonic() - self._since > TURN_SECS:
            gevent.sleep(PAUSE_SECS)
            self._since = time.monotonic()


class OneAtATime(Turns):
    """For the work of many greenlets, `with` this: each of many who take a short turn would be one too many."""

    def __init__(self) -> None:
        super().__init__()
        self._turn = Semaphore(1)

    def __enter__(self) -> OneAtATime:
        self._turn.acquire()
        return self

    def __exit__(self, *_: Any) -> None:
        try:
            self.pause()
        finally:
            self._turn.release()
