"""Offer the events of a server on its socket. Everything happens in the hub: no greenlet, and no wait.

A viewer that does not read loses events and hears how many; the server holds at most `MAX_UNSENT_BYTES` for it.

Rule: whatever fails here, the server serves on without viewers.
"""

from __future__ import annotations

import _socket  # `socket` itself takes milliseconds to import
import errno
import os
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import gevent

from mcpgreen import journal
from mcpgreen.events import places
from mcpgreen.events.viewing import MAX_BYTES, Views
from mcpgreen.files.regular_files import private_directory

READ_EVENT, WRITE_EVENT = 1, 2
MAX_VIEWERS = 8
GATHER_SECS = 0.02  # before events are sent: to wake the viewer for each would cost more than to make it
MAX_UNSENT_BYTES = MAX_BYTES + (1 << 20)  # the ring, and some more
ACCEPTED_AT_A_TIME = 4
WRITTEN_AT_A_TIME = 1 << 18


class Offer:
    """The socket of one server, from `Offer(...)` to `close`. Raises OSError if there is no place for it."""

    def __init__(self, views: Views, environ: Mapping[str, str]) -> None:
        self._views = views
        self._viewers: set[Viewer] = set()
        self._directory = places.directory_of(environ)
        os.close(private_directory(self._directory))
        self.path = os.path.join(self._directory, f"{os.getpid()}{places.SUFFIX}")
        for pid, path in places.sockets(environ):
            if pid == os.getpid() or not places.is_running(pid):
                with suppress(OSError):
                    os.unlink(path)  # of a process that was killed
        self._socket = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        self._socket.setblocking(False)
        os.fchmod(self._socket.fileno(), 0o600)  # the file gets the same mode
        try:
            self._socket.bind(self.path)
        except FileNotFoundError:  # another server was the last one there, and has removed the directory
            os.close(private_directory(self._directory))
            self._socket.bind(self.path)
        self._status = os.stat(self.path)
        self._socket.listen(MAX_VIEWERS)
        self._watcher: Any = gevent.get_hub().loop.io(self._socket.fileno(), READ_EVENT, ref=False)
        self._watcher.start(self._accept)

    def close(self) -> None:
        """End all viewers, and remove the socket unless another server has put its own there."""
        self._watcher.close()
        self._socket.close()
        for viewer in list(self._viewers):
            viewer.close()
        with suppress(OSError):
            if os.path.samestat(os.stat(self.path), self._status):
                os.unlink(self.path)
                os.rmdir(self._directory)  # unless other servers have theirs there

    def _accept(self) -> None:
        for _ in range(ACCEPTED_AT_A_TIME):
            try:
                fd, _ = self._socket._accept()  # type: ignore[attr-defined]  # as `socket.socket.accept` does
            except OSError as error:
                if error.errno not in (errno.EAGAIN, errno.ECONNABORTED):
                    journal.debug("cannot accept a viewer: %s", error.strerror)
                return
            connection = _socket.socket(fileno=fd)
            connection.setblocking(False)
            os.set_inheritable(fd, False)
            if problem := self._problem_with(connection):
                journal.warning("a viewer was refused: %s", problem)
                connection.close()
                continue
            viewer = Viewer(connection, self._forget)
            self._viewers.add(viewer)
            self._views.add(viewer.take)

    def _problem_with(self, connection: Any) -> str | None:
        try:
            pid = places.peer_of(connection)
        except OSError as error:
            return error.strerror
        if pid is not None and places.is_ours(pid):
            return "a script of this server runs it"
        return f"there are {MAX_VIEWERS} viewers already" if len(self._viewers) >= MAX_VIEWERS else None

    def _forget(self, viewer: Viewer) -> None:
        self._viewers.discard(viewer)
        self._views.remove(viewer.take)


class Viewer:
    """One connected viewer, and the lines that it has yet to read."""

    def __init__(self, connection: Any, on_close: Any) -> None:
        self._connection = connection
        self._on_close = on_close
        self._lines: deque[bytes] = deque()
        self._unsent_bytes = 0
        self._lost = 0
        self._is_flushing = False
        loop = gevent.get_hub().loop
        self._reading: Any = loop.io(connection.fileno(), READ_EVENT, ref=False)
        self._reading.start(self._hear)
        self._writing: Any = loop.io(connection.fileno(), WRITE_EVENT, ref=False)
        self._timer: Any = loop.timer(GATHER_SECS, GATHER_SECS, ref=False)

    def take(self, line: bytes) -> None:
        if self._unsent_bytes + len(line) > MAX_UNSENT_BYTES:
            self._lost += 1
            return
        if self._lost:
            lost, self._lost = self._lost, 0
            self._put(b'{"kind":"lost","count":%d}\n' % lost)
        self._put(line)

    def _put(self, line: bytes) -> None:
        self._lines.append(line)
        self._unsent_bytes += len(line)
        if not self._is_flushing:
            self._is_flushing = True
            self._timer.start(self._begin_to_flush)

    def _begin_to_flush(self) -> None:
        self._timer.stop()
        self._writing.start(self._flush)

    def close(self) -> None:
        if self._connection is not None:
            with suppress(OSError):
                self._connection.send(b"".join(self._lines))  # as far as it takes them now
            self._reading.close()
            self._writing.close()
            self._timer.close()
            self._connection.close()
            self._connection = None
            self._lines.clear()
            self._on_close(self)

    def _flush(self) -> None:
        """Write what the viewer takes now."""
        try:
            data = self._gathered()
            written = self._connection.send(data)
        except BlockingIOError:
            written = 0
        except OSError:
            self.close()
            return
        if written < len(data):
            self._lines.appendleft(data[written:])
        self._unsent_bytes -= written
        if not self._lines:
            self._is_flushing = False
            self._writing.stop()

    def _gathered(self) -> bytes:
        parts: list[bytes] = []
        size = 0
        while self._lines and size < WRITTEN_AT_A_TIME:
            parts.append(self._lines.popleft())
            size += len(parts[-1])
        return b"".join(parts)

    def _hear(self) -> None:
        """A viewer has nothing to say: it has left, or does not know that."""
        try:
            if not self._connection.recv(4096):
                self.close()
        except BlockingIOError:
            return
        except OSError:
            self.close()
