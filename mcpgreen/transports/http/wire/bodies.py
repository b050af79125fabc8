"""The body of a request: read by its length or in chunks, within limits of size and time.

Chunks are read as strictly as heads: no extensions, no trailers, no missing line ends. No MCP client sends them, and
what is not understood cannot be misunderstood.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable

from mcpgreen.running.shares import let_others
from mcpgreen.transports.http.wire.heads import BAD, BadRequest

LINE_END = b"\r\n"
CHUNK_SIZE = re.compile(rb"[0-9A-Fa-f]{1,8}")
MAX_SIZE_LINE_BYTES = 32
# A chunk is as much work as a few hundred bytes, so beyond the free ones, a body needs this many bytes for each chunk.
FREE_CHUNKS = 1024
BYTES_A_CHUNK = 256
CHUNKS_A_TURN = 64


class Buffer:
    """Bytes that a connection has received and not used yet. `receive` returns at least one more byte, or raises."""

    def __init__(self, receive: Callable[[], bytes]) -> None:
        self._receive = receive
        # Deleting the beginning does not copy the rest: many small requests or chunks may come at once.
        self._data = bytearray()

    def __len__(self) -> int:
        return len(self._data)

    def take(self, at_most_bytes: int) -> bytes:
        """Take what is here, at least a byte."""
        if not self._data:
            self._data += self._receive()
        taken = bytes(self._data[:at_most_bytes])
        del self._data[:at_most_bytes]
        return taken

    def take_until(self, end: bytes, at_most_bytes: int, *, what: str, status: str = BAD) -> bytes:
        """Take everything up to these bytes, which are left out. Raises BadRequest if they come later."""
        while (found := self._data.find(end, 0, at_most_bytes + len(end))) < 0:
            if len(self._data) >= at_most_bytes + len(end):
                raise BadRequest(f"{what} may have {at_most_bytes} bytes.", status)
            self._data += self._receive()
        taken = bytes(self._data[:found])
        del self._data[: found + len(end)]
        return taken

    def skip_line_ends(self, at_most: int) -> None:
        """Skip line ends before a request: some clients send one after a body, where it does not belong."""
        for _ in range(at_most):
            while self._data in (b"", LINE_END[:1]):
                self._data += self._receive()
            if not self._data.startswith(LINE_END):
                return
            del self._data[: len(LINE_END)]


class Body:
    """The body of one request. `length_bytes` is None for chunks; more than `limit_bytes` is refused. `at_end` is
    called when all is read."""

    def __init__(
        self,
        buffer: Buffer,
        length_bytes: int | None,
        *,
        limit_bytes: int,
        on_first_read: Callable[[], None] | None = None,
        at_end: Callable[[], None] | None = None,
    ) -> None:
        self._buffer = buffer
        self._limit_bytes = limit_bytes
        self._on_first_read = on_first_read
        self._at_end = at_end
        self._is_chunked = length_bytes is None
        self._left_bytes = length_bytes or 0  # of the whole, or of a chunk
        self._read_bytes = 0
        self._chunks = 0
        self.is_at_end = length_bytes == 0
        self._require_within_limit()

    def read(self, size: int = sys.maxsize) -> bytes:
        """Read this many bytes; fewer only at the end. Raises BadRequest."""
        if self._on_first_read is not None and not self.is_at_end:
            self._on_first_read()
        self._on_first_read = None
        pieces: list[bytes] = []
        while size and not self.is_at_end:
            if not self._left_bytes:
                self._begin_chunk()
                continue
            piece = self._buffer.take(min(size, self._left_bytes))
            self._left_bytes -= len(piece)
            self._read_bytes += len(piece)
            size -= len(piece)
            pieces.append(piece)
            if not self._left_bytes:
                self._end_part()
        return b"".join(pieces)

    def _begin_chunk(self) -> None:
        line = self._line()
        if CHUNK_SIZE.fullmatch(line) is None:
            raise BadRequest("A chunk does not begin with its size.")
        self._left_bytes = int(line, 16)
        self._require_within_limit()
        self._chunks += 1
        if self._chunks > FREE_CHUNKS + self._read_bytes // BYTES_A_CHUNK:
            raise BadRequest("The body comes in too many small chunks; send larger ones.")
        if self._chunks % CHUNKS_A_TURN == 0:
            let_others()
        if not self._left_bytes:
            self._end_part()
            self._end()

    def _end_part(self) -> None:
        if not self._is_chunked:
            self._end()
        elif self._line():
            raise BadRequest("A chunk does not end where its size says.")

    def _end(self) -> None:
        self.is_at_end = True
        if self._at_end is not None:
            self._at_end()

    def _line(self) -> bytes:
        return self._buffer.take_until(LINE_END, MAX_SIZE_LINE_BYTES, what="A line between chunks")

    def _require_within_limit(self) -> None:
        if self._read_bytes + self._left_bytes > self._limit_bytes:
            reason = f"The body may have {self._limit_bytes} bytes (setting max_line_bytes)."
            raise BadRequest(reason, "413 Content Too Large")
