"""The servers that the page can look into: the one in this process, and all others of this user."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial

import gevent

from mcpgreen.cli.workbench.door import Rejected
from mcpgreen.cli.workbench.streams import EventStream
from mcpgreen.engine.server import Server
from mcpgreen.events import attach, places
from mcpgreen.text.json_types import Json
from mcpgreen.transports.http.responses import NOT_FOUND

OWN = "own"
SHOWN = ("pid", "project", "name", "transport", "client", "started_at", "calls", "failures")
ROOM_LOOK_SECS = 0.05


def running_servers(server: Server) -> list[Json]:
    """Return a row for each server, our own first. Waits for those that are slow to answer."""
    others = [(str(each.pid), each.server) for each in attach.running_servers() if each.pid != os.getpid()]
    found = [(OWN, server.observation.about()), *others]
    return [{"id": id, "own": id == OWN, **{name: about.get(name) for name in SHOWN}} for id, about in found]


def follow(server: Server, server_id: str, stream: EventStream) -> Callable[[], object]:
    """Send the events of a server to the stream; return the function that ends that. Raises Rejected."""
    if server_id == OWN:
        lost = 0

        def take(line: bytes) -> None:
            nonlocal lost
            if not stream.has_room:
                lost += 1
                return
            if lost:
                stream.put({"kind": "lost", "count": lost})
                lost = 0
            stream.put_line(line)

        server.observation.views.add(take)
        return partial(server.observation.views.remove, take)
    path = next((path for pid, path in places.sockets(os.environ) if str(pid) == server_id), None)
    if path is None:
        raise Rejected("This server is not running.", NOT_FOUND)
    return partial(gevent.spawn(_pass_on, path, stream).kill, block=False)


def _pass_on(path: str, stream: EventStream) -> None:
    """While the page does not read, this does not read either: the server knows what to leave out then."""
    try:
        for event in attach.attach(path):
            while not stream.has_room:
                gevent.sleep(ROOM_LOOK_SECS)
            stream.put(event)
    except OSError as error:
        stream.put({"kind": "closed", "why": str(error)})
    stream.end()
