"""Server-sent events for the page: of a request that it plays, or of a running server.

The servers that the page can look into are the one of this process, which is `own`, and all others of this user.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress

import gevent
from gevent.queue import Queue

from mcpgreen.cli.workbench.door import Rejected
from mcpgreen.events import attach, places
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json
from mcpgreen.transports.http.responses import NOT_FOUND
from mcpgreen.transports.http.streams.events import HEADERS, OPENED
from mcpgreen.transports.http.wire.connection import Connection, Response

OWN = "own"
MAX_WAITING_BYTES = 2 << 20  # before events that may be lost are
ROOM_LOOK_SECS = 0.05


class EventStream:
    """What waits for one connection."""

    def __init__(self) -> None:
        self._waiting: Queue = Queue()
        self._waiting_bytes = 0

    @property
    def has_room(self) -> bool:
        return self._waiting_bytes < MAX_WAITING_BYTES

    def put(self, event: Json, name: str = "message") -> None:
        """Send an event. Never waits; the caller asks `has_room` before events of which there may be many."""
        part = b"event: %b\ndata: %b\n\n" % (name.encode("ascii"), jsontext.dumps(event))
        self._waiting_bytes += len(part)
        self._waiting.put(part)

    def end(self) -> None:
        """Nothing comes after what waits now."""
        self._waiting.put(b"")

    def response(self, connection: Connection, on_over: Callable[[], object]) -> Response:
        """`on_over` is called when all is sent, or the client is gone."""
        connection.on_hangup(self.end)
        return Response("200 OK", list(HEADERS), self._parts(on_over))

    def _parts(self, on_over: Callable[[], object]) -> Iterator[bytes]:
        try:
            yield OPENED
            for part in iter(self._waiting.get, b""):
                self._waiting_bytes -= len(part)
                yield part
        finally:
            on_over()


def running_servers(environ: Mapping[str, str]) -> list[Json]:
    """Return a row for each server, our own first. Waits for those that are slow to answer."""
    found = sorted(attach.running_servers(environ), key=lambda each: _id_of(each["pid"]) != OWN)
    return [{"id": _id_of(each["pid"]), **each} for each in found]


def follow(server_id: str, stream: EventStream, environ: Mapping[str, str]) -> gevent.Greenlet:
    """Send the events of a server to the stream, in a greenlet. Raises Rejected."""
    path = next((path for pid, path in places.sockets(environ) if _id_of(pid) == server_id), None)
    if path is None and server_id != OWN:
        raise Rejected("This server is not running.", NOT_FOUND)
    # If there was no place for our own socket, the stream ends at once, and the page comes back for changes on disk.
    return gevent.spawn(_pass_on, path or "", stream)


def _id_of(pid: int) -> str:
    return OWN if pid == os.getpid() else str(pid)


def _pass_on(path: str, stream: EventStream) -> None:
    """While the page does not read, this does not read either: the server knows what to leave out then."""
    with suppress(OSError):
        for event in attach.attach(path):
            while not stream.has_room:
                gevent.sleep(ROOM_LOOK_SECS)
            stream.put(event)
    stream.end()
