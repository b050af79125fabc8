"""Read the lines of a client, check their size, decode them, and hand them to the link.

A line that spans several reads is checked while it arrives (`json_bounds`), so that one which will not be parsed is
dropped early. Other greenlets get a turn every few milliseconds, whatever comes in. Messages that take longer wait in
the link, while pings and cancellations behind them are read and served.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import gevent

from mcpgreen import journal
from mcpgreen.engine.link import FAULT, Link
from mcpgreen.protocol.messages import END_BYTES, request_id_in, request_ids_in
from mcpgreen.running.processes.pipes import READ_EVENT
from mcpgreen.running.shares import let_others
from mcpgreen.text import jsontext
from mcpgreen.text.json_bounds import Bounds, TooCostly, weight_of
from mcpgreen.text.pieces import Pieces
from mcpgreen.transports.descriptors import Endpoint
from mcpgreen.transports.outbox import Outbox

READ_BYTES = 65536
PROMPT_SECS = 0.005
TURN_SECS = 0.025
BOM = b"\xef\xbb\xbf"


class LineReader:
    """Cuts the input into lines and hands them to the link. `on_message` is called for every message, if it is set."""

    def __init__(self, endpoint: Endpoint, link: Link, outbox: Outbox, *, max_line_bytes: int) -> None:
        self._endpoint = endpoint
        self._link = link
        self._outbox = outbox
        self._max_line_bytes = max_line_bytes
        self._parts = Pieces()  # of the line that is still incomplete
        self._parts_bytes = 0
        self._bounds = Bounds()  # of the same line
        self._refusal: ValueError | None = None  # why the line will not be served, once that is clear
        self._head = self._tail = b""  # of the line: if it is refused, its id may be there
        self._turn_ends_at = 0.0
        self._is_late = False  # the lines before it, of the same read, have taken long already
        self.on_message: Callable[[Link, bytes, object], None] | None = None
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
            journal.exception("reading failed unexpectedly; the server ends")
        finally:
            if watcher is not None:
                watcher.close()
            self._link.session.end("eof")

    def _next_chunk(self, watcher: Any) -> bytes:
        """Read; return b"" at the end. Waits before each read, so that a client that never pauses cannot starve other
        greenlets."""
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
                journal.info("stdin is gone: %s", error.strerror)
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
        """Let the outbox send what has been answered so far, and other greenlets run. Also called by the greenlet that
        serves postponed messages."""
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
                raise TooCostly(self._too_long())
            self._bounds.feed(part)
            self._parts.add(part)
        except ValueError as error:
            self._give_up_line(error)

    def _too_long(self) -> str:
        return f"a line of more than {self._max_line_bytes} bytes"

    def _give_up_line(self, reason: ValueError) -> None:
        self._refusal = reason
        self._parts = Pieces()

    def _end_line(self, line: bytes) -> None:
        bare = b""
        try:
            if self._parts_bytes:
                bare = self._joined(line)
                message = jsontext.parsed(bare) if bare else None
            elif len(line) > self._max_line_bytes:
                raise TooCostly(self._too_long())
            else:
                bare = _bare(line)
                message = jsontext.loads(bare) if bare else None
        except TooCostly as error:
            self._refuse(error, line[:END_BYTES], line[-END_BYTES:])
        except (ValueError, RecursionError) as error:
            self._link.receive_rubbish(str(error), request_ids_in(bare))
        except MemoryError:
            self._link.receive_rubbish("there is no memory left for it")
        else:
            if bare:
                if self.on_message is not None:
                    self.on_message(self._link, bare, message)
                may_wait = self._is_late or type(message) is list  # one batch alone may take long
                self._link.receive(message, weight_bytes=weight_of(bare), may_wait=may_wait)

    def _refuse(self, reason: ValueError, head: bytes, tail: bytes) -> None:
        """Refuse a line that was not kept: it is too long, would cost too much, or is not JSON. Its head or its tail
        may show the id of the request that waits for an answer."""
        id = request_id_in(head, tail)
        if isinstance(reason, TooCostly):
            self._link.receive_too_large(str(reason), id)
        else:
            self._link.receive_rubbish(str(reason), [] if id is None else [id])

    def _joined(self, last: bytes) -> bytes:
        """The line that came in parts; b"" if it is refused."""
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
