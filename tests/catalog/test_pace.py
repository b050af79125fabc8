"""Turns for others while something long is done."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from mcpgreen.catalog import pace
from mcpgreen.catalog.pace import STRETCH_SECS, Pace


def test_others_have_a_turn_after_each_stretch_and_their_time_is_not_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(pace, "time", SimpleNamespace(monotonic=lambda: clock.now))
    done_at_turns: list[int] = []

    def turn() -> None:
        done_at_turns.append(len(done))
        clock.now += 10.0

    done: list[int] = []
    paced = Pace(turn)
    for thing in paced.over(range(5)):
        done.append(thing)
        clock.now += 0.6 * STRETCH_SECS

    assert done == [0, 1, 2, 3, 4]
    assert done_at_turns == [2, 4]
    assert paced.busy_secs == pytest.approx(3.0 * STRETCH_SECS)
