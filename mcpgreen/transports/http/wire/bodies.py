"""The body of a request: read by its length or in chunks, never more than allowed, never longer than allowed.

Chunks are read as strictly as heads: no extensions, no trailers, no missing line ends. Nobody who speaks MCP sends
those, and what nobody sends need not be understood.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from mcpgreen.transports.http.wire.buffer import LINE_END, Buffer, TooLong

CHUNK_SIZE = re.compile(rb"[0-9A-Fa-f]{1,8}")
MAX_SIZE_LINE_BYTES = 32
# A chunk costs as much work as some hundred bytes do, so beyond these there may be one for as many bytes.
FREE_CHUNKS = 1024
BYTES_A_CHUNK = 256
CHUNKS_A_TURN = 64


class BadBody(Exception):
    """A body that is not served. The connection cannot be used any more: nobody knows where its next request begins."""

    def __init__(self, status: str, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


class Body:
    """Of one request, as WSGI knows it. `limit_bytes` is how much of it is read at the most. While there are many
    chunks, others get a `turn` now and then; `at_end` is called as soon as all is read."""

    def __init__(
        self,
        buffer: Buffer,
        length_bytes: int | None,
        *,
        limit_bytes: int,
        turn: Callable[[], None] | None = None,
        at_end: Callable[[], None] | None = None,
    ) -> None:
        self._buffer = buffer
        self._limit_bytes = limit_bytes
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
        """So many bytes, or all that is left. Less only at the end. Raises BadBody."""
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
    return BadBody("413 Content Too Large", f"The body may have {limit_bytes} bytes (setting http_max_body_bytes).")
