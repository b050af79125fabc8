"""Where a call is that may ask its client, as a table of states; and what it remembers from one round to the next.

Rule: `TRANSITIONS` is all that can happen. Whatever is not in it is a fault of ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gevent.event import Event as Bell


class State:
    RUNNING = "running"
    ASKING = "asking"  # by requests of ours; whoever asks waits
    PARKED = "parked"  # the request is answered with input requests, and nobody waits for the call
    ADOPTED = "adopted"  # it runs on, as the call of the request that brought the answers
    GIVEN_UP = "given up"  # nobody came back
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
    (State.RUNNING, Event.STOP_ASKING): State.RUNNING,  # the script is over, and so is whatever it may have asked
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
    # A greenlet that is being killed may have a last turn, and a stopping server cancels whatever it finds.
    (State.CANCELLED, Event.STOP_ASKING): State.CANCELLED,
    (State.CANCELLED, Event.CANCEL): State.CANCELLED,
    (State.CANCELLED, Event.FINISH): State.CANCELLED,
    (State.GIVEN_UP, Event.STOP_ASKING): State.GIVEN_UP,
    (State.GIVEN_UP, Event.CANCEL): State.GIVEN_UP,
    (State.GIVEN_UP, Event.FINISH): State.GIVEN_UP,
    (State.FINISHED, Event.STOP_ASKING): State.FINISHED,
}
ENDED_EARLY = frozenset({State.CANCELLED, State.GIVEN_UP})
HEARD = frozenset({State.RUNNING, State.ASKING, State.ADOPTED})  # what the call says goes to its client


class IllegalTransition(Exception):
    """A fault of ours."""


class Interaction:
    """The state of one call, and what passes between it and its client besides the result."""

    __slots__ = ("adopted", "answers", "elicitation_ids", "is_repeat", "own_state", "state", "unmet_needs")

    def __init__(self) -> None:
        self.state = State.RUNNING
        self.answers: dict[str, Any] = {}  # that the client has brought so far, by key
        self.own_state: str | None = None  # of a script that prints its input requests and is run again
        self.elicitation_ids: list[str] = []  # of URLs that the person agreed to visit
        self.unmet_needs: list[str] = []  # what a script asked for in vain
        self.is_repeat = False  # a retry whose script is gone: it has to be run anew, if it may be
        self.adopted: Bell | None = None  # rings when a parked call is adopted

    def on(self, event: str) -> None:
        """Raises IllegalTransition for what cannot happen in this state."""
        try:
            self.state = TRANSITIONS[self.state, event]
        except KeyError:
            raise IllegalTransition(f"{event} while {self.state}") from None
