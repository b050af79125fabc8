"""What a forked script says last, on the control pipe: that it is over, and with which status.

By then it has said all, and nobody is left of it; only its process has to go yet, which takes longer than to run many a
script. A word that only this process knows comes before the status, so that no other script can say it by mistake. One
that says it on purpose, before it is over, has said all that is heard of it, and is ended.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from mcpgreen.running.processes.pipes import OnChunk

WORD_BYTES = 16
STATUS_DIGITS = 3


def new_word() -> bytes:
    return os.urandom(WORD_BYTES // 2).hex().encode()


class LastWord:
    """Finds it in what comes from a control pipe; all else is for `on_chunk`."""

    __slots__ = ("_held", "_on_chunk", "_on_end", "_start")

    def __init__(self, word: bytes, on_chunk: OnChunk, on_end: Callable[[int], None]) -> None:
        self._start = b"\0" + word
        self._on_chunk = on_chunk
        self._on_end = on_end
        self._held = b""  # what may be its beginning

    def take(self, chunk: bytes) -> float | None:
        """As `OnChunk`."""
        if self._held:
            chunk, self._held = self._held + chunk, b""
        length = len(self._start) + STATUS_DIGITS
        at = chunk.rfind(b"\0", -length)
        if at < 0:
            return self._on_chunk(chunk)
        word, status = chunk[at : at + len(self._start)], chunk[at + len(self._start) :]
        if not self._start.startswith(word):
            return self._on_chunk(chunk)
        rest_secs = self._on_chunk(chunk[:at]) if at else None
        if len(status) == STATUS_DIGITS and status.isdigit():
            self._on_end(int(status))
        elif len(status) < STATUS_DIGITS:
            self._held = chunk[at:]
        else:
            return self._on_chunk(chunk[at:])
        return rest_secs

    def give_back(self) -> None:
        """Nothing will come any more: what was held was something else."""
        if self._held:
            self._on_chunk(self._held)
            self._held = b""
