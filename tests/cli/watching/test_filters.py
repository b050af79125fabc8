"""The filter language: the table of docs/debugging.md, and what is no filter."""

from __future__ import annotations

from typing import Any

import pytest

from mcpgreen.cli.watching import filters
from mcpgreen.cli.watching.board import Board, board_of
from mcpgreen.cli.watching.table import duration, shares

SERVER = {"kind": "server", "server": 7, "pid": 7, "name": "shop", "project": "/srv/shop", "at": 1.0, "n": 0}


def told(kind: str, call: int, at: float, **fields: Any) -> dict[str, Any]:
    return {"kind": kind, "server": 7, "call": call, "link": 1, "at": at, "n": 1, **fields}


def board() -> Board:
    stats = {"method": "tools/call", "name": "stats"}
    return board_of(
        [
            SERVER,
            told("opened", 0, 1.0, client={"name": "Cursor"}),
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
        ]
    )


@pytest.mark.parametrize(
    ("text", "calls"),
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
def test_a_filter_chooses_calls(text: str, calls: list[int]) -> None:
    wanted = filters.parsed(text)

    assert [row.number for row in board().rows.values() if wanted(row)] == calls


def test_a_bar_is_as_long_as_the_time_that_each_part_took() -> None:
    assert shares((25.0, 50.0, 25.0), 100.0, 20) == [5, 10, 5]
    assert shares((0.0, 0.01, 0.0), 100.0, 20) == [0, 1, 0]
    assert sum(shares((1e9, 1e9, 1e9), 10.0, 20)) == 20
    assert [duration(ms) for ms in (0.84, 43.2, 1234.0, 185_000.0)] == ["0.8 ms", "43 ms", "1.2 s", "3:05"]
