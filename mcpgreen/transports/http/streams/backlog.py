"""How much of what we have to say is not read yet, by all clients of the server together.

One who does not read must not make others wait, so nobody waits for this: when it is too much, whoever has left most
unread loses the connection.
"""

from __future__ import annotations

from typing import Protocol

from mcpgreen import journal


class Unread(Protocol):
    """`is_over`: the last of it is there; `is_lost`: no connection sends it."""

    unread_bytes: int
    is_over: bool
    is_lost: bool

    def break_off(self) -> None:
        """Forget all that is unread, and close the connection."""


class Backlog:
    """Bounds what is held for readers."""

    def __init__(self, *, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._total_bytes = 0
        self._holders: set[Unread] = set()

    def __repr__(self) -> str:
        return f"<Backlog of {self._total_bytes} bytes, {len(self._holders)} readers>"

    @property
    def has_answers(self) -> bool:
        """Whether some are still being sent."""
        return any(holder.is_over and not holder.is_lost for holder in self._holders)

    def add(self, holder: Unread, size_bytes: int) -> None:
        self._total_bytes += size_bytes
        self._holders.add(holder)
        while self._total_bytes > self._limit_bytes and len(self._holders) > 1:
            slowest = max(self._holders, key=_unread_bytes)
            journal.warning("a client has left %d bytes unread; its connection is closed", slowest.unread_bytes)
            slowest.break_off()

    def remove(self, holder: Unread, size_bytes: int) -> None:
        self._total_bytes -= size_bytes
        if not holder.unread_bytes:
            self._holders.discard(holder)


def _unread_bytes(holder: Unread) -> int:
    return holder.unread_bytes
