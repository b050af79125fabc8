"""Notice that a client goes while it is being served: nothing is read then that would tell."""

from __future__ import annotations

import select
from collections.abc import Callable
from typing import Any

import gevent

STEADY_LOOK_SECS = 0.25
READ_EVENT = 1
SIGNS = getattr(select, "POLLRDHUP", 0) | select.POLLHUP | select.POLLERR


class HangupWatch:
    """Of one socket, while somebody wants to know."""

    __slots__ = ("_callback", "_sock", "_watcher")

    def __init__(self, sock: Any) -> None:
        self._sock = sock
        self._watcher: Any = None
        self._callback: Callable[[], None] = self.stop

    def start(self, callback: Callable[[], None]) -> None:
        """Called in the hub, once. A request that is sent ahead is no such sign."""
        self._callback = callback
        if self._watcher is None:
            self._watcher = gevent.get_hub().loop.io(self._sock.fileno(), READ_EVENT)
            self._watcher.start(self._look)

    def stop(self) -> None:
        if self._watcher is not None:
            self._watcher.stop()
            self._watcher.close()
            self._watcher = None

    def _look(self) -> None:
        """There is something to read, or the end."""
        self.stop()
        if self._is_hung_up():
            self._callback()
            return
        # What was sent ahead would wake us again and again.
        self._watcher = gevent.get_hub().loop.timer(STEADY_LOOK_SECS, repeat=STEADY_LOOK_SECS)
        self._watcher.start(self._look_steadily)

    def _look_steadily(self) -> None:
        if self._is_hung_up():
            self.stop()
            self._callback()

    def _is_hung_up(self) -> bool:
        poller = select.poll()
        poller.register(self._sock.fileno(), SIGNS)
        return bool(poller.poll(0))
