"""Server-sent events for the page: what waits for one connection, within bounds."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gevent.queue import Empty, Queue

from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json
from mcpgreen.transports.http.streams.events import HEADERS, KEEP_ALIVE, OPENED
from mcpgreen.transports.http.wire.connection import Connection, Response

KEEP_ALIVE_SECS = 15.0
MAX_WAITING = 500  # events, before those that may be lost are


class EventStream:
    """The body of one response. `on_over` is called once: when all is sent, or the client is gone."""

    def __init__(self, on_over: Callable[[], object]) -> None:
        self._on_over: Callable[[], object] | None = on_over
        self._waiting: Queue = Queue()

    @property
    def has_room(self) -> bool:
        return bool(self._waiting.qsize() < MAX_WAITING)

    def put(self, event: Json, name: str = "") -> None:
        """Send an event. Never waits; the caller asks `has_room` before events of which there may be many."""
        prefix = f"event: {name}\n".encode("ascii") if name else b""
        self._waiting.put(b"%bdata: %b\n\n" % (prefix, jsontext.dumps(event)))

    def end(self) -> None:
        """Nothing comes after what waits now."""
        self._waiting.put(b"")

    def response(self, connection: Connection) -> Response:
        connection.on_hangup(self.end)
        return Response("200 OK", list(HEADERS), self)

    def __iter__(self) -> Iterator[bytes]:
        yield OPENED
        while True:
            try:
                part = self._waiting.get(timeout=KEEP_ALIVE_SECS)
            except Empty:
                part = KEEP_ALIVE
            if not part:
                return
            yield part

    def close(self) -> None:
        """The connection calls this in any case."""
        on_over, self._on_over = self._on_over, None
        if on_over is not None:
            on_over()
