"""The states of a call that may ask: every state and every event, walked one by one."""

from __future__ import annotations

import itertools

import pytest

from mcpgreen.features.call import (
    ENDED_EARLY,
    HEARD,
    TRANSITIONS,
    Event,
    IllegalTransition,
    Interaction,
    State,
)


def constants(holder: type) -> list[str]:
    return [value for name, value in vars(holder).items() if name.isupper()]


STATES, EVENTS = constants(State), constants(Event)

# What becomes of a call in each state (a row) at each event (a column): a dash is what cannot happen.
WALK = """
           ask     stop asking  park    adopt    give up   detach  cancel     finish
running    asking  running      parked  -        -         task    cancelled  finished
asking     -       running      -       -        -         -       cancelled  finished
parked     -       parked       -       adopted  given-up  -       -          -
adopted    -       adopted      parked  -        -         task    cancelled  finished
given-up   -       given-up     -       -        -         -       given-up   given-up
task       task    task         -       -        -         -       cancelled  finished
cancelled  -       cancelled    -       -        -         -       cancelled  cancelled
finished   -       finished     -       -        -         -       -          -
"""


def walked() -> dict[tuple[str, str], str]:
    _, *rows = WALK.strip().splitlines()
    table = {}
    for row in rows:
        state, *following = (cell.replace("-", " ") if len(cell) > 1 else cell for cell in row.split())
        table.update({(state, event): after for event, after in zip(EVENTS, following, strict=True)})
    return table


def test_the_walk_knows_every_state_and_every_event() -> None:
    assert set(walked()) == set(itertools.product(STATES, EVENTS))
    assert {state for row in TRANSITIONS.values() for state in (*row, *row.values())} == set(STATES)
    assert set(TRANSITIONS) == set(EVENTS)


@pytest.mark.parametrize(("state", "event"), list(itertools.product(STATES, EVENTS)))
def test_each_event_leads_where_the_walk_says(state: str, event: str) -> None:
    interaction = Interaction()
    interaction.state = state
    expected = walked()[state, event]

    if expected == "-":
        with pytest.raises(IllegalTransition, match=f"{event} while {state}"):
            interaction.on(event)
        assert interaction.state == state
    else:
        interaction.on(event)
        assert interaction.state == expected


def test_a_call_is_heard_until_it_is_parked_or_over() -> None:
    assert {State.RUNNING, State.ASKING, State.ADOPTED} == HEARD
    assert {State.CANCELLED, State.GIVEN_UP} == ENDED_EARLY
    assert all(TRANSITIONS.get((state, event), state) in ENDED_EARLY for state in ENDED_EARLY for event in EVENTS)
