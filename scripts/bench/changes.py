"""A workload for our server alone: how soon a change on disk is told.

The floors and the SDK peers serve a fixed set of tools, so there is nobody to compare with; the bar is absolute.
"""

from __future__ import annotations

import time
from statistics import median

from client import is_notice
from projects import write_script
from stand import Stand, Values, greet, list_tools, since_ms

DEBOUNCE_MS = 100.0
"""The default of the setting `list_change_debounce_secs`: a deliberate wait, taken off the measurement."""

SETTLE_SECS = 0.3
NOTICE_SECS = 10.0


def tool_changes(stand: Stand) -> Values:
    """A tool appears in one step, by rename, so that there is one moment to count from."""
    root = stand.folder("changing")
    durations = []
    with stand.start("changing") as session:
        greet(session)
        list_tools(session)
        for _ in range(stand.counts.changes):
            time.sleep(SETTLE_SECS)
            draft = root / "draft.sh"
            write_script(draft, "echo ok")
            start = time.perf_counter()
            draft.rename(root / "tools" / f"new{time.monotonic_ns()}.sh")
            session.next_line(is_notice("notifications/tools/list_changed"), timeout_secs=NOTICE_SECS)
            durations.append(since_ms(start) - DEBOUNCE_MS)
    return {"list_changed": median(durations)}
