"""Look into running servers from another process: find them, and read their events.

Reading waits as gevent does: in a process with other greenlets, those go on.
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from typing import NamedTuple

import gevent
from gevent import socket
from gevent.queue import Empty, Queue

from mcpgreen.errors import UsageError
from mcpgreen.events import places
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

GREETING_SECS = 2.0
LOOK_SECS = 1.0  # for servers that have started
MAX_LINE_BYTES = 1 << 20
MAX_WAITING = 1000  # events; beyond that, it is the servers that leave some out


class Found(NamedTuple):
    """A running server: its process, its socket, and its `server` event."""

    pid: int
    path: str
    server: Json


def running_servers(environ: Mapping[str, str] = os.environ) -> list[Found]:
    """Return the servers of this user that offer their events, the oldest first. Sockets that nobody serves any more
    are removed."""
    found = []
    for pid, path in places.sockets(environ):
        try:
            with closing(attach(path, within_secs=GREETING_SECS)) as events:
                found.append(Found(pid, path, next(events)))
        except ConnectionRefusedError:
            with suppress(OSError):
                os.unlink(path)
        except (OSError, StopIteration):
            continue  # it ends just now, does not answer, or is not ours
    return sorted(found, key=lambda each: float(each.server.get("started_at", 0)))


def attach(path: str, *, within_secs: float | None = None) -> Generator[Json, None, None]:
    """Yield the events of the server with this socket: first `server`, then what it remembers, then what happens. The
    generator ends with the server; `close` ends it before. Raises OSError, also if the server belongs to another user,
    or sends nothing for `within_secs`."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection, suppress(ConnectionResetError):
        connection.settimeout(within_secs)
        connection.connect(path)
        places.peer_of(connection)
        with connection.makefile("rb") as lines:
            while (line := lines.readline(MAX_LINE_BYTES)).endswith(b"\n"):
                yield jsontext.loads(line)


def follow(wanted: str) -> Iterator[Json]:
    """Return the events of the servers that a person means: `all`, a process number, a name, or a directory. `server`
    in each is the process number. They end with the last server, those of `all` never. Raises UsageError."""
    found = [
        (pid, path)
        for pid, path, server in running_servers()
        if wanted in ("all", str(pid), server.get("name")) or os.path.realpath(wanted) == server.get("project")
    ]
    if not found and wanted != "all":
        raise UsageError(f"no server of yours runs that is called {wanted}; `mcpgreen watch` lists those that do")
    return _followed(found, looks_for_more=wanted == "all")


def _followed(found: Iterable[tuple[int, str]], *, looks_for_more: bool) -> Iterator[Json]:
    events: Queue[Json] = Queue(MAX_WAITING)
    reading: dict[int, gevent.Greenlet] = {}

    def read(pid: int, path: str) -> None:
        event: Json = {}
        with suppress(OSError):  # it ends just now, or is not ours
            for event in attach(path):
                events.put({**event, "server": pid})
        if event:
            events.put({"kind": "closed", "at": time.time(), "why": "the server has ended", "server": pid})
        del reading[pid]

    looked_at = time.monotonic()
    try:
        while found or reading or looks_for_more or not events.empty():
            for pid, path in found:
                if pid not in reading:
                    reading[pid] = gevent.spawn(read, pid, path)
            with suppress(Empty):
                yield events.get(timeout=LOOK_SECS)
            found = ()
            if looks_for_more and time.monotonic() - looked_at > LOOK_SECS:
                found, looked_at = places.sockets(os.environ), time.monotonic()
    finally:
        gevent.killall(list(reading.values()))
