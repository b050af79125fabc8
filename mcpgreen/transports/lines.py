"""The incoming lines of a link: cut, bounded, decoded, handed over batch by batch.

A line that spans several reads is looked at as it comes (`json_bounds`), so that one which will not be parsed is
forgotten early. Whatever comes in, others get a turn after some milliseconds, and what takes longer than that waits in
the link, while pings and cancellations that stand behind it are read and served.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import gevent

from mcpgreen import journal
from mcpgreen.engine.link import FAULT, Link
from mcpgreen.running.processes.pipes import READ_EVENT
from mcpgreen.running.turns import let_others
from mcpgreen.text import jsontext
from mcpgreen.text.json_bounds import Bounds, TooCostly, weight_of
from mcpgreen.text.pieces import Pieces
from mcpgreen.transports.descriptors import Endpoint
from mcpgreen.transports.outbox import Outbox

READ_BYTES = 65536
PROMPT_SECS = 0.005
TURN_SECS = 0.025
END_BYTES = 512
BOM = b"\xef\xbb\xbf"


class LineReader:
    """Cuts the input into lines and hands them to the link, batch by batch."""

    def __init__(self, endpoint: Endpoint, link: Link, outbox: Outbox, *, max_line_bytes: int) -> None:
        self._endpoint = endpoint
        self._link = link
        self._outbox = outbox
        self._max_line_bytes = max_line_bytes
        self._parts = Pieces()  # of the line that is still incomplete
        self._parts_bytes = 0
        self._bounds = Bounds()  # of the same
        self._refusal = ""  # why it will not be served, once that is clear
        self._head = self._tail = b""  # where the id of one that is refused may stand
        self._turn_ends_at = 0.0
        self._is_late = False  # what else was read with it has taken long already
        self.on_message: Callable[[Link, bytes, Any], None] | None = None  # for who wants to see them all
        self.reads = 0  # so far; who wants to know whether the client is silent compares

    def run(self, first: bytes, *, is_at_end: bool) -> None:
        """Read to the end of the input. `first` is what was read before."""
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
        except Exception:  # nobody is above the reader to hear of it, and without it there is no server
            self._link.session.end(FAULT)
            journal.exception("reading failed unexpectedly; the server ends")
        finally:
            if watcher is not None:
                watcher.close()
            self._link.session.end("eof")

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
            except MemoryError:
                if not self._parts_bytes or self._refusal:
                    raise
                self._give_up_line("there is no memory left for it")
            except OSError as error:
                journal.info("stdin is gone: %s", error.strerror)
                return b""

    def _take(self, chunk: bytes) -> None:
        *lines, rest = chunk.split(b"\n")
        now = time.monotonic()
        late_at, self._turn_ends_at, self._is_late = now + PROMPT_SECS, now + TURN_SECS, False
        self._outbox.hold()
        try:
            for line in lines:
                self._end_line(line)
                now = time.monotonic()
                self._is_late = now > late_at
                # One read may hold requests for more than fits into memory, or into one turn.
                if not self._outbox.has_room or now > self._turn_ends_at:
                    self._give_turn()
        finally:
            self._outbox.release()
        if rest:
            self._keep(rest)

    def _give_turn(self) -> None:
        """Let others run, and what has been answered so far go out. Not only for the reader: who serves what it put off
        does not hold the outbox."""
        is_holding = self._outbox.is_holding
        self._outbox.release()
        self._outbox.wait_for_room()
        let_others()
        if is_holding:
            self._outbox.hold()
        self._turn_ends_at = time.monotonic() + TURN_SECS

    def _keep(self, part: bytes) -> None:
        self._parts_bytes += len(part)
        self._head += part[: END_BYTES - len(self._head)]
        self._tail = (self._tail + part[-END_BYTES:])[-END_BYTES:]
        if self._refusal:
            return
        try:
            if self._parts_bytes > self._max_line_bytes:
                raise ValueError(self._too_long())
            self._bounds.feed(part)
            self._parts.add(part)
        except ValueError as error:
            self._give_up_line(str(error))

    def _too_long(self) -> str:
        return f"a line of more than {self._max_line_bytes} bytes"

    def _give_up_line(self, reason: str) -> None:
        self._refusal = reason
        self._parts = Pieces()

    def _end_line(self, line: bytes) -> None:
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
            self._refuse(str(error), line[:END_BYTES], line[-END_BYTES:])
        except (ValueError, RecursionError) as error:
            self._link.receive_rubbish(str(error))
        except MemoryError:
            self._link.receive_rubbish("there is no memory left for it")
        else:
            if bare:
                if self.on_message is not None:
                    self.on_message(self._link, bare, message)
                may_wait = self._is_late or type(message) is list  # of which one alone may take long
                self._link.receive(message, weight_bytes=weight_of(bare), may_wait=may_wait)

    def _refuse(self, reason: str, head: bytes, tail: bytes) -> None:
        """A line that is longer, or would cost more, than we are willing to take. Its ends may say who waits for an
        answer."""
        from mcpgreen.protocol.refused_lines import request_id_in

        self._link.receive_rubbish(reason, request_id_in(head, tail))

    def _joined(self, last: bytes) -> bytes:
        """The line that came in parts; nothing if it is refused."""
        self._keep(last)
        parts, refusal, head, tail = self._parts, self._refusal, self._head, self._tail
        self._parts, self._parts_bytes, self._bounds, self._refusal = Pieces(), 0, Bounds(), ""
        self._head = self._tail = b""
        if refusal:
            self._refuse(refusal, head, tail)
            return b""
        return _bare(b"".join(parts.take()))


def _bare(line: bytes) -> bytes:
    return line.removeprefix(BOM).strip()
