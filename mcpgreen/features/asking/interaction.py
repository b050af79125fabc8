"""The states of a call that may ask its client, as a table, and what it remembers from one round to the next.

Rule: only the transitions of `TRANSITIONS` can happen. Any other one is a fault of the server.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mcpgreen.text.json_types import Json

if TYPE_CHECKING:
    from gevent.event import Event as Bell


class State:
    RUNNING = "running"
    ASKING = "asking"  # by requests of the server, whose answers are waited for
    PARKED = "parked"  # its request is answered with input requests, and the next one may adopt it
    ADOPTED = "adopted"  # it goes on as the call of the request that brought the answers
    GIVEN_UP = "given up"  # the client did not come back
    CANCELLED = "cancelled"
    FINISHED = "finished"


class Event:
    ASK = "ask"
    STOP_ASKING = "stop asking"
    PARK = "park"
    ADOPT = "adopt"
    GIVE_UP = "give up"
    CANCEL = "cancel"
    FINISH = "finish"


TRANSITIONS = {
    (State.RUNNING, Event.ASK): State.ASKING,
    (State.RUNNING, Event.STOP_ASKING): State.RUNNING,  # the script has ended, and may have asked nothing
    (State.RUNNING, Event.PARK): State.PARKED,
    (State.RUNNING, Event.CANCEL): State.CANCELLED,
    (State.RUNNING, Event.FINISH): State.FINISHED,
    (State.ASKING, Event.STOP_ASKING): State.RUNNING,
    (State.ASKING, Event.CANCEL): State.CANCELLED,
    (State.ASKING, Event.FINISH): State.FINISHED,
    (State.PARKED, Event.STOP_ASKING): State.PARKED,
    (State.PARKED, Event.ADOPT): State.ADOPTED,
    (State.PARKED, Event.GIVE_UP): State.GIVEN_UP,
    (State.ADOPTED, Event.STOP_ASKING): State.ADOPTED,
    (State.ADOPTED, Event.PARK): State.PARKED,
    (State.ADOPTED, Event.CANCEL): State.CANCELLED,
    (State.ADOPTED, Event.FINISH): State.FINISHED,
    # A greenlet that is being killed may run once more, and a stopping server cancels every call.
    (State.CANCELLED, Event.STOP_ASKING): State.CANCELLED,
    (State.CANCELLED, Event.CANCEL): State.CANCELLED,
    (State.CANCELLED, Event.FINISH): State.CANCELLED,
    (State.GIVEN_UP, Event.STOP_ASKING): State.GIVEN_UP,
    (State.GIVEN_UP, Event.CANCEL): State.GIVEN_UP,
    (State.GIVEN_UP, Event.FINISH): State.GIVEN_UP,
    (State.FINISHED, Event.STOP_ASKING): State.FINISHED,
}
ENDED_EARLY = frozenset({State.CANCELLED, State.GIVEN_UP})
HEARD = frozenset({State.RUNNING, State.ASKING, State.ADOPTED})  # messages of the call go to its client


class IllegalTransition(Exception):
    """A transition that is not in the table: a fault of the server."""


@dataclass(eq=False, slots=True)
class Interaction:
    """The state of one call, and what it and its client tell each other besides the result."""

    state: str = State.RUNNING
    answers: Json = field(default_factory=dict)  # of the client so far, by key
    own_state: str | None = None  # of a script that prints its input requests and is run again
    elicitation_ids: list[str] = field(default_factory=list)  # of URLs that the user agreed to visit
    unmet_needs: list[str] = field(default_factory=list)  # capabilities that a script needed and the client lacks
    is_repeat: bool = False  # a retry whose script has ended, so that it has to be run again
    adopted: Bell | None = None  # rings when a parked call is adopted

    def on(self, event: str) -> None:
        """Go to the next state. Raises IllegalTransition if the event cannot happen in this one."""
        try:
            self.state = TRANSITIONS[self.state, event]
        except KeyError:
            raise IllegalTransition(f"{event} while {self.state}") from None
