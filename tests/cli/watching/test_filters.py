"""The filter language: the table of docs/debugging.md, and what is no filter."""

from __future__ import annotations

from typing import Any

import pytest

from mcpgreen.cli.watching import filters
from mcpgreen.cli.watching.calls import Calls

SERVER = {"kind": "server", "server": 7, "pid": 7, "name": "shop", "project": "/srv/shop", "at": 1.0, "n": 0}


def told(kind: str, call: int, at: float, **fields: Any) -> dict[str, Any]:
    return {"kind": kind, "server": 7, "call": call, "link": 1, "at": at, "n": 1, **fields}


def calls() -> Calls:
    stats = {"method": "tools/call", "name": "stats"}
    known = Calls()
    for event in (
        SERVER,
        {"kind": "opened", "server": 7, "link": 1, "at": 1.0, "n": 0, "client": {"name": "Cursor"}},
        told("queued", 1, 2.0, id=5, arguments={"day": "Monday"}, **stats),
        told("started", 1, 2.5, pid=99),
        told(
            "ended",
            1,
            4.0,
            outcome="failed",
            reason="no such day",
            queue_ms=500,
            run_ms=1400,
            write_ms=100,
            **stats,
        ),
        told("ended", 2, 5.0, outcome="ok", method="resources/read", name="file:///a b", run_ms=20),
        told("ended", 3, 6.0, outcome="timed out", method="tools/call", name="report", run_ms=30_000, task="t1"),
        told("queued", 4, 7.0, method="tools/call", name="slow", id=8, interaction=3),
    ):
        known.take(event)
    return known


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("", [1, 2, 3, 4]),
        ("tool:stats", [1]),
        ("tool:s*", [1, 4]),
        ("tool:*", [1, 3, 4]),
        ("name:FILE", [2]),
        ('name:"a b"', [2]),
        ("method:tools", [1, 3, 4]),
        ("status:error", [1, 3]),
        ("status:timed-out", [3]),
        ("status:queued", [4]),
        ("-status:error", [2, 4]),
        ("dur:>1s", [1, 3, 4]),
        ("dur:<0.1s -status:queued", [2]),
        ("dur:>=2s dur:<1m status:failed", [1]),
        ("client:cursor server:shop", [1, 2, 3, 4]),
        ("client:zed", []),
        ("call:3", [3, 4]),
        ("id:5 pid:99 link:1", [1]),
        ("task:t1", [3]),
        ("monday", [1]),
        ("reason:day no", [1]),
        ("tool:stats tool:report", []),
        ("dur:soon", []),
        ("nothing:known", []),
        ("((*[", []),
    ],
)
def test_a_filter_chooses_calls(text: str, numbers: list[int]) -> None:
    assert sorted(call.number for call in calls().chosen(filters.parsed(text))) == numbers
