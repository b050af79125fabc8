"""The outgoing lines of a link.

Writing never blocks the hub. Answers of one read batch go out in one write, inline, those of scripts at the end of the
hub's turn; only when the pipe is full does a watcher take over. A client that does not read stalls its own replies:
notifications are dropped then, responses are kept, and whoever asks for room has to wait. A line that is not one line
does not go out.
"""

from __future__ import annotations

import errno
import fcntl
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import gevent
from gevent.event import Event

from mcpgreen import journal
from mcpgreen.links.sink import Answerable, Line
from mcpgreen.running.processes.pipes import READ_EVENT, WRITE_EVENT
from mcpgreen.transports import output_guard
from mcpgreen.transports.descriptors import Endpoint

WRITE_BYTES = 1 << 18
LARGE_PIPE_BYTES = 1 << 20
RETRY_SECS = 0.1
# Nobody will ever read what we write: closed by the other side, or a terminal that is gone. Everything else may pass.
NOBODY_READS = frozenset(
    {errno.EPIPE, errno.ECONNRESET, errno.ENOTCONN, errno.ESHUTDOWN, errno.EBADF, errno.ENXIO, errno.EIO}
)


class Outbox:
    """A sink in front of a descriptor."""

    carries_requests = True

    def __init__(self, endpoint: Endpoint, *, max_backlog_bytes: int) -> None:
        self._endpoint = endpoint
        self._max_backlog_bytes = max_backlog_bytes
        self._queue: deque[tuple[Line, Answerable | None]] = deque()
        self._current: deque[bytes | memoryview] = deque()  # on its way: nothing of it can be withdrawn
        self._backlog_bytes = 0
        self.is_holding = False
        self._held: list[bytes] = []  # answers of the batch that is being read
        self._is_due = False
        self._watcher: Any = None
        self.has_room = True  # as the event says it, for who asks often
        self._room = Event()
        self._room.set()
        self.drained = Event()
        self.drained.set()
        self.is_broken = False
        self.on_broken: Callable[[], None] = lambda: None
        self.on_fault: Callable[[str], None] = lambda what: None
        self._hangup = self._watch_for_hangup()

    def notify(self, line: Line, call: Answerable | None = None, *, is_droppable: bool = True) -> None:
        if self.has_room or not is_droppable:
            self.respond(line, call)

    def request(self, line: Line) -> None:
        self.respond(line)

    def respond(self, line: Line, call: Answerable | None = None) -> None:
        if self.is_broken:
            return
        if self.is_holding and call is None and isinstance(line, bytes):
            self._held.append(line)
            self._add_backlog(len(line) + 1)
            return
        if not output_guard.is_sound(line):
            sound = self._replaced(line, call)
            if sound is None:
                return
            line = sound
        self._queue.append((line, call))
        self._add_backlog(_size_of(line))
        if not self.is_holding and self._watcher is None and not self._is_due:
            # At the end of this turn of the hub: scripts that end together are answered in one write.
            self._is_due = True
            self.drained.clear()
            gevent.get_hub().loop.run_callback(self.flush)

    def expect(self) -> None:
        """Nobody waits here for answers to be complete."""

    def withdraw(self) -> None:
        """A cancelled request needs nothing here: its lines are skipped when their turn comes."""

    def wait_for_room(self) -> None:
        if not self.has_room:
            self._room.wait()

    def hold(self) -> None:
        """Collect lines until `release`: the answers of a batch go out together."""
        self.is_holding = True

    def release(self) -> None:
        self.is_holding = False
        if self._held:
            together = b"\n".join(self._held)
            if not output_guard.are_sound(self._held, together):
                passed = [line if output_guard.is_sound(line) else self._replaced(line, None) for line in self._held]
                together = b"\n".join(line for line in passed if line is not None)
            self._held.clear()
            if together:
                self._queue.append((together, None))
        if self._queue and self._watcher is None:
            self.flush()

    def flush(self) -> None:
        """Write what the pipe takes; let the hub go on when it takes no more."""
        self._is_due = False
        try:
            while self._current or self._gather():
                data = self._current[0]
                written = self._endpoint.write(data)
                self._backlog_bytes -= written
                if written < len(data):
                    self._current[0] = memoryview(data)[written:]
                else:
                    self._current.popleft()
        except BlockingIOError:
            self._wait_writable()
            return
        except OSError as error:
            if error.errno in NOBODY_READS:
                journal.info("nobody reads our output any more: %s", error.strerror)
                self._lose_reader()
            else:
                self._try_again_later(error)
            return
        self._stop_watcher()
        self._backlog_bytes = 0
        self._make_room()
        self.drained.set()

    def close(self) -> None:
        self._stop_watcher()
        if self._hangup is not None:
            self._hangup.stop()
            self._hangup.close()
            self._hangup = None
        self._make_room()

    def _add_backlog(self, size: int) -> None:
        self._backlog_bytes += size
        if self._backlog_bytes > self._max_backlog_bytes:
            self.has_room = False
            self._room.clear()

    def _make_room(self) -> None:
        self.has_room = True
        self._room.set()

    def _gather(self) -> bool:
        """Make the next lines current: many short ones as one piece, a large one in its pieces. False without any.

        A call may be cancelled until this moment; no switch comes before the write.
        """
        lines: list[bytes] = []
        size = 0
        while self._queue and size < WRITE_BYTES:
            line, call = self._queue[0]
            if call is not None and call.is_cancelled:
                self._backlog_bytes -= _size_of(line)
            elif isinstance(line, bytes):
                lines.append(line)
                size += len(line) + 1
            elif lines:
                break
            else:
                self._queue.popleft()
                self._enlarge_pipe()
                self._current.extend(line)
                self._current.append(b"\n")
                return True
            self._queue.popleft()
        if lines:
            lines.append(b"")
            self._current.append(b"\n".join(lines))
        return bool(lines)

    def _replaced(self, line: Line, call: Answerable | None) -> bytes | None:
        self.on_fault("a message is not one line of UTF-8; it is dropped")
        return output_guard.replacement(line, call)

    def _enlarge_pipe(self) -> None:
        with suppress(OSError, AttributeError):  # no pipe, not Linux, or over a quota
            fcntl.fcntl(self._endpoint.fd, fcntl.F_SETPIPE_SZ, LARGE_PIPE_BYTES)

    def _wait_writable(self) -> None:
        self.drained.clear()
        if self._backlog_bytes <= self._max_backlog_bytes // 2:
            self._make_room()
        if self._watcher is None:
            self._watcher = gevent.get_hub().loop.io(self._endpoint.fd, WRITE_EVENT)
            self._watcher.start(self.flush)

    def _try_again_later(self, error: OSError) -> None:
        self.drained.clear()
        self._stop_watcher()
        self._watcher = gevent.get_hub().loop.timer(RETRY_SECS)
        self._watcher.start(self._try_again)
        self.on_fault(f"a write failed: {error.strerror}")

    def _try_again(self) -> None:
        self._stop_watcher()
        self.flush()

    def _stop_watcher(self) -> None:
        if self._watcher is not None:
            self._watcher.stop()
            self._watcher.close()
            self._watcher = None

    def _lose_reader(self) -> None:
        self.is_broken = True
        self._queue.clear()
        self._current.clear()
        self.close()
        self.drained.set()
        self.on_broken()

    def _watch_for_hangup(self) -> Any:
        """Notice that the reader is gone also when there is nothing to write.

        Waiting to *read* from the writing end of a pipe never ends, except when the other end is closed.
        """
        if not self._endpoint.is_pipe():
            return None
        watcher = gevent.get_hub().loop.io(self._endpoint.fd, READ_EVENT)
        watcher.start(self._lose_reader)
        return watcher


def _size_of(line: Line) -> int:
    return len(line) + 1 if isinstance(line, bytes) else sum(map(len, line)) + 1
