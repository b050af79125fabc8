"""When a script has to be over."""

from __future__ import annotations

import math
import time

MIN_LEFT_SECS = 0.1
MAX_SECS = 1e9  # 30 years; more is no time that a clock could be set to


class Deadline:
    """When a call has to be over. With `extends`, each sign of progress starts the time anew, up to a hard cap."""

    __slots__ = ("_at", "_cap_at", "_paused_at", "_secs", "extends", "has_seen_progress")

    def __init__(self, secs: float, *, extends: bool = False, cap_secs: float = 0) -> None:
        now = time.monotonic()
        self._secs = secs
        self._cap_at = now + cap_secs if extends and cap_secs else math.inf
        self._at = min(now + secs, self._cap_at)
        self.extends = extends
        self.has_seen_progress = False
        self._paused_at: float | None = None  # while time stands still

    def pause(self) -> None:
        """Stop the clock: a person is being asked."""
        if self._paused_at is None:
            self._paused_at = time.monotonic()
            self._at = max(self._at, self._paused_at + MIN_LEFT_SECS)

    def resume(self) -> None:
        if self._paused_at is not None:
            stood_still_secs = time.monotonic() - self._paused_at
            self._paused_at = None
            self._at += stood_still_secs
            self._cap_at += stood_still_secs

    def progressed(self) -> None:
        self.has_seen_progress = True
        if self.extends:
            self._at = min(self._now() + self._secs, self._cap_at)

    def remaining_secs(self) -> float:
        return self._at - self._now()

    @property
    def is_at_cap(self) -> bool:
        return self._at >= self._cap_at

    def _now(self) -> float:
        return time.monotonic() if self._paused_at is None else self._paused_at
