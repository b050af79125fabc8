"""Server-sent events for the page: what waits for one connection, within bounds."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gevent.queue import Empty, Queue

from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json
from mcpgreen.transports.http.streams.events import HEADERS, KEEP_ALIVE, OPENED
from mcpgreen.transports.http.wire.connection import Connection, Response

KEEP_ALIVE_SECS = 15.0
MAX_WAITING_BYTES = 12 << 20  # before events that may be lost are; more than a server remembers


class EventStream:
    """The body of one response."""

    def __init__(self) -> None:
        self._on_over: Callable[[], object] | None = None
        self._waiting: Queue = Queue()
        self._waiting_bytes = 0

    @property
    def has_room(self) -> bool:
        return self._waiting_bytes < MAX_WAITING_BYTES

    def put(self, event: Json, name: str = "") -> None:
        """Send an event. Never waits; the caller asks `has_room` before events of which there may be many."""
        self.put_line(jsontext.dumps(event), f"event: {name}\n" if name else "")

    def put_line(self, line: bytes, head: str = "") -> None:
        self._waiting_bytes += len(line)
        self._waiting.put(b"%bdata: %b\n\n" % (head.encode("ascii"), line))

    def end(self) -> None:
        """Nothing comes after what waits now."""
        self._waiting.put(b"")

    def response(self, connection: Connection, on_over: Callable[[], object]) -> Response:
        """`on_over` is called once: when all is sent, or the client is gone."""
        self._on_over = on_over
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
            self._waiting_bytes = max(0, self._waiting_bytes - len(part))
            yield part

    def close(self) -> None:
        """The connection calls this in any case."""
        on_over, self._on_over = self._on_over, None
        if on_over is not None:
            on_over()
