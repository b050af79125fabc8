"""Look into running servers from another process: find them, and read their events.

Reading waits as gevent does: in a process with other greenlets, those go on.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping
from contextlib import closing, suppress
from typing import NamedTuple

from mcpgreen.events import places
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

GREETING_SECS = 2.0
READ_BYTES = 1 << 16
MAX_LINE_BYTES = 1 << 20


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
    from gevent import socket

    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(within_secs)
        connection.connect(path)
        places.peer_of(connection)
        rest = b""
        while chunk := connection.recv(READ_BYTES):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                yield jsontext.loads(line)
            if len(rest) > MAX_LINE_BYTES:
                raise OSError(f"{path} sends something that is no event")
    except ConnectionResetError:
        return
    finally:
        connection.close()
