"""Offer the events of a server on its socket, to viewers that belong to the same user.

A greenlet for each viewer writes what the viewer has yet to read: at most `MAX_UNSENT_BYTES`. A viewer that reads too
slowly loses events, and hears how many.

Rule: whatever fails here, the server serves on without viewers.
"""

from __future__ import annotations

import _socket  # `socket` itself takes milliseconds to import
import os
from collections.abc import Mapping
from contextlib import closing, suppress
from typing import Any

import gevent
from gevent.event import Event
from gevent.os import nb_write

from mcpgreen import journal
from mcpgreen.events import places
from mcpgreen.events.viewing import MAX_BYTES, Views

READ_EVENT = 1
MAX_VIEWERS = 8
GATHER_SECS = 0.02  # before events are sent: to wake the viewer for each would cost more than to make it
MAX_UNSENT_BYTES = MAX_BYTES + (1 << 20)  # the ring, and some more
WRITE_BYTES = 1 << 18  # at a time
ACCEPT_PAUSE_SECS = 0.05  # a script may try again and again


class Offer:
    """The socket of one server, from `Offer(...)` to `close`. Raises OSError if there is no place for it."""

    def __init__(self, views: Views, environ: Mapping[str, str]) -> None:
        self._views = views
        self._viewers: set[gevent.Greenlet] = set()
        self._socket = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        self._socket.setblocking(False)
        os.fchmod(self._socket.fileno(), 0o600)  # the file gets the same mode
        self.path = places.bind(self._socket, environ)
        self._socket.listen(MAX_VIEWERS)
        self._accepting = gevent.spawn(self._accept)

    def close(self) -> None:
        """End all viewers, and remove the socket."""
        gevent.killall([self._accepting, *self._viewers])
        self._socket.close()
        with suppress(OSError):
            os.unlink(self.path)
            os.rmdir(os.path.dirname(self.path))  # unless other servers have theirs there

    def _accept(self) -> None:
        with gevent.get_hub().loop.io(self._socket.fileno(), READ_EVENT) as comes:
            while True:
                gevent.get_hub().wait(comes)
                with suppress(OSError):  # it has left again, or there is no descriptor left
                    fd, _ = self._socket._accept()  # type: ignore[attr-defined]  # as `socket.socket.accept` does
                    self._admit(_socket.socket(fileno=fd))
                gevent.sleep(ACCEPT_PAUSE_SECS)

    def _admit(self, connection: Any) -> None:
        connection.setblocking(False)
        try:
            pid, problem = places.peer_of(connection), None
        except PermissionError as error:
            pid, problem = None, error.strerror
        if pid is not None and places.is_descendant(pid):
            problem = "a script of this server runs it"
        elif len(self._viewers) >= MAX_VIEWERS:
            problem = f"there are {MAX_VIEWERS} viewers already"
        if problem:
            journal.warning("a viewer was refused: %s", problem)
            connection.close()
        else:
            self._viewers.add(gevent.spawn(self._serve, connection))

    def _serve(self, connection: Any) -> None:
        """Write events to a viewer until it leaves. It has nothing to say: when there is something to be read, that is
        the end."""
        this, viewer, fd = gevent.getcurrent(), Viewer(), connection.fileno()
        with closing(connection), gevent.get_hub().loop.io(fd, READ_EVENT) as leaves, suppress(OSError):
            leaves.start(this.kill, gevent.GreenletExit, False)
            try:
                self._views.add(viewer.take)
                viewer.write_all(fd)
            finally:
                self._views.remove(viewer.take)
                self._viewers.discard(this)
                connection.send(viewer.unsent)  # as far as it takes that now


class Viewer:
    """What one viewer has yet to read."""

    def __init__(self) -> None:
        self.unsent = bytearray()  # lines
        self._lost = 0
        self._has_lines = Event()

    def take(self, line: bytes) -> None:
        if len(self.unsent) + len(line) > MAX_UNSENT_BYTES:
            self._lost += 1
            return
        if self._lost:
            self.unsent += b'{"kind":"lost","count":%d}\n' % self._lost
            self._lost = 0
        self.unsent += line
        self._has_lines.set()

    def write_all(self, fd: int) -> None:
        """Write lines as they come. Raises OSError when the viewer has left."""
        while self._has_lines.wait():
            gevent.sleep(GATHER_SECS)
            self._has_lines.clear()
            while self.unsent:
                written = nb_write(fd, self.unsent[:WRITE_BYTES])
                del self.unsent[:written]
