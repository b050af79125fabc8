"""Long work in short turns, so that whoever else is served by the hub is served meanwhile."""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import Any

import gevent
from gevent.hub import Waiter

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


class Queue:
    """So many at a time, `with` this, in the order in which they came. As a Semaphore; but thousands may wait here and
    be killed together, and there each that leaves would be looked for among all the others."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._waiting: OrderedDict[Any, None] = OrderedDict()

    def __enter__(self) -> Queue:
        if self._free:
            self._free -= 1
            return self
        waiter = Waiter()
        self._waiting[waiter] = None
        try:
            waiter.get()
        except BaseException:
            if waiter in self._waiting:
                del self._waiting[waiter]
            else:
                self._leave()  # it was our turn already
            raise
        return self

    def __exit__(self, *_: Any) -> None:
        self._leave()

    def _leave(self) -> None:
        if self._waiting:
            waiter, _ = self._waiting.popitem(last=False)
            gevent.get_hub().loop.run_callback(waiter.switch, None)
        else:
            self._free += 1


class OneAtATime(Turns):
    """For the work of many greenlets, `with` this: each of many who take a short turn would be one too many."""

    def __init__(self) -> None:
        super().__init__()
        self._queue = Queue(1)

    def __enter__(self) -> OneAtATime:
        self._queue.__enter__()
        return self

    def __exit__(self, *_: Any) -> None:
        try:
            self.pause()
        finally:
            self._queue.__exit__()
