"""How much of what was sent is kept for clients that come back, by all streams together.

When it is too much, whoever was sent something longest ago loses what is kept: its client then hears only what is new.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Protocol


class Kept(Protocol):
    kept_bytes: int

    def forget_kept(self) -> None: ...


class History:
    """Bounds what is kept."""

    def __init__(self, *, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._total_bytes = 0
        self._holders: OrderedDict[Kept, None] = OrderedDict()

    def change(self, holder: Kept, change_bytes: int) -> None:
        """A holder keeps so many bytes more, or fewer."""
        self._total_bytes += change_bytes
        if not holder.kept_bytes:
            self._holders.pop(holder, None)
            return
        self._holders[holder] = None
        if change_bytes > 0:
            self._holders.move_to_end(holder)
        while self._total_bytes > self._limit_bytes and len(self._holders) > 1:
            next(iter(self._holders)).forget_kept()
