"""A deadline that stands still while a person is asked, by a clock that the test moves."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from mcpgreen.running.processes import run as module
from mcpgreen.running.processes.run import Deadline


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    clock = SimpleNamespace(now=1000.0)
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


def test_time_stands_still_between_pause_and_resume(clock: SimpleNamespace) -> None:
    deadline = Deadline(30)
    clock.now += 20
    deadline.pause()
    clock.now += 500
    assert deadline.remaining_secs() == 10
    deadline.resume()

    assert deadline.remaining_secs() == 10


def test_progress_during_a_question_does_not_shorten_the_cap(clock: SimpleNamespace) -> None:
    deadline = Deadline(30, extends=True, cap_secs=100)
    clock.now += 29
    deadline.pause()
    clock.now += 100
    deadline.progressed()
    deadline.resume()
    assert deadline.remaining_secs() == 30
    assert not deadline.is_at_cap
    for _ in range(3):
        clock.now += 20
        deadline.progressed()

    assert deadline.remaining_secs() == 11  # of 100 s, 29 + 60 are over
    assert deadline.is_at_cap
