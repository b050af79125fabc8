"""The incoming lines of a link: cut, bounded, decoded, handed over batch by batch."""

from __future__ import annotations

from typing import Any

import gevent

from mcpgreen import journal, jsontext
from mcpgreen.engine.connection import Connection
from mcpgreen.running.pipes import READ_EVENT
from mcpgreen.transports.descriptors import Endpoint
from mcpgreen.transports.outbox import Outbox

READ_BYTES = 65536
BOM = b"\xef\xbb\xbf"


class LineReader:
    """Cuts the input into lines and hands them to the link, batch by batch."""

    def __init__(self, endpoint: Endpoint, link: Connection, outbox: Outbox, *, max_line_bytes: int) -> None:
        self._endpoint = endpoint
        self._link = link
        self._outbox = outbox
        self._max_line_bytes = max_line_bytes
        self._parts: list[bytes] = []  # of the line that is still incomplete
        self._parts_bytes = 0
        self._is_skipping = False
        self._is_first = True
        self.reads = 0  # so far; who wants to know whether the client is silent compares

    def run(self, first: bytes, *, is_at_end: bool) -> None:
        """Read to the end of the input. `first` is what was read before."""
        watcher = None if self._endpoint.is_regular_file() else gevent.get_hub().loop.io(self._endpoint.fd, READ_EVENT)
        try:
            self._take(first)
            while not is_at_end:
                self._outbox.wait_for_room()
                chunk = self._next_chunk(watcher)
                self.reads += 1
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
        outbox = self._outbox
        outbox.hold()
        try:
            for line in lines:
                self._end_line(line)
                if not outbox.has_room:
                    # One read may hold requests for more than fits into memory: the rest waits for its turn.
                    outbox.release()
                    outbox.wait_for_room()
                    outbox.hold()
        finally:
            outbox.release()
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
