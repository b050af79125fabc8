"""What has come over a connection and is not used yet. Knows nothing about HTTP but its line ends.

Rule: what is taken is not copied again with each piece after it; many small requests, or many small chunks, may come at
once.
"""

from __future__ import annotations

from collections.abc import Callable

LINE_END = b"\r\n"


class TooLong(Exception):
    """What should have ended did not, within the bytes that it may have."""


class Buffer:
    """`receive` gives more, at least a byte, or raises."""

    __slots__ = ("_begin", "_data", "_receive")

    def __init__(self, receive: Callable[[], bytes]) -> None:
        self._receive = receive
        self._data = b""
        self._begin = 0

    def __len__(self) -> int:
        return len(self._data) - self._begin

    def rest(self) -> bytes:
        """All that is here, without waiting for more."""
        data, begin = self._data, self._begin
        self._data, self._begin = b"", 0
        return data[begin:] if begin else data

    def take(self, at_most_bytes: int) -> bytes:
        """What is here, at least a byte."""
        if not len(self):
            self._data, self._begin = self._receive(), 0
        if len(self) <= at_most_bytes:
            return self.rest()
        begin = self._begin
        self._begin += at_most_bytes
        return self._data[begin : self._begin]

    def take_until(self, end: bytes, at_most_bytes: int) -> bytes:
        """Up to these bytes, which are left out. Raises TooLong."""
        while (found := self._data.find(end, self._begin, self._begin + at_most_bytes + len(end))) < 0:
            if len(self) >= at_most_bytes + len(end):
                raise TooLong
            more = self._receive()
            self._data, self._begin = self.rest() + more, 0
        begin, self._begin = self._begin, found + len(end)
        return self._data[begin:found]

    def skip_line_ends(self, at_most: int) -> None:
        """Some clients send one after a body, where it does not belong."""
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
