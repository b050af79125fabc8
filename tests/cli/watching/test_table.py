"""How calls look: the table and one call opened, from events as servers send them."""

from __future__ import annotations

import time
from io import StringIO
from typing import Any

import pytest
from rich.console import Console, RenderableType

from mcpgreen.cli.watching import filters
from mcpgreen.cli.watching.calls import Call, Calls
from mcpgreen.cli.watching.table import bar, calls_table, duration, line, opened


def printed(content: RenderableType) -> str:
    console = Console(file=StringIO(), width=80, markup=False, highlight=False)
    console.print(content)
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


class Events:
    """Calls to a tool that a test tells of, one by one. Times are in seconds, from now on."""

    def __init__(self) -> None:
        self.calls = Calls()
        self._now = time.time()
        self._count = 0
        self._now = time.time()
        self.tell("server", -100, pid=7, name="shop", transport="http")
        self.tell("opened", -100, link=1, client={"name": "Cursor"})

    def tell(self, kind: str, at: float, **fields: Any) -> None:
        self._count += 1
        self.calls.take({"kind": kind, "at": self._now + at, "server": 7, "n": self._count, **fields})

    def queued(self, call: int, at: float, name: str = "stats", method: str = "tools/call") -> None:
        self.tell("queued", at, call=call, link=1, method=method, name=name, id=call, place=0)

    def ended(self, call: int, at: float, outcome: str = "ok", **fields: Any) -> None:
        self.tell(
            "ended", at, call=call, link=1, outcome=outcome, **{"method": "tools/call", "name": "stats", **fields}
        )

    def only(self) -> Call:
        (call,) = self.calls.chosen()
        return call


@pytest.fixture
def events() -> Events:
    return Events()


def test_a_bar_is_as_long_as_the_time_that_each_part_took(events: Events) -> None:
    events.ended(1, 0, queue_ms=500, run_ms=1400, write_ms=100)
    call = events.only()

    assert bar(call, 2000.0, 20).plain == "░" * 5 + "█" * 14 + "▒"
    assert bar(call, 1_000_000.0, 20).plain == "▏"
    assert sum(map(len, bar(call, 2000.0, 20).plain)) == 20


@pytest.mark.parametrize(
    ("ms", "text"),
    [(0.84, "0.8 ms"), (43.2, "43 ms"), (999.7, "1.0 s"), (1234.0, "1.2 s"), (185_000.0, "0:03:05")],
)
def test_times_are_as_people_read_them(ms: float, text: str) -> None:
    assert duration(ms) == text


def test_calls_look_like_what_they_do(events: Events) -> None:
    events.queued(1, -90, "uris", "subscriptions/listen")
    events.queued(2, -80)
    events.ended(2, -79, "task", task="t1")
    events.queued(3, -40)
    events.tell("started", -39, call=3, link=1, pid=5)
    events.queued(4, -10)
    events.tell("asked", -9, call=4, link=1, key="k", method="elicitation/create")
    events.queued(5, -8)
    events.tell("started", -7, call=5, link=1, pid=6)
    events.ended(5, -5, "cancelled", run_ms=3000)
    events.queued(6, -1)

    rows = printed(calls_table(events.calls.chosen(), None, 80)).splitlines()

    assert [row[37:47].strip() for row in rows] == ["status", "listens", "task", "hung?", "asks", "cancelled", "queued"]
    assert [call.number for call in events.calls.chosen(filters.parsed("status:hung"))] == [3]
    cancelled = events.calls.chosen(filters.parsed("call:5"))[0]
    assert [round(ms) for ms in cancelled.parts_ms] == [1000, 2000, 0]  # the server does not tell when it began


def test_calls_that_were_over_before_somebody_looked_are_in_order_of_time(events: Events) -> None:
    events.ended(2, -5, run_ms=10)
    events.ended(1, -1, run_ms=60_000)

    assert [call.number for call in events.calls.chosen()] == [1, 2]


def test_an_opened_call_has_its_frames_its_process_and_its_output_in_order(events: Events) -> None:
    about = {"link": 1, "id": 1}
    events.tell("frame", -3, **about, way="in", bytes=70, method="tools/call", frame='{"method":"tools/call"}')
    events.queued(1, -3)
    variables = [["HOME", "environment"], ["MCP_SDK", "server"], ["LANG", "environment"]]
    events.tell("started", -2, call=1, link=1, pid=99, way="fresh", argv=["tools/stats.sh"], variables=variables)
    for tail in ("half", "half and half"):
        events.tell("output", -1, call=1, link=1, stream="stdout", bytes=len(tail), tail=f"{tail}\n")
    events.tell("exited", -1, call=1, link=1, pid=99, exit=0, peak_kb=3000)
    events.ended(1, -1)
    events.tell("frame", -1, **about, way="out", bytes=40, frame='{"result":{}}')

    text = printed(opened(events.only()))
    marks = ("frame in", "queued", "started fresh", "tools/stats.sh", "half and half", "exit 0, peak_kb 3000", "ended")
    places = [text.index(mark) for mark in (*marks, "frame out", '{"result":{}}', "from environment: HOME LANG")]

    assert places == sorted(places)
    assert text.count("half") == 2
    assert all(len(each) <= 80 for each in text.splitlines())


def test_what_clients_and_scripts_write_is_text(events: Events) -> None:
    bad = "one\ntwo\x1b[2J\x1b]0;owned\x07[red]"
    events.tell("opened", -9, link=1, client={"name": bad})
    events.tell("frame", -9, link=1, id=1, way="in", bytes=1, method="tools/call", frame=bad)
    events.queued(1, -9, bad)
    events.tell("started", -9, call=1, link=1, pid=1, argv=[bad], variables=[[bad, bad]])
    events.tell("output", -8, call=1, link=1, stream="stderr", bytes=1, tail=bad)
    events.ended(1, -8, "failed", name=bad, reason=bad)
    call = events.only()
    table = printed(calls_table([call], call, 80))

    assert len(table.splitlines()) == 2
    assert line(call).count("\n") == 1
    assert "\x1b" not in table + printed(opened(call))
    assert "\x07" not in table + printed(opened(call))
    assert "[red]" in printed(opened(call))
