"""Messages that came together and take long: they wait here, and are served in turns with everything else.

Sixty kilobytes hold seven hundred requests, and each may need a look at the disk. Meanwhile the reader goes on, and
serves urgent messages, such as a ping, at once: those never come here.

Rule: while one message waits or is being served, all messages that are not urgent wait behind it. A client may rely on
their order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import gevent
from gevent.event import Event

from mcpgreen.links.sink import Sink
from mcpgreen.protocol.messages import normal_id
from mcpgreen.running.shares import Turns
from mcpgreen.text.json_types import Json

DROPPED: Any = object()  # the only key of a request that was cancelled; no client can send it


class PostponedMessages:
    """The postponed messages of one link; true while there are any. `serve` is called with a message, the sink and the
    weight of the message. It should never raise; if it does, `on_fault` is called."""

    def __init__(
        self,
        serve: Callable[[object, Sink, int], None],
        sink: Sink,
        *,
        max_bytes: int,
        on_fault: Callable[[Any], object],
    ) -> None:
        self._serve = serve
        self._sink = sink
        self._max_bytes = max_bytes
        self._on_fault = on_fault
        self._waiting: deque[tuple[object, int]] = deque()  # with their weights
        self._by_id: dict[str | int, Json] = {}  # the requests among them, and those in batches
        self._bytes = 0
        self._room = Event()
        self._room.set()
        self._greenlet: gevent.Greenlet | None = None  # that serves them, while there are any

    def __bool__(self) -> bool:
        return self._greenlet is not None

    def add(self, message: object, weight_bytes: int) -> None:
        self._waiting.append((message, weight_bytes))
        self._by_id.update(_requests_in(message))
        self._bytes += weight_bytes
        if self._bytes > self._max_bytes:
            self._room.clear()
        if self._greenlet is None:
            self._greenlet = gevent.spawn(self._run)
            self._greenlet.link_exception(self._on_fault)

    def drop(self, request_id: str | int) -> None:
        """Cancel the request with this id, the latest if there are several. If there is none, do nothing."""
        request = self._by_id.pop(request_id, None)
        if request is not None:
            request.clear()
            request[DROPPED] = True

    def wait_for_room(self) -> None:
        """Wait until they take less memory."""
        self._room.wait()

    def wait_until_served(self) -> None:
        if self._greenlet is not None:
            self._greenlet.join()

    def close(self) -> None:
        """Forget all messages."""
        greenlet, self._greenlet = self._greenlet, None
        if greenlet is not None:
            greenlet.kill(block=False)
        self._waiting.clear()
        self._by_id.clear()
        self._room.set()

    def _run(self) -> None:
        turns = Turns()
        while self._waiting:
            message, weight_bytes = self._waiting.popleft()
            if not is_dropped(message):
                requests = dict(_requests_in(message))
                self._serve(message, self._sink, weight_bytes)
                self._forget(requests)
                self._sink.wait_for_room()
            self._bytes -= weight_bytes
            if self._bytes <= self._max_bytes:
                self._room.set()
            turns.pause()
        self._greenlet = None

    def _forget(self, requests: dict[str | int, Json]) -> None:
        for request_id, request in requests.items():
            if self._by_id.get(request_id) is request:
                del self._by_id[request_id]


def is_dropped(message: object) -> bool:
    return type(message) is dict and DROPPED in message


def _requests_in(message: object) -> Iterator[tuple[str | int, Json]]:
    """The requests that can be cancelled, with their ids: the message itself, or members of a batch."""
    for each in message if type(message) is list else (message,):
        if type(each) is dict and each.get("method") != "initialize":
            request_id = normal_id(each.get("id"))
            if request_id is not None:
                yield request_id, each
