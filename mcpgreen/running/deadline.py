"""When a script has to be over."""

from __future__ import annotations

import time


class Deadline:
    """When a call has to be over. With `extends`, each sign of progress starts the time anew, up to a hard cap."""

    __slots__ = ("_at", "_cap_at", "_secs", "extends")

    def __init__(self, secs: float, *, extends: bool = False, cap_secs: float = 0) -> None:
        now = time.monotonic()
        self._secs = secs
        self._at = now + secs
        self._cap_at = now + cap_secs if extends and cap_secs else None
        self.extends = extends
        self._bound()

    def progressed(self) -> None:
        if self.extends:
            self._at = time.monotonic() + self._secs
            self._bound()

    def remaining_secs(self) -> float:
        return self._at - time.monotonic()

    @property
    def is_at_cap(self) -> bool:
        return self._cap_at is not None and self._at >= self._cap_at

    def _bound(self) -> None:
        if self._cap_at is not None:
            self._at = min(self._at, self._cap_at)
