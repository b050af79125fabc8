"""The outgoing lines on a pipe, and what happens to a line that must not be sent.

Writing never blocks the hub. The answers to one read go out in one write, and so do the answers of scripts that end
together; when the pipe is full, a watcher takes over. A client that does not read delays its own answers only:
notifications are dropped then, responses are kept, and callers of `wait_for_room` wait.

Lines are sound by construction, so a fault is a mistake in the server, or a device that takes nothing more. A client
that gets half a message cannot know where the next one begins, so after some faults the server ends.
"""

from __future__ import annotations

import errno
import fcntl
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import gevent
from gevent.event import Event

from mcpgreen import journal
from mcpgreen.errors import InternalError
from mcpgreen.links.sink import Answerable
from mcpgreen.protocol import messages, revision_fields
from mcpgreen.protocol.messages import Line, size_of, whole
from mcpgreen.running.processes.pipes import READ_EVENT, WRITE_EVENT
from mcpgreen.settings.settings import Settings
from mcpgreen.text import jsontext

if TYPE_CHECKING:
    from mcpgreen.transports.stdio import Endpoint

WRITE_BYTES = 1 << 18
LARGE_PIPE_BYTES = 1 << 20
RETRY_SECS = 0.1
NEWLINE = ord("\n")  # in bytes, a number is found five times as fast as a text of one character
FAULTS = 3  # within WINDOW_SECS, and the server ends
WINDOW_SECS = 60.0
# The reader is gone for good: it has closed its end, or its terminal is gone. After any other error we try again.
READER_IS_GONE = frozenset(
    {errno.EPIPE, errno.ECONNRESET, errno.ENOTCONN, errno.ESHUTDOWN, errno.EBADF, errno.ENXIO, errno.EIO}
)


class Outbox:
    """A sink in front of a descriptor. `on_frame` is called for every frame, `on_broken` when the reader is gone, and
    `on_fault` for a line that cannot be written."""

    carries_requests = True

    def __init__(self, endpoint: Endpoint, *, max_backlog_bytes: int) -> None:
        self._endpoint = endpoint
        self._max_backlog_bytes = max_backlog_bytes
        self._queue: deque[tuple[Line, Answerable | None]] = deque()
        self._current: deque[bytes | memoryview] = deque()  # being written: nothing of it can be withdrawn
        self._backlog_bytes = 0
        self._will_flush = False
        self._watcher: Any = None
        self._room = Event()
        self._room.set()
        self.drained = Event()
        self.drained.set()
        self.is_broken = False
        self.on_frame: Callable[[Line, Answerable | None], None] | None = None
        self.on_broken: Callable[[], None] = lambda: None
        self.on_fault: Callable[[str], None] = lambda what: None
        self._hangup = self._watch_for_hangup()

    @property
    def has_room(self) -> bool:
        return bool(self._room.is_set())

    def notify(self, line: Line, call: Answerable | None = None, *, is_droppable: bool = True) -> None:
        if self.has_room or not is_droppable:
            self.respond(line, call)

    def request(self, line: Line) -> None:
        self.respond(line)

    def respond(self, line: Line, call: Answerable | None = None) -> None:
        if self.is_broken:
            return
        if self.on_frame is not None:
            self.on_frame(line, call)
        if not is_sound(line):
            self.on_fault("dropped a message that is not one line of UTF-8")
            error = _error_instead_of(line, call)
            if error is None:
                return
            line = error
        self._queue.append((line, call))
        self._backlog_bytes += size_of(line) + 1
        if self._backlog_bytes > self._max_backlog_bytes:
            self._room.clear()
        if self._watcher is None and not self._will_flush:
            # When this greenlet has done its turn: the answers to one read, or of scripts that end together, go out in
            # one write.
            self._will_flush = True
            self.drained.clear()
            gevent.get_hub().loop.run_callback(self.flush)

    def expect(self) -> None:
        """Do nothing: answers go out one by one."""

    def withdraw(self) -> None:
        """Do nothing: the lines of a cancelled call are skipped when their turn comes."""

    def wait_for_room(self) -> None:
        self._room.wait()

    def wait_for_room_for(self, size_bytes: int) -> None:
        """Do nothing: there are no other clients."""

    def flush(self) -> None:
        """Write what the pipe takes. When it takes no more, a watcher calls this again."""
        self._will_flush = False
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
            if error.errno in READER_IS_GONE:
                journal.info("the client no longer reads the server's output: %s", error.strerror)
                self._lose_reader()
            else:
                self._try_again_later(error)
            return
        self._stop_watcher()
        self._backlog_bytes = 0
        self._room.set()
        self.drained.set()

    def close(self) -> None:
        self._stop_watcher()
        if self._hangup is not None:
            self._hangup.close()
            self._hangup = None
        self._room.set()

    def _gather(self) -> bool:
        """Take the next lines from the queue: many short ones as one piece, a large one in its pieces. Return False if
        there is none.

        A call may be cancelled until this moment; no switch of greenlets comes before the write.
        """
        lines: list[bytes] = []
        size = 0
        while self._queue and size < WRITE_BYTES:
            line, call = self._queue[0]
            if call is not None and call.is_cancelled:
                self._backlog_bytes -= size_of(line) + 1
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

    def _enlarge_pipe(self) -> None:
        with suppress(OSError, AttributeError):  # it is not a pipe, this is not Linux, or the quota is used up
            fcntl.fcntl(self._endpoint.fd, fcntl.F_SETPIPE_SZ, LARGE_PIPE_BYTES)

    def _wait_writable(self) -> None:
        self.drained.clear()
        if self._backlog_bytes <= self._max_backlog_bytes // 2:
            self._room.set()
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

        The writing end of a pipe never becomes readable, except when the other end is closed.
        """
        if not self._endpoint.is_pipe():
            return None
        watcher = gevent.get_hub().loop.io(self._endpoint.fd, READ_EVENT)
        watcher.start(self._lose_reader)
        return watcher


class CorruptionGuard:
    """Counts faults of our output, and calls `on_limit` once when there are too many within the window."""

    def __init__(
        self, settings: Settings, *, on_limit: Callable[[], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.is_tripped = False
        self._is_tolerant = settings.allow_corrupt_stdout
        self._on_limit = on_limit
        self._clock = clock
        self._seen_at: deque[float] = deque(maxlen=FAULTS)

    def count(self, what: str) -> None:
        if self.is_tripped:
            return  # the server is ending already
        journal.critical("invalid output: %s", what)
        self._seen_at.append(self._clock())
        is_recent = self._seen_at[-1] - self._seen_at[0] <= WINDOW_SECS
        if len(self._seen_at) == FAULTS and is_recent and not self._is_tolerant:
            self.is_tripped = True
            journal.critical("%d invalid messages within %g s; exiting", FAULTS, WINDOW_SECS)
            self._on_limit()


def is_sound(line: Line) -> bool:
    """Tell whether this is one line of UTF-8. Of a line in pieces only the ends are checked: the rest was encoded."""
    if isinstance(line, list):
        return is_sound(line[0]) and is_sound(line[-1])
    try:
        return NEWLINE not in line and (line.isascii() or bool(line.decode("utf-8")))
    except UnicodeDecodeError:
        return False


def _error_instead_of(line: Line, call: Answerable | None) -> bytes | None:
    """Return the error that goes out instead of an unsound line; None if it answers no request that we know."""
    try:
        message = jsontext.loads(whole(line))
    except ValueError:
        request_id = None if call is None else call.id
    else:
        is_response = type(message) is dict and "method" not in message
        request_id = messages.normal_id(message.get("id")) if is_response else None
    if request_id is None:
        return None
    return messages.error(request_id, revision_fields.error_object(InternalError("The answer could not be sent.")))
