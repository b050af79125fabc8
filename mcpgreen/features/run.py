"""What a call has while its script runs: places, files, helpers, and room in memory for what the script prints.

Rule: a place that is taken is given back once, whatever happens to the call: see `Slot`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import gevent
from gevent.lock import Semaphore

if TYPE_CHECKING:
    from mcpgreen.running.processes.output_places import OutputPlace
    from mcpgreen.running.processes.process import Child, Outcome
    from mcpgreen.running.scripts.scratch import CallFiles

MOST_PLACES = 4096  # more scripts than that never run at a time


class Places:
    """So many at a time. How many may change while some are taken: then those that are too many are not given on."""

    def __init__(self, limit: int) -> None:
        self._limit = min(limit, MOST_PLACES)
        self._free = Semaphore(self._limit)
        self._too_many = 0
        self.acquire = self._free.acquire

    def release(self) -> None:
        if self._too_many:
            self._too_many -= 1
        else:
            self._free.release()

    def resize(self, limit: int) -> None:
        limit = min(limit, MOST_PLACES)
        for _ in range(self._limit, limit):
            self.release()
        for _ in range(limit, self._limit):
            if not self._free.acquire(blocking=False):
                self._too_many += 1
        self._limit = limit


class Slot:
    """One of the places in which scripts run. A call that waits for an answer leaves its own to others.

    With a `gate`, only one of all calls that share it waits for a place, and the others wait for the gate: so each of
    many clients stands in line once, however many calls it has."""

    __slots__ = ("_gate", "_is_held", "_is_over", "_slots")

    def __init__(self, slots: Semaphore | Places, gate: Semaphore | None = None) -> None:
        self._slots = slots
        self._gate = gate
        self._is_held = False
        self._is_over = False

    def leave(self) -> None:
        if self._is_held:
            self._is_held = False
            self._slots.release()

    def take(self) -> None:
        """May wait."""
        if self._gate is None:
            self._slots.acquire()
        else:
            with self._gate:
                self._slots.acquire()
        if self._is_over:
            self._slots.release()  # the call has ended while its helper waited here
        else:
            self._is_held = True

    def __enter__(self) -> None:
        self.take()

    def __exit__(self, *_: object) -> None:
        self._is_over = True
        self.leave()


STDERR_END_BYTES = 1024


class Run:
    """Of one call. `turn` is its place among the calls of one tool, if that has a limit of its own. What the log tells
    of the script is there once it is over."""

    __slots__ = ("_helpers", "child", "ended_by", "files", "output_place", "slot", "stderr_end", "turn")

    def __init__(self, slot: Slot, turn: Slot | None) -> None:
        self.slot = slot
        self.turn = turn
        self.files: CallFiles | None = None
        self.output_place: OutputPlace | None = None
        self.child: Child | None = None
        self.ended_by = ""
        self.stderr_end = b""
        self._helpers: set[Any] = set()

    def note_end(self, outcome: Outcome) -> None:
        """What it printed is not kept here: it may be large."""
        self.child = outcome.child
        self.ended_by = outcome.ended_by
        if outcome.stderr:
            self.stderr_end = outcome.stderr[-STDERR_END_BYTES:]

    def leave_places(self) -> None:
        """Others may run meanwhile."""
        self.slot.leave()
        if self.turn is not None:
            self.turn.leave()

    def help_with(self, function: Callable[..., None], *values: Any) -> None:
        """Do this on the side, at most until the script is over."""
        helper = gevent.spawn(function, *values)
        self._helpers.add(helper)
        helper.rawlink(self._helpers.discard)

    def is_helped_by(self, helper: Any) -> bool:
        """Whether what it does is still wanted: one that has been stopped may have another turn before it notices."""
        return helper in self._helpers

    def stop_helpers(self) -> None:
        for helper in list(self._helpers):
            helper.kill(block=False)
        self._helpers.clear()

    def end(self) -> None:
        """The call is being ended: tell the script, and keep nothing of what it has printed."""
        if self.files is not None:
            self.files.mark_cancelled()
        if self.output_place is not None:
            self.output_place.release()
