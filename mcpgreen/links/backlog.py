"""Messages that came together and take longer than whoever sends the next one should wait: kept, and served in turns.

Sixty kilobytes hold seven hundred requests, and each may need a look at the disk. What stands behind them in the pipe
is read meanwhile, and what is urgent there, such as a ping, is served at once: it never comes here.

Rule: as long as one message waits, or is being served, all that are not urgent wait behind it. A client may rely on
their order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import gevent
from gevent.event import Event

from mcpgreen.links.sink import Sink
from mcpgreen.running.turns import Turns


class Postponed:
    """A message, until it is served or nobody wants it any more."""

    __slots__ = ("is_dropped", "message", "request_id", "weight_bytes")

    def __init__(self, message: Any, request_id: str | int | None, weight_bytes: int) -> None:
        self.message = message
        self.request_id = request_id
        self.weight_bytes = weight_bytes
        self.is_dropped = False


class Backlog:
    """Those of one link. True while there are any. `serve` takes a message, the sink and its weight; `on_fault` is
    for what it should never raise."""

    def __init__(
        self, serve: Callable[[Any, Sink, int], None], sink: Sink, *, max_bytes: int, on_fault: Callable[[Any], object]
    ) -> None:
        self._serve = serve
        self._sink = sink
        self._max_bytes = max_bytes
        self._on_fault = on_fault
        self._waiting: deque[Postponed] = deque()
        self._by_id: dict[str | int, Postponed] = {}
        self._bytes = 0
        self._room = Event()
        self._room.set()
        self._greenlet: Any = None  # while there are any

    def __bool__(self) -> bool:
        return self._greenlet is not None

    def add(self, message: Any, weight_bytes: int, request_id: str | int | None) -> None:
        """With an id it can be dropped."""
        postponed = Postponed(message, request_id, weight_bytes)
        self._waiting.append(postponed)
        if request_id is not None:
            self._by_id[request_id] = postponed
        self._bytes += weight_bytes
        if self._bytes > self._max_bytes:
            self._room.clear()
        if self._greenlet is None:
            self._greenlet = gevent.spawn(self._run)
            self._greenlet.link_exception(self._on_fault)

    def drop(self, request_id: str | int) -> None:
        """The request with this id, the latest if there are several, is not wanted any more. That there is none is no
        error."""
        postponed = self._by_id.pop(request_id, None)
        if postponed is not None:
            postponed.is_dropped = True

    def wait_for_room(self) -> None:
        """Until they take less memory. Somebody is at work on that."""
        self._room.wait()

    def wait_until_served(self) -> None:
        if self._greenlet is not None:
            self._greenlet.join()

    def close(self) -> None:
        """Forget them."""
        greenlet, self._greenlet = self._greenlet, None
        if greenlet is not None:
            greenlet.kill(block=False)
        self._waiting.clear()
        self._by_id.clear()
        self._room.set()

    def _run(self) -> None:
        turns = Turns()
        while self._waiting:
            postponed = self._waiting.popleft()
            if postponed.request_id is not None and self._by_id.get(postponed.request_id) is postponed:
                del self._by_id[postponed.request_id]
            if not postponed.is_dropped:
                self._serve(postponed.message, self._sink, postponed.weight_bytes)
                self._sink.wait_for_room()
            self._bytes -= postponed.weight_bytes
            if self._bytes <= self._max_bytes:
                self._room.set()
            turns.pause()
        self._greenlet = None
