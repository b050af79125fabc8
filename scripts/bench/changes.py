"""Workloads for our server alone: how soon a change on disk is told, and what it costs to wait for one.

The floors and the SDK peers serve a fixed set of things, so there is nobody to compare with; the bars are absolute.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

import processes
from client import Session, SubjectError, is_notice, result_of
from projects import WATCHED_COUNT, write_script
from stand import Stand, Values, greet, list_tools, since_ms

LIST_DEBOUNCE_MS = 100.0
"""The default of the setting `list_change_debounce_secs`: a deliberate wait, taken off the measurement."""

RESOURCE_DEBOUNCE_MS = 20.0
"""The same for subscribed resources, `SETTLE_SECS` in `features/watching/watches.py`."""

SETTLE_SECS = 0.3
NOTICE_SECS = 10.0


def tool_changes(stand: Stand) -> Values:
    """A tool appears in one step, by rename, so that there is one moment to count from."""
    root = stand.folder("changing")
    with stand.start("changing") as session:
        greet(session)
        list_tools(session)

        def new_tool() -> float:
            draft = root / "draft.sh"
            write_script(draft, "echo ok")
            start = time.perf_counter()
            draft.rename(root / "tools" / f"new{time.monotonic_ns()}.sh")
            return start

        took_ms = until_told(session, new_tool, "notifications/tools/list_changed", count=stand.counts.changes)
    return {"list_changed": took_ms - LIST_DEBOUNCE_MS}


def resource_changes(stand: Stand) -> Values:
    """One of many subscribed files is replaced by another."""
    root = stand.folder("watched")
    with stand.start("watched") as session:
        subscribe_to_all(session, stand)

        def replace_file() -> float:
            draft = root / "draft.txt"
            draft.write_text(f"{time.monotonic_ns()}\n", encoding="ascii")
            start = time.perf_counter()
            draft.rename(root / "resources" / "0000.txt")
            return start

        took_ms = until_told(session, replace_file, "notifications/resources/updated", count=stand.counts.changes)
    return {"resource_updated": took_ms - RESOURCE_DEBOUNCE_MS}


def idle_subscriptions(stand: Stand) -> Values:
    with stand.start("watched") as session:
        subscribe_to_all(session, stand)
        time.sleep(stand.counts.idle_secs)
        cpu_before, start = processes.cpu_secs(session.pid), time.perf_counter()
        time.sleep(stand.counts.idle_secs)
        cpu_ms = (processes.cpu_secs(session.pid) - cpu_before) * 1000
        return {"subscriptions_idle": cpu_ms / since_ms(start) * 100}


def subscribe_to_all(session: Session, stand: Stand) -> None:
    greet(session)
    paths = sorted(stand.folder("watched").glob("resources/*.txt"))
    requests = [session.encode("resources/subscribe", {"uri": path.as_uri()}) for path in paths]
    for answer in session.exchange(requests, in_flight=len(requests)):
        result_of(answer)
    if len(paths) != WATCHED_COUNT:
        raise SubjectError(f"{len(paths)} resources instead of {WATCHED_COUNT}")


def until_told(session: Session, change: Callable[[], float], method: str, *, count: int) -> float:
    """The median time from a change, which says when it was made, to the notification."""
    durations = []
    for _ in range(count):
        time.sleep(SETTLE_SECS)
        start = change()
        session.next_line(is_notice(method), timeout_secs=NOTICE_SECS)
        durations.append(since_ms(start))
    return median(durations)
