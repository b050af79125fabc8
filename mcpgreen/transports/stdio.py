"""Lines on stdin and stdout, to and from the engine.

Reading and writing never block the hub. Answers of one read batch go out in one write, inline; only when the pipe is
full does a watcher on the hub take over. A client that does not read stalls its own replies: notifications are dropped
then, responses are kept, no new script starts and reading pauses until there is room again.
"""

from __future__ import annotations

import fcntl
import gc
import os
import signal
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import gevent
from gevent.event import Event

from mcpgreen import journal, jsontext
from mcpgreen.engine.connection import Connection
from mcpgreen.engine.server import Server
from mcpgreen.features.call import Call, Line
from mcpgreen.protocol.admission import Handshake
from mcpgreen.transports.descriptors import Endpoint, is_hung_up

READ_EVENT, WRITE_EVENT = 1, 2
READ_BYTES = 65536
WRITE_BYTES = 1 << 18
LARGE_PIPE_BYTES = 1 << 20
BOM = b"\xef\xbb\xbf"
LAST_FLUSH_SECS = 0.2
HANGUP_CHECK_SECS = 0.05
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class StdioSink:
    """The outgoing lines of the link."""

    def __init__(self, endpoint: Endpoint, *, max_backlog_bytes: int) -> None:
        self._endpoint = endpoint
        self._max_backlog_bytes = max_backlog_bytes
        self._queue: deque[tuple[Line, Call | None]] = deque()
        self._current: deque[bytes | memoryview] = deque()  # on its way: nothing of it can be withdrawn
        self._backlog_bytes = 0
        self._is_holding = False
        self._watcher: Any = None
        self._room = Event()
        self._room.set()
        self.drained = Event()
        self.drained.set()
        self.is_broken = False
        self.on_broken: Callable[[], None] = lambda: None
        self._hangup = self._watch_for_hangup()

    def put(self, line: Line, call: Call | None = None, *, is_droppable: bool = False) -> None:
        if self.is_broken or (is_droppable and not self._room.is_set()):
            return
        self._queue.append((line, call))
        self._backlog_bytes += _size_of(line)
        if not self._is_holding and self._watcher is None:
            self.flush()
        if self._backlog_bytes > self._max_backlog_bytes:
            self._room.clear()

    def expect(self) -> None:
        """Nobody waits here for answers to be complete."""

    def withdraw(self) -> None:
        """A cancelled request needs nothing here: its lines are skipped when their turn comes."""

    def wait_for_room(self) -> None:
        if not self._room.is_set():
            self._room.wait()

    def hold(self) -> None:
        """Collect lines until `release`: the answers of a batch go out together."""
        self._is_holding = True

    def release(self) -> None:
        self._is_holding = False
        if self._queue and self._watcher is None:
            self.flush()

    def flush(self) -> None:
        """Write what the pipe takes; let the hub go on when it takes no more."""
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
            self._break(error)
            return
        self._stop_watcher()
        self._backlog_bytes = 0
        self._room.set()
        self.drained.set()

    def close(self) -> None:
        self._stop_watcher()
        if self._hangup is not None:
            self._hangup.stop()
            self._hangup.close()
            self._hangup = None
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

    def _enlarge_pipe(self) -> None:
        try:
            fcntl.fcntl(self._endpoint.fd, fcntl.F_SETPIPE_SZ, LARGE_PIPE_BYTES)
        except (OSError, AttributeError):
            return  # no pipe, not Linux, or over a quota

    def _wait_writable(self) -> None:
        self.drained.clear()
        if self._backlog_bytes <= self._max_backlog_bytes // 2:
            self._room.set()
        if self._watcher is None:
            self._watcher = gevent.get_hub().loop.io(self._endpoint.fd, WRITE_EVENT)
            self._watcher.start(self.flush)

    def _stop_watcher(self) -> None:
        if self._watcher is not None:
            self._watcher.stop()
            self._watcher.close()
            self._watcher = None

    def _break(self, error: OSError) -> None:
        journal.info("nobody reads our output any more: %s", error.strerror)
        self._lose_reader()

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


class LineReader:
    """Cuts the input into lines and hands them to the link, batch by batch."""

    def __init__(self, endpoint: Endpoint, link: Connection, sink: StdioSink, *, max_line_bytes: int) -> None:
        self._endpoint = endpoint
        self._link = link
        self._sink = sink
        self._max_line_bytes = max_line_bytes
        self._parts: list[bytes] = []  # of the line that is still incomplete
        self._parts_bytes = 0
        self._is_skipping = False
        self._is_first = True

    def run(self, first: bytes, *, is_at_end: bool) -> None:
        """Read to the end of the input. `first` is what was read before."""
        watcher = None if self._endpoint.is_regular_file() else gevent.get_hub().loop.io(self._endpoint.fd, READ_EVENT)
        try:
            self._take(first)
            while not is_at_end:
                self._sink.wait_for_room()
                chunk = self._next_chunk(watcher)
                self._take(chunk)
                is_at_end = not chunk
            self._take_last()
        finally:
            if watcher is not None:
                watcher.close()
            self._link.end("eof")

    def _next_chunk(self, watcher: Any) -> bytes:
        """b"" at the end. Waits before each read, so that a client that never pauses cannot starve the others."""
        while True:
            if watcher is None:
                gevent.sleep(0)
            else:
                gevent.get_hub().wait(watcher)
            try:
                return self._endpoint.read(READ_BYTES)
            except BlockingIOError:
                continue  # somebody else who holds this pipe was quicker
            except OSError as error:
                journal.info("stdin is gone: %s", error.strerror)
                return b""

    def _take(self, chunk: bytes) -> None:
        *lines, rest = chunk.split(b"\n")
        self._sink.hold()
        try:
            for line in lines:
                self._end_line(line)
        finally:
            self._sink.release()
        if rest:
            self._keep(rest)

    def _take_last(self) -> None:
        """A last line without a newline still counts."""
        if self._parts or self._is_skipping:
            self._end_line(b"")

    def _keep(self, part: bytes) -> None:
        self._parts_bytes += len(part)
        if self._parts_bytes > self._max_line_bytes:
            self._is_skipping = True
            self._parts.clear()
        if not self._is_skipping:
            self._parts.append(part)

    def _joined(self, last: bytes) -> bytes:
        self._keep(last)
        line = b"".join(self._parts)
        self._parts.clear()
        self._parts_bytes = 0
        return line

    def _end_line(self, line: bytes) -> None:
        if self._parts_bytes:
            line = self._joined(line)
        if self._is_skipping or len(line) > self._max_line_bytes:
            self._is_skipping = False
            self._link.receive_rubbish(f"a line of more than {self._max_line_bytes} bytes")
            return
        if self._is_first:
            self._is_first = False
            line = line.removeprefix(BOM)
        line = line.strip()
        if not line:
            return
        try:
            message = jsontext.loads(line)
        except (ValueError, RecursionError) as error:
            self._link.receive_rubbish(str(error))
            return
        self._link.receive(message)


def serve(server: Server, stdin: int, stdout: int, *, handshake: Handshake, first: bytes, is_at_end: bool) -> int:
    """Serve one client until it leaves. The exit status of the process."""
    settings = server.services.settings
    source = Endpoint(stdin, os.O_RDONLY)
    target = Endpoint(stdout, os.O_WRONLY)
    sink = StdioSink(target, max_backlog_bytes=settings.max_backlog_bytes)
    link = server.connect(sink, handshake=handshake)
    sink.on_broken = lambda: link.end("nobody reads")
    reader = LineReader(source, link, sink, max_line_bytes=settings.max_line_bytes)
    received: list[int] = []

    def on_signal(number: int) -> None:
        received.append(number)
        link.end("signal")

    signals = [gevent.signal_handler(number, on_signal, number) for number in STOP_SIGNALS]
    reading = gevent.spawn(reader.run, first, is_at_end=is_at_end)
    server.watch()
    gc.freeze()  # what stands now stays: walking it at each collection would cost a tenth of every call
    try:
        reason = str(link.ended.get())
        journal.debug("the link ends: %s", reason)
        _wait_for_calls(_grace_secs(reason, settings), link, sink, target, received)
        reading.kill()
        server.stop()
        sink.drained.wait(LAST_FLUSH_SECS)
    finally:
        for handler in signals:
            handler.cancel()
        sink.close()
        source.close()
        target.close()
    return 128 + signal.SIGINT if signal.SIGINT in received else 0


def _grace_secs(reason: str, settings: Any) -> float:
    """How long running calls may still deliver: after EOF and `exit` for a while, after a signal not at all."""
    graces = {"eof": settings.eof_grace_secs, "exit": settings.shutdown_timeout}
    return float(graces.get(reason, 0))


def _wait_for_calls(
    grace_secs: float, link: Connection, sink: StdioSink, target: Endpoint, received: list[int]
) -> None:
    """Until all calls are answered and read, nobody reads any more, a signal comes or time is up."""
    give_up_at = time.monotonic() + grace_secs
    if grace_secs:
        link.close_listens()
    while time.monotonic() < give_up_at and not received:
        if link.idle.is_set() and sink.drained.is_set():
            return
        if sink.is_broken or is_hung_up(target.fd):
            return
        (link.idle if not link.idle.is_set() else sink.drained).wait(HANGUP_CHECK_SECS)
