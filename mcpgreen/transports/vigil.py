"""When to leave unasked: the client has been silent for long, or the process that started us is gone.

One greenlet looks from time to time, and nothing is noted for each message: the reader counts its reads, and the link
knows whether the client waits for something. So the server leaves a little later than the setting says, never earlier.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import gevent

from mcpgreen import journal
from mcpgreen.engine.link import Link
from mcpgreen.settings import Settings

LOOKS_PER_TIMEOUT = 10
INIT_PID = 1


class Vigil:
    """Ends a link that nobody needs any more. `reads` is how often something has come in so far."""

    def __init__(self, link: Link, *, reads: Callable[[], int], settings: Settings, parent_pid: int) -> None:
        self._link = link
        self._reads = reads
        is_idle_checked = settings.idle_timeout_enabled and not settings.ci_mode
        # Whoever is started by the first process of a system or container has nobody to lose.
        is_parent_checked = settings.orphan_check_enabled and not settings.ci_mode and parent_pid != INIT_PID
        self._idle_secs: float = settings.idle_timeout_secs if is_idle_checked else 0.0
        self._parent_pid = parent_pid if is_parent_checked else None
        pauses = [self._idle_secs / LOOKS_PER_TIMEOUT] if self._idle_secs else []
        self._pause_secs = min(
            [*pauses, settings.orphan_check_interval_secs] if is_parent_checked else pauses, default=0
        )
        self._greenlet: Any = None

    def start(self) -> None:
        if self._pause_secs:
            self._greenlet = gevent.spawn(self._run)

    def stop(self) -> None:
        if self._greenlet is not None:
            self._greenlet.kill()

    def _run(self) -> None:
        reads, active_at = self._reads(), time.monotonic()
        while True:
            gevent.sleep(self._pause_secs)
            if self._parent_pid is not None and os.getppid() != self._parent_pid:
                journal.warning("the process that started this server is gone; exiting")
                self._link.session.end("orphaned")
                return
            if self._reads() != reads or self._link.is_waited_on:
                reads, active_at = self._reads(), time.monotonic()
            elif self._idle_secs and time.monotonic() - active_at >= self._idle_secs:
                text = f"idle timeout after {self._idle_secs:g}s with no client activity; exiting"
                journal.warning("%s", text)
                self._link.session.log("warning", "mcp.lifecycle", text)
                self._link.session.end("idle")
                return
