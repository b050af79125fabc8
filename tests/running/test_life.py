"""The life of a run is a table: what is not in it cannot happen, and every way through it ends with a closed run."""

from __future__ import annotations

import itertools

import pytest

from mcpgreen.running.processes.process import TRANSITIONS, IllegalTransition, RunningScript, State

STATES = [value for name, value in vars(State).items() if name.isupper()]


def run_that_is(state: str) -> RunningScript:
    run = RunningScript.__new__(RunningScript)
    run.state = state
    return run


@pytest.mark.parametrize(("state", "after"), list(itertools.product(STATES, STATES)))
def test_only_what_is_in_the_table_can_happen(state: str, after: str) -> None:
    run = run_that_is(state)
    if after in TRANSITIONS[state]:
        run.become(after)
        assert run.state == after
    else:
        with pytest.raises(IllegalTransition):
            run.become(after)
        assert run.state == state


def test_every_end_is_settled_then_stopped_then_closed() -> None:
    before = {after: {state for state in STATES if after in TRANSITIONS[state]} for after in STATES}
    assert before[State.CLOSED] == {State.STOPPED}
    assert before[State.STOPPED] == {State.SETTLED}
    assert before[State.SETTLED] == {State.EXITED, State.OVERFLOWED, State.OVERDUE, State.CANCELLED}
    assert not TRANSITIONS[State.CLOSED]
