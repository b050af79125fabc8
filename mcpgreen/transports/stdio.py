"""Serve one client over stdin and stdout, from the first line to the end of the process."""

from __future__ import annotations

import gc
import os
import signal
import time
from typing import TYPE_CHECKING

import gevent

from mcpgreen import journal
from mcpgreen.engine.link import FAULT, Link
from mcpgreen.engine.server import Server
from mcpgreen.protocol.admission import Handshake
from mcpgreen.transports.descriptors import Endpoint, is_hung_up
from mcpgreen.transports.idle_exit import keep_vigil
from mcpgreen.transports.lines import LineReader
from mcpgreen.transports.outbox import Outbox
from mcpgreen.transports.output_guard import EXIT_STATUS, CorruptionGuard

if TYPE_CHECKING:
    from mcpgreen.protocol.token import RemoteToken
    from mcpgreen.transports.frame_log import FrameLog

LAST_FLUSH_SECS = 0.2
HANGUP_CHECK_SECS = 0.05
FAULT_STATUS = 70  # "internal software error", as sysexits.h has it
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def serve(
    server: Server,
    stdin: int,
    stdout: int,
    *,
    handshake: Handshake,
    greeting: tuple[bytes, bytes] | None,
    unsent: bytes,
    first: bytes,
    is_at_end: bool,
    token: RemoteToken | None,
    parent_pid: int,
) -> int:
    """Serve one client until it leaves. The exit status of the process. `greeting` is what was said and answered
    before, `unsent` the end of the last answer, if it is still to be written."""
    settings = server.services.settings
    source = Endpoint(stdin, os.O_RDONLY)
    target = Endpoint(stdout, os.O_WRONLY)
    frames = _frame_log(server, greeting)
    outbox = _outbox(target, settings.max_backlog_bytes, frames)
    if unsent:
        outbox.respond(unsent.removesuffix(b"\n"))
    link = server.connect(outbox, transport="stdio", handshake=handshake, token=token)
    session = link.session
    outbox.on_broken = lambda: session.end("nobody reads")
    guard = CorruptionGuard(settings, on_limit=lambda: session.end("faulty output"))
    outbox.on_fault = guard.count
    reader = LineReader(source, link, outbox, max_line_bytes=settings.max_line_bytes)
    if frames is not None:
        reader.on_message = frames.came
    received: list[int] = []

    def on_signal(number: int) -> None:
        received.append(number)
        session.end("signal")

    signals = [gevent.signal_handler(number, on_signal, number) for number in STOP_SIGNALS]
    reading = gevent.spawn(reader.run, first, is_at_end=is_at_end)
    server.watch()
    vigil = gevent.spawn(keep_vigil, link, reads=lambda: reader.reads, settings=settings, parent_pid=parent_pid)
    gc.freeze()  # what stands now stays: walking it at each collection would cost a tenth of every call
    try:
        reason = str(session.ended.get())
        journal.debug("the session ends: %s", reason)
        # Running calls may still deliver after EOF and `exit` for a while, after a signal not at all.
        graces = {"eof": settings.eof_grace_secs, "exit": settings.shutdown_timeout}
        _wait_for_calls(graces.get(reason, 0), link, outbox, target, received)
        reading.kill()
        server.stop()
        outbox.drained.wait(LAST_FLUSH_SECS)
    finally:
        vigil.kill()
        for handler in signals:
            handler.cancel()
        outbox.close()
        source.close()
        target.close()
    if guard.is_tripped:
        return EXIT_STATUS
    if reason == FAULT:
        return FAULT_STATUS
    return 128 + signal.SIGINT if signal.SIGINT in received else 0


def _frame_log(server: Server, greeting: tuple[bytes, bytes] | None) -> FrameLog | None:
    """Who tells of every frame, if somebody wants to know."""
    if not journal.tells_frames:
        return None
    from mcpgreen.transports.frame_log import FrameLog

    frames = FrameLog(server.services)
    if greeting is not None:
        frames.greeted(*greeting)
    return frames


def _outbox(target: Endpoint, max_backlog_bytes: int, frames: FrameLog | None) -> Outbox:
    if frames is None:
        return Outbox(target, max_backlog_bytes=max_backlog_bytes)
    from mcpgreen.transports.frame_log import LoggedOutbox

    outbox = LoggedOutbox(target, max_backlog_bytes=max_backlog_bytes)
    outbox.frames = frames
    return outbox


def _wait_for_calls(grace_secs: float, link: Link, outbox: Outbox, target: Endpoint, received: list[int]) -> None:
    """Until all calls are answered and read, nobody reads any more, a signal comes or time is up."""
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
