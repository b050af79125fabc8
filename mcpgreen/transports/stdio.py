"""Serve one client over stdin and stdout, from the first line to the end of the process.

`LineReader` reads the lines of the client, checks their size, decodes them, and hands them to the link. A line that
spans several reads is checked while it arrives (`jsontext.Bounds`), so that a line that cannot be served is dropped
early. Other greenlets get a turn every few milliseconds, whatever comes in. Messages that take longer wait in the link,
while pings and cancellations after them are read and served.
"""

from __future__ import annotations

import fcntl
import gc
import os
import signal
import stat
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import gevent

from mcpgreen import journal
from mcpgreen.engine.frames import Frames
from mcpgreen.engine.link import FAULT, Link
from mcpgreen.engine.server import Server
from mcpgreen.links.session import Stream
from mcpgreen.links.sink import MAX_BACKLOG_BYTES
from mcpgreen.protocol.admission import Handshake
from mcpgreen.protocol.messages import ANSWER, END_BYTES, id_at_ends, ids_in, unreadable_answer
from mcpgreen.running.processes.pipes import READ_EVENT, Pieces
from mcpgreen.running.shares import let_others
from mcpgreen.settings.settings import Settings
from mcpgreen.text import jsontext
from mcpgreen.text.jsontext import Bounds, TooCostly, weight_of
from mcpgreen.transports.outbox import CorruptionGuard, Outbox

if TYPE_CHECKING:
    from mcpgreen.protocol.token import RemoteToken

READ_BYTES = 65536
PROMPT_SECS = 0.005  # after this, the other lines of the same read may be postponed
TURN_SECS = 0.025
BOM = b"\xef\xbb\xbf"
EOF_GRACE_SECS = 10.0  # for running calls when the client has closed stdin and still reads stdout
LAST_FLUSH_SECS = 0.2
HANGUP_CHECK_SECS = 0.05
FAULTY_OUTPUT_STATUS = 2
FAULT_STATUS = 70  # EX_SOFTWARE in sysexits.h: internal software error
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
LOOKS_PER_TIMEOUT = 10
INIT_PID = 1


class Endpoint:
    """One end of the protocol: a descriptor that never blocks in `read` and `write`, and is left as it was found.

    Non-blocking mode belongs to the open file description, which we may share with the program that started us. So a
    pipe or terminal is opened again through /proc, which gives us a description of our own, and a socket gets a flag in
    each call. Only where there is no /proc is the mode set, and restored at the end.
    """

    def __init__(self, fd: int, flags: int) -> None:
        self._inherited = fd
        self._restored_flags: int | None = None
        self._socket = None
        self.fd = fd
        if stat.S_ISSOCK(os.fstat(fd).st_mode):
            import socket

            self._socket = socket.socket(fileno=os.dup(fd))
            self._no_wait = socket.MSG_DONTWAIT
        elif not self.is_regular_file():  # a file never blocks, and a second description would have its own position
            try:
                self.fd = os.open(f"/proc/self/fd/{fd}", flags | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
            except OSError:
                self._restored_flags = fcntl.fcntl(fd, fcntl.F_GETFL)
                fcntl.fcntl(fd, fcntl.F_SETFL, self._restored_flags | os.O_NONBLOCK)

    def read(self, size: int) -> bytes:
        """Return b"" at the end. Raises BlockingIOError when there is nothing yet."""
        if self._socket is not None:
            return self._socket.recv(size, self._no_wait)
        return os.read(self.fd, size)

    def write(self, data: bytes | memoryview) -> int:
        if self._socket is not None:
            return self._socket.send(data, self._no_wait)
        return os.write(self.fd, data)

    def is_regular_file(self) -> bool:
        return stat.S_ISREG(os.fstat(self.fd).st_mode)

    def is_pipe(self) -> bool:
        return stat.S_ISFIFO(os.fstat(self.fd).st_mode)

    def close(self) -> None:
        if self._restored_flags is not None:
            fcntl.fcntl(self._inherited, fcntl.F_SETFL, self._restored_flags)
        if self._socket is not None:
            self._socket.close()
        elif self.fd != self._inherited:
            os.close(self.fd)


class LineReader:
    """Cuts the input into lines and hands them to the link. `on_message` is called for every message, if it is set."""

    def __init__(self, endpoint: Endpoint, link: Link, outbox: Outbox, *, max_line_bytes: int) -> None:
        self._endpoint = endpoint
        self._link = link
        self._outbox = outbox
        self._max_line_bytes = max_line_bytes
        self._too_long = f"a line of more than {max_line_bytes} bytes"
        self._parts = Pieces()  # of the line that is still incomplete
        self._parts_bytes = 0
        self._bounds = Bounds()  # of the same line
        self._refusal: ValueError | None = None  # why the line will not be served, once that is clear
        self._head = self._tail = b""  # of the line: if it is refused, its id may be there
        self._turn_ends_at = 0.0
        self._is_late = False  # earlier lines of the same read have taken long already
        self.on_message: Callable[[bytes, object], None] | None = None
        self.reads = 0  # how often something was read: unchanged while the client is silent

    def run(self, first: bytes, *, is_at_end: bool) -> None:
        """Read to the end of the input. `first` is what was read before this."""
        watcher = None if self._endpoint.is_regular_file() else gevent.get_hub().loop.io(self._endpoint.fd, READ_EVENT)
        self._link.give_turn = self._give_turn
        try:
            self._take(first)
            chunk = first
            while not is_at_end:
                self._outbox.wait_for_room()
                self._link.wait_for_room(len(chunk))
                chunk = self._next_chunk(watcher)
                self.reads += 1
                self._take(chunk)
                is_at_end = not chunk
            if self._parts_bytes:
                self._end_line(b"")  # a last line without a newline still counts
            self._link.wait_until_served()
        except Exception:  # no caller could handle it, and a server without a reader is of no use
            self._link.session.end(FAULT)
            journal.exception("reading failed unexpectedly; the server is stopping")
        finally:
            if watcher is not None:
                watcher.close()
            self._link.session.end("eof")

    def _next_chunk(self, watcher: Any) -> bytes:
        """Read; return b"" at the end. Waits first, so that a client that never pauses starves no greenlet."""
        while True:
            if watcher is None:
                gevent.sleep(0)
            else:
                gevent.get_hub().wait(watcher)
            try:
                return self._endpoint.read(READ_BYTES)
            except BlockingIOError:
                continue  # another process that reads this pipe was quicker
            except MemoryError:
                if not self._parts_bytes or self._refusal:
                    raise
                self._give_up_line(TooCostly("there is no memory left for it"))
            except OSError as error:
                journal.info("stdin was closed: %s", error.strerror)
                return b""

    def _take(self, chunk: bytes) -> None:
        *lines, rest = chunk.split(b"\n")
        now = time.monotonic()
        late_at, self._turn_ends_at, self._is_late = now + PROMPT_SECS, now + TURN_SECS, False
        for line in lines:
            self._end_line(line)
            now = time.monotonic()
            self._is_late = now > late_at
            # One read may hold requests for more than fits into memory, or into one turn.
            if not self._outbox.has_room or now > self._turn_ends_at:
                self._give_turn()
        if rest:
            self._keep(rest)

    def _give_turn(self) -> None:
        """Let the outbox send what has been answered, and others run. Also called for postponed messages."""
        self._outbox.wait_for_room()
        let_others()
        self._turn_ends_at = time.monotonic() + TURN_SECS

    def _keep(self, part: bytes) -> None:
        self._parts_bytes += len(part)
        self._head += part[: END_BYTES - len(self._head)]
        self._tail = (self._tail + part[-END_BYTES:])[-END_BYTES:]
        if self._refusal:
            return
        try:
            if self._parts_bytes > self._max_line_bytes:
                raise TooCostly(self._too_long)
            self._bounds.feed(part)
            self._parts.add(part)
        except ValueError as error:
            self._give_up_line(error)

    def _give_up_line(self, reason: ValueError) -> None:
        self._refusal = reason
        self._parts = Pieces()

    def _end_line(self, line: bytes) -> None:
        bare = b""
        try:
            if self._parts_bytes:
                bare = self._finish_parts(line)
                message = jsontext.parsed(bare) if bare else None
            elif len(line) > self._max_line_bytes:
                raise TooCostly(self._too_long)
            else:
                bare = line.strip()
                if bare.startswith(BOM):
                    bare = _bare(bare)
                message = jsontext.loads(bare) if bare else None
        except TooCostly as error:
            self._refuse(error, line[:END_BYTES], line[-END_BYTES:])
        except (ValueError, RecursionError) as error:
            for id in ids_in(bare, ANSWER):
                self._link.receive(unreadable_answer(id, str(error)))
            self._link.receive_rubbish(str(error), ids_in(bare))
        except MemoryError:
            self._link.receive_rubbish("there is no memory left for it")
        else:
            if bare:
                if self.on_message is not None:
                    self.on_message(bare, message)
                may_wait = self._is_late or type(message) is list  # one batch alone may take long
                self._link.receive(message, weight_bytes=weight_of(bare), may_wait=may_wait)

    def _refuse(self, reason: ValueError, head: bytes, tail: bytes) -> None:
        """Refuse a line that was not kept: it is too long, would cost too much, or is not JSON. Its head or its tail
        may show the id of the request that waits for an answer, or that it answers."""
        answered, id = id_at_ends(head, tail, ANSWER), id_at_ends(head, tail)
        if answered is not None:
            self._link.receive(unreadable_answer(answered, str(reason)))
        if isinstance(reason, TooCostly):
            self._link.receive_too_large(str(reason), id)
        else:
            self._link.receive_rubbish(str(reason), [] if id is None else [id])

    def _finish_parts(self, last: bytes) -> bytes:
        """Join and reset the parts of a line. If the line was given up, refuse it and return b""."""
        self._keep(last)
        parts, refusal, head, tail = self._parts, self._refusal, self._head, self._tail
        self._parts, self._parts_bytes, self._bounds, self._refusal = Pieces(), 0, Bounds(), None
        self._head = self._tail = b""
        if refusal:
            self._refuse(refusal, head, tail)
            return b""
        return _bare(b"".join(parts.take()))


def _bare(line: bytes) -> bytes:
    return line.removeprefix(BOM).strip()


class Opening(Protocol):
    """The beginning of a conversation, as `first_answer` leaves it."""

    handshake: Handshake
    greeting: tuple[bytes, bytes] | None  # the line that has been answered, and the answer
    unsent: bytes  # the end of that answer, if it could not be written yet
    unread: bytes  # what else was read
    is_at_end: bool


def serve(
    server: Server, stdin: int, stdout: int, opening: Opening, *, token: RemoteToken | None, parent_pid: int
) -> int:
    """Serve one client until it leaves; return the exit status of the process."""
    settings = server.services.settings
    source = Endpoint(stdin, os.O_RDONLY)
    target = Endpoint(stdout, os.O_WRONLY)
    outbox = Outbox(target, max_backlog_bytes=MAX_BACKLOG_BYTES)
    if opening.unsent:
        outbox.respond(opening.unsent.removesuffix(b"\n"))
    link = server.connect(Stream(outbox, transport="stdio"), handshake=opening.handshake, token=token)
    session = link.session
    outbox.on_broken = lambda: session.end("client does not read")
    guard = CorruptionGuard(settings, on_limit=lambda: session.end("faulty output"))
    outbox.on_fault = guard.count
    reader = LineReader(source, link, outbox, max_line_bytes=settings.max_line_bytes)
    recorder = None
    if server.services.settings.record:
        from mcpgreen.engine.recorder import Recorder  # few sessions are recorded

        recorder = Recorder(server.services)
    frames = Frames(server.services, link)
    frames.follow(outbox, reader)
    if "frame" in server.services.events.wants and opening.greeting is not None:
        frames.tell_first(*opening.greeting)
    received: list[int] = []

    def on_signal(number: int) -> None:
        received.append(number)
        session.end("signal")

    signals = [gevent.signal_handler(number, on_signal, number) for number in STOP_SIGNALS]
    reading = gevent.spawn(reader.run, opening.unread, is_at_end=opening.is_at_end)
    server.watch()
    server.observe("stdio")
    idling = gevent.spawn(_end_when_idle, link, lambda: reader.reads, settings, parent_pid)
    gc.freeze()  # what is in memory now stays: walking it at each collection would cost a tenth of every call
    gc.enable()
    try:
        reason = str(session.ended.get())
        journal.debug("the session ends: %s", reason)
        # Running calls may still deliver after EOF and `exit` for a while, after a signal not at all.
        graces = {"eof": EOF_GRACE_SECS, "exit": settings.shutdown_timeout}
        _wait_for_calls(graces.get(reason, 0), link, outbox, target, received)
        reading.kill()
        is_client_gone = reason not in ("signal", FAULT)
        server.stop(is_client_gone=is_client_gone and not received)
        outbox.drained.wait(LAST_FLUSH_SECS)
    finally:
        idling.kill()
        if recorder is not None:
            recorder.close()
        for handler in signals:
            handler.cancel()
        outbox.close()
        source.close()
        target.close()
    if guard.is_tripped:
        return FAULTY_OUTPUT_STATUS
    if reason == FAULT:
        return FAULT_STATUS
    return 128 + signal.SIGINT if signal.SIGINT in received else 0


def _wait_for_calls(grace_secs: float, link: Link, outbox: Outbox, target: Endpoint, received: list[int]) -> None:
    """Wait until all answers are read, the client stops reading, a signal comes, or the time is up."""
    give_up_at = time.monotonic() + grace_secs
    if grace_secs:
        link.close_listens()
    while time.monotonic() < give_up_at and not received:
        idle = link.stream.idle
        if idle.is_set() and outbox.drained.is_set():
            return
        if outbox.is_broken or is_hung_up(target.fd):
            return
        (idle if not idle.is_set() else outbox.drained).wait(HANGUP_CHECK_SECS)


def _end_when_idle(link: Link, reads: Callable[[], int], settings: Settings, parent_pid: int) -> None:
    """End the session when the client has been silent for long, or the process that started us is gone.

    `reads` says how often something has been read so far. It is compared from time to time, so the server ends a
    little later than the setting says, never earlier.
    """
    idle_secs, parent_secs = settings.idle_timeout_secs, settings.orphan_check_interval_secs
    # A server that the first process of a system or container has started cannot lose its parent.
    checks_parent = parent_secs > 0 and parent_pid != INIT_PID
    pauses = [idle_secs / LOOKS_PER_TIMEOUT] if idle_secs else []
    pauses += [parent_secs] if checks_parent else []
    seen, active_at = reads(), time.monotonic()
    while pauses:
        gevent.sleep(min(pauses))
        if checks_parent and os.getppid() != parent_pid:
            journal.warning("the process that started this server has ended; exiting")
            link.session.end("orphaned")
            return
        if reads() != seen or link.is_waited_on:
            seen, active_at = reads(), time.monotonic()
        elif idle_secs and time.monotonic() - active_at >= idle_secs:
            text = f"idle timeout after {idle_secs:g}s with no client activity; exiting"
            journal.warning("%s", text)
            link.session.log("warning", "mcp.lifecycle", text)
            link.session.end("idle")
            return


def is_hung_up(fd: int) -> bool:
    """Tell whether the other end of this pipe is closed."""
    import select

    poller = select.poll()
    poller.register(fd, 0)
    return bool(poller.poll(0))
