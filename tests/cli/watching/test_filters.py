"""The filter language: the table of docs/debugging.md, and what is no filter."""

from __future__ import annotations

from typing import Any

import pytest

from mcpgreen.cli.watching import filters
from mcpgreen.cli.watching.calls import Calls
from mcpgreen.cli.watching.table import bar, duration

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


def test_a_bar_is_as_long_as_the_time_that_each_part_took() -> None:
    first, second = calls().chosen(filters.parsed("call:1"))[0], calls().chosen(filters.parsed("call:2"))[0]

    assert bar(first, 2000.0, 20).plain == "░" * 5 + "█" * 14 + "▒"
    assert bar(second, 2000.0, 20).plain == "▏"
    assert [duration(ms) for ms in (0.84, 43.2, 999.7, 1234.0, 185_000.0)] == [
        "0.8 ms",
        "43 ms",
        "1.0 s",
        "1.2 s",
        "0:03:05",
    ]
