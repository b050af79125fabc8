"""Look into running servers from another process: find them, and read their events.

Reading waits as gevent does: in a process with other greenlets, those go on.
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing, suppress
from math import inf

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


def running_servers(environ: Mapping[str, str] = os.environ) -> list[Json]:
    """Return the `server` event of each server of this user that offers its events, the oldest first. Sockets that
    nobody serves any more are removed."""
    found = []
    for pid, path in places.sockets(environ):
        try:
            with closing(attach(path, within_secs=GREETING_SECS)) as events:
                found.append({**next(events), "pid": pid})
        except ConnectionRefusedError:
            with suppress(OSError):
                os.unlink(path)
        except (OSError, StopIteration):
            continue  # it ends just now, does not answer, or is not ours
    return sorted(found, key=lambda each: float(each.get("started_at", 0)))


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
    if wanted == "all":
        return _followed(None)
    project = os.path.realpath(wanted)
    names = {each["pid"]: (str(each["pid"]), each.get("name"), each.get("project")) for each in running_servers()}
    pids = {pid for pid, known in names.items() if wanted in known or project in known}
    if not pids:
        raise UsageError(f"no server of yours runs that is called {wanted}; `mcpgreen watch` lists those that do")
    return _followed(pids)


def _followed(pids: set[int] | None) -> Iterator[Json]:
    """Follow these servers; with None all, also those that start later."""
    events: Queue[Json] = Queue(MAX_WAITING)
    reading: dict[str, gevent.Greenlet] = {}  # by socket

    def read(pid: int, path: str) -> None:
        event: Json = {}
        with suppress(OSError):  # it ends just now, or is not ours
            for event in attach(path):
                events.put({**event, "server": pid})
        if event:
            events.put({"kind": "closed", "at": time.time(), "why": "the server has ended", "server": pid})
        del reading[path]

    look_at = 0.0
    try:
        while look_at < inf or reading or not events.empty():
            if time.monotonic() >= look_at:
                for pid, path in places.sockets(os.environ):
                    if path not in reading and (pids is None or pid in pids):
                        reading[path] = gevent.spawn(read, pid, path)
                look_at = time.monotonic() + LOOK_SECS if pids is None else inf
            with suppress(Empty):
                yield events.get(timeout=LOOK_SECS)
    finally:
        gevent.killall(list(reading.values()))
