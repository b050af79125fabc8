"""The events of one or several running servers, as they happen."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import gevent
from gevent.event import Event as Bell

from mcpgreen.errors import UsageError
from mcpgreen.events import places
from mcpgreen.events.attach import Found, attach, running_servers
from mcpgreen.text.json_types import Json

LOOK_SECS = 1.0  # for servers that have started
Take = Callable[[Json, Json], object]  # gets the `server` event, and an event


def found_servers(wanted: str) -> list[Found]:
    """Return the servers that a person means: `all`, a process number, a name, or a directory. Raises UsageError."""
    servers = running_servers()
    if wanted == "all":
        return servers
    place = os.path.realpath(wanted)
    found = [
        each
        for each in servers
        if wanted in (str(each.pid), str(each.server.get("name"))) or each.server.get("project") == place
    ]
    if not found:
        raise UsageError(f"no server of yours runs that is called {wanted}; `mcpgreen watch` lists those that do")
    return found


class Feed:
    """Reads events in greenlets of its own. `ended` is set when no server is left, unless more may come (`all`)."""

    def __init__(self, take: Take, wanted: str) -> None:
        """Raises UsageError if there is no such server."""
        self.ended = Bell()
        self.servers = 0  # that are being read
        self._take = take
        self._seen: set[tuple[int, str]] = set()
        self._greenlets: set[Any] = set()
        for found in found_servers(wanted):
            self._follow(found.pid, found.path)
        if wanted == "all":
            self._spawn(self._look)

    def close(self) -> None:
        gevent.killall(list(self._greenlets))

    def _spawn(self, function: Callable[..., None], *values: Any) -> None:
        greenlet = gevent.spawn(function, *values)
        self._greenlets.add(greenlet)
        greenlet.rawlink(self._greenlets.discard)

    def _look(self) -> None:
        while True:
            gevent.sleep(LOOK_SECS)
            for pid, path in places.sockets(os.environ):
                if (pid, path) not in self._seen:
                    self._follow(pid, path)

    def _follow(self, pid: int, path: str) -> None:
        self._seen.add((pid, path))
        self.servers += 1
        self._spawn(self._read, pid, path)

    def _read(self, pid: int, path: str) -> None:
        server: Json = {}
        try:
            for event in attach(path):
                if event.get("kind") == "server":
                    server = event
                self._take(server, {**event, "server": pid})
        except OSError:
            pass  # it has ended, or is not ours
        finally:
            self._seen.discard((pid, path))
            self.servers -= 1
            if not self.servers:
                self.ended.set()
