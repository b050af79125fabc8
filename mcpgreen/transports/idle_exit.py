"""When to leave unasked: the client has been silent for long, or the process that started us is gone.

One greenlet looks from time to time, and nothing is noted for each message: the reader counts its reads, and the link
knows whether the client waits for something. So the server leaves a little later than the setting says, never earlier.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import gevent

from mcpgreen import journal
from mcpgreen.engine.link import Link
from mcpgreen.settings.settings import Settings

LOOKS_PER_TIMEOUT = 10
INIT_PID = 1


def keep_vigil(link: Link, *, reads: Callable[[], int], settings: Settings, parent_pid: int) -> None:
    """End a link that nobody needs any more. `reads` is how often something has come in so far."""
    idle_secs: float = settings.idle_timeout_secs if settings.idle_timeout_enabled and not settings.ci_mode else 0.0
    # Whoever is started by the first process of a system or container has nobody to lose.
    is_parent_checked = settings.orphan_check_enabled and not settings.ci_mode and parent_pid != INIT_PID
    pauses = [idle_secs / LOOKS_PER_TIMEOUT] if idle_secs else []
    pauses += [settings.orphan_check_interval_secs] if is_parent_checked else []
    seen, active_at = reads(), time.monotonic()
    while pauses:
        gevent.sleep(min(pauses))
        if is_parent_checked and os.getppid() != parent_pid:
            journal.warning("the process that started this server is gone; exiting")
            link.session.end("orphaned")
            return
        if reads() != seen or link.is_waited_on:
            seen, active_at = reads(), time.monotonic()
        elif idle_secs and time.monotonic() - active_at >= idle_secs:
            text = f"idle timeout after {idle_secs:g}s with no client activity; exiting"
            journal.warning("%s", text)
            link.session.log("warning", "mcp.lifecycle", text)
            link.session.end("idle")
            return
