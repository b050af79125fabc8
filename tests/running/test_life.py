"""The life of a run is a table: what is not in it cannot happen, and every way through it ends with a closed run."""

from __future__ import annotations

import itertools

import pytest

from mcpgreen.running.processes.process import TRANSITIONS, Event, IllegalTransition, RunningScript, State


def values_of(table: type) -> list[str]:
    return [value for name, value in vars(table).items() if name.isupper()]


def run_that_is(state: str) -> RunningScript:
    run = RunningScript.__new__(RunningScript)
    run.state = state
    return run


@pytest.mark.parametrize(("state", "event"), list(itertools.product(values_of(State), values_of(Event))))
def test_only_what_is_in_the_table_can_happen(state: str, event: str) -> None:
    run = run_that_is(state)
    if (state, event) in TRANSITIONS:
        run.on(event)
        assert run.state == TRANSITIONS[state, event]
    else:
        with pytest.raises(IllegalTransition):
            run.on(event)
        assert run.state == state


def test_every_end_is_settled_then_stopped_then_closed() -> None:
    before = {
        after: {state for (state, _), target in TRANSITIONS.items() if target == after} for after in values_of(State)
    }
    assert before[State.CLOSED] == {State.STOPPED}
    assert before[State.STOPPED] == {State.SETTLED}
    assert before[State.SETTLED] == {State.EXITED, State.OVERFLOWED, State.OVERDUE, State.CANCELLED}
    assert not [event for state, event in TRANSITIONS if state == State.CLOSED]
