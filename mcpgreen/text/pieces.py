"""Collect bytes that arrive in chunks of any size, in few pieces.

The sender decides how large the chunks are, and each of them costs memory and time: three megabytes in chunks of two
bytes would be a million and a half objects.
"""

from __future__ import annotations

SMALL_BYTES = 4096
PIECE_BYTES = 65536


class Pieces:
    """A growing content. Large chunks are kept as they are, small ones are joined."""

    __slots__ = ("_small", "_whole")

    def __init__(self) -> None:
        self._whole: list[bytes] = []
        self._small = bytearray()

    def add(self, chunk: bytes) -> None:
        if len(chunk) < SMALL_BYTES:
            self._small += chunk
            if len(self._small) >= PIECE_BYTES:
                self._close_small()
        else:
            self._close_small()
            self._whole.append(chunk)

    def take(self) -> list[bytes]:
        """Return all pieces in order, and forget them."""
        self._close_small()
        taken, self._whole = self._whole, []
        return taken

    def _close_small(self) -> None:
        if self._small:
            self._whole.append(bytes(self._small))
            self._small.clear()
