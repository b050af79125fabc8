"""What a call has while its script runs: places, files, helpers, and room in memory for what the script prints."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import gevent

from mcpgreen.features.slots import Slot

if TYPE_CHECKING:
    from mcpgreen.running.processes.output_places import OutputPlace
    from mcpgreen.running.processes.process import Child, Outcome
    from mcpgreen.running.scripts.scratch import CallFiles


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
