"""The body of a request: read by its length or in chunks, within limits of size and time.

Chunks are read as strictly as heads: no extensions, no trailers, no missing line ends. No MCP client sends them, and
what is not understood cannot be misunderstood.
"""

from __future__ import annotations

import re
from collections.abc import Callable

LINE_END = b"\r\n"
CHUNK_SIZE = re.compile(rb"[0-9A-Fa-f]{1,8}")
MAX_SIZE_LINE_BYTES = 32
# A chunk costs as much work as some hundred bytes do, so beyond these there may be one for as many bytes.
FREE_CHUNKS = 1024
BYTES_A_CHUNK = 256
CHUNKS_A_TURN = 64


class TooLong(Exception):
    """A line or a head does not end within the bytes that it may have."""


class BadBody(Exception):
    """A body that is refused. The connection has to end: where its next request begins is unknown."""

    def __init__(self, status: str, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


class Buffer:
    """Bytes that a connection has received and not used yet. `receive` returns at least one more byte, or raises.

    Taking a piece does not copy what stands behind it: many small requests or chunks may come at once.
    """

    def __init__(self, receive: Callable[[], bytes]) -> None:
        self._receive = receive
        self._data = b""
        self._begin = 0

    def __len__(self) -> int:
        return len(self._data) - self._begin

    def rest(self) -> bytes:
        """Take all that is here, without waiting for more."""
        data, begin = self._data, self._begin
        self._data, self._begin = b"", 0
        return data[begin:] if begin else data

    def take(self, at_most_bytes: int) -> bytes:
        """Take what is here, at least a byte."""
        if not len(self):
            self._data, self._begin = self._receive(), 0
        if len(self) <= at_most_bytes:
            return self.rest()
        begin = self._begin
        self._begin += at_most_bytes
        return self._data[begin : self._begin]

    def take_until(self, end: bytes, at_most_bytes: int) -> bytes:
        """Take everything up to these bytes, which are left out. Raises TooLong."""
        while (found := self._data.find(end, self._begin, self._begin + at_most_bytes + len(end))) < 0:
            if len(self) >= at_most_bytes + len(end):
                raise TooLong
            more = self._receive()
            self._data, self._begin = self.rest() + more, 0
        begin, self._begin = self._begin, found + len(end)
        return self._data[begin:found]

    def skip_line_ends(self, at_most: int) -> None:
        """Skip line ends before a request: some clients send one after a body, where it does not belong."""
        while at_most:
            if self._data.startswith(LINE_END, self._begin):
                self._begin += len(LINE_END)
                at_most -= 1
                continue
            is_half = len(self) == 1 and self._data.startswith(LINE_END[:1], self._begin)
            if len(self) and not is_half:
                return
            more = self._receive()
            self._data, self._begin = self.rest() + more, 0


class Body:
    """The body of one request. `length_bytes` is None for chunks; more than `limit_bytes` is refused. Others get a
    `turn` between many chunks. `at_end` is called when all is read."""

    def __init__(
        self,
        buffer: Buffer,
        length_bytes: int | None,
        *,
        limit_bytes: int,
        on_first_read: Callable[[], None] | None = None,
        turn: Callable[[], None] | None = None,
        at_end: Callable[[], None] | None = None,
    ) -> None:
        self._buffer = buffer
        self._limit_bytes = limit_bytes
        self._on_first_read = on_first_read
        self._turn = turn
        self._at_end = at_end
        self._is_chunked = length_bytes is None
        self._left_bytes = length_bytes or 0  # of the whole, or of a chunk
        self._read_bytes = 0
        self._chunks = 0
        self.is_at_end = length_bytes == 0
        if self._left_bytes > limit_bytes:
            raise _too_long(limit_bytes)

    def read(self, size: int = -1) -> bytes:
        """Read so many bytes, or all that is left; fewer only at the end. Raises BadBody."""
        if self._on_first_read is not None and not self.is_at_end:
            self._on_first_read()
        self._on_first_read = None
        pieces: list[bytes] = []
        wanted = size
        while wanted != 0 and not self.is_at_end:
            if not self._left_bytes:
                self._begin_chunk()
                continue
            piece = self._buffer.take(self._left_bytes if wanted < 0 else min(wanted, self._left_bytes))
            self._left_bytes -= len(piece)
            self._read_bytes += len(piece)
            wanted -= len(piece) if wanted > 0 else 0
            pieces.append(piece)
            if not self._left_bytes:
                self._end_part()
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _begin_chunk(self) -> None:
        line = self._line()
        if CHUNK_SIZE.fullmatch(line) is None:
            raise BadBody("400 Bad Request", "A chunk does not begin with its size.")
        self._left_bytes = int(line, 16)
        if self._read_bytes + self._left_bytes > self._limit_bytes:
            raise _too_long(self._limit_bytes)
        self._chunks += 1
        if self._chunks > FREE_CHUNKS + self._read_bytes // BYTES_A_CHUNK:
            raise BadBody("400 Bad Request", "The body comes in too many small chunks; send larger ones.")
        if self._turn is not None and self._chunks % CHUNKS_A_TURN == 0:
            self._turn()
        if not self._left_bytes:
            self._end_part()
            self._end()

    def _end_part(self) -> None:
        if not self._is_chunked:
            self._end()
        elif self._line():
            raise BadBody("400 Bad Request", "A chunk does not end where its size says.")

    def _end(self) -> None:
        self.is_at_end = True
        if self._at_end is not None:
            self._at_end()

    def _line(self) -> bytes:
        try:
            return self._buffer.take_until(LINE_END, MAX_SIZE_LINE_BYTES)
        except TooLong:
            raise BadBody("400 Bad Request", "A line between chunks is too long.") from None


def _too_long(limit_bytes: int) -> BadBody:
    return BadBody("413 Content Too Large", f"The body may have {limit_bytes} bytes (setting max_line_bytes).")
