"""Workloads for our server alone: how soon a change on disk is told, and what waiting for one costs.

The floors and the SDK peers serve a fixed set of tools, so there is nobody to compare with; the bars are absolute.
"""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median

import processes
from client import Session, is_notice, result_of
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


def subscriptions(stand: Stand) -> Values:
    counts = stand.counts
    with stand.start("resources") as session:
        greet(session)
        uris = resource_uris(session)[: counts.subscriptions]
        requests = [session.encode("resources/subscribe", {"uri": uri}) for uri in uris]
        for answer in session.exchange(requests, in_flight=100):
            result_of(answer)
        time.sleep(SETTLE_SECS)
        cpu_before = processes.cpu_secs(session.pid)
        time.sleep(counts.idle_secs)
        idle_cpu_secs = processes.cpu_secs(session.pid) - cpu_before
        note = stand.folder("resources") / "resources" / "note0000.txt"
        updated = [await_update(session, note) for _ in range(counts.changes)]
    return {"idle": idle_cpu_secs / counts.idle_secs * 100, "updated": median(updated)}


def resource_uris(session: Session) -> list[str]:
    uris: list[str] = []
    page = result_of(session.ask(session.encode("resources/list")))
    while True:
        uris += [resource["uri"] for resource in page["resources"]]
        if "nextCursor" not in page:
            return uris
        page = result_of(session.ask(session.encode("resources/list", {"cursor": page["nextCursor"]})))


def await_update(session: Session, note: Path) -> float:
    start = time.perf_counter()
    note.write_text(f"changed at {start}", encoding="utf-8")
    session.next_line(is_notice("notifications/resources/updated"), timeout_secs=NOTICE_SECS)
    took_ms = since_ms(start)
    time.sleep(SETTLE_SECS)
    return took_ms
