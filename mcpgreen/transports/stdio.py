"""Serve one client over stdin and stdout, from the first line to the end of the process."""

from __future__ import annotations

import gc
import os
import signal
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import gevent

from mcpgreen import journal
from mcpgreen.engine.link import FAULT, Link
from mcpgreen.engine.server import Server
from mcpgreen.links.sink import MAX_BACKLOG_BYTES
from mcpgreen.protocol.admission import Handshake
from mcpgreen.settings.settings import Settings
from mcpgreen.transports.descriptors import Endpoint, is_hung_up
from mcpgreen.transports.lines import LineReader
from mcpgreen.transports.outbox import CorruptionGuard, Outbox

if TYPE_CHECKING:
    from mcpgreen.protocol.token import RemoteToken
    from mcpgreen.transports.frame_log import FrameLog

EOF_GRACE_SECS = 10.0  # for running calls when the client has closed stdin and still reads stdout
LAST_FLUSH_SECS = 0.2
HANGUP_CHECK_SECS = 0.05
FAULTY_OUTPUT_STATUS = 2
FAULT_STATUS = 70  # "internal software error", as sysexits.h has it
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
LOOKS_PER_TIMEOUT = 10
INIT_PID = 1


def serve(
    server: Server,
    stdin: int,
    stdout: int,
    *,
    handshake: Handshake,
    first_exchange: tuple[bytes, bytes] | None,
    unsent: bytes,
    first: bytes,
    is_at_end: bool,
    token: RemoteToken | None,
    parent_pid: int,
) -> int:
    """Serve one client until it leaves; return the exit status of the process. `first_exchange` is the line that was
    answered before, with its answer; `unsent` is the end of that answer, if it could not be written yet; `first` is
    what else was read."""
    settings = server.services.settings
    source = Endpoint(stdin, os.O_RDONLY)
    target = Endpoint(stdout, os.O_WRONLY)
    frames = _frame_log(server, first_exchange)
    on_frame = None if frames is None else frames.log_outgoing
    outbox = Outbox(target, max_backlog_bytes=MAX_BACKLOG_BYTES, on_frame=on_frame)
    if unsent:
        outbox.respond(unsent.removesuffix(b"\n"))
    link = server.connect(outbox, transport="stdio", handshake=handshake, token=token)
    session = link.session
    outbox.on_broken = lambda: session.end("client does not read")
    guard = CorruptionGuard(settings, on_limit=lambda: session.end("faulty output"))
    outbox.on_fault = guard.count
    reader = LineReader(source, link, outbox, max_line_bytes=settings.max_line_bytes)
    if frames is not None:
        reader.on_message = frames.log_incoming
    received: list[int] = []

    def on_signal(number: int) -> None:
        received.append(number)
        session.end("signal")

    signals = [gevent.signal_handler(number, on_signal, number) for number in STOP_SIGNALS]
    reading = gevent.spawn(reader.run, first, is_at_end=is_at_end)
    server.watch()
    idling = gevent.spawn(_end_when_idle, link, lambda: reader.reads, settings, parent_pid)
    gc.freeze()  # what is in memory now stays: walking it at each collection would cost a tenth of every call
    try:
        reason = str(session.ended.get())
        journal.debug("the session ends: %s", reason)
        # Running calls may still deliver after EOF and `exit` for a while, after a signal not at all.
        graces = {"eof": EOF_GRACE_SECS, "exit": settings.shutdown_timeout}
        _wait_for_calls(graces.get(reason, 0), link, outbox, target, received)
        reading.kill()
        server.stop()
        outbox.drained.wait(LAST_FLUSH_SECS)
    finally:
        idling.kill()
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


def _frame_log(server: Server, first_exchange: tuple[bytes, bytes] | None) -> FrameLog | None:
    """The frame logger, or None."""
    if not journal.tells_frames:
        return None
    from mcpgreen.transports.frame_log import FrameLog

    frames = FrameLog(server.services)
    if first_exchange is not None:
        frames.log_first(*first_exchange)
    return frames


def _wait_for_calls(grace_secs: float, link: Link, outbox: Outbox, target: Endpoint, received: list[int]) -> None:
    """Wait until all answers are read, the client does not read any more, a signal comes, or the time is up."""
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
            journal.warning("the process that started this server is gone; exiting")
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
