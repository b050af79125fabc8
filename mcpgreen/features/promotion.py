"""A running call that may become a task: after some seconds, or as soon as its script says so.

Rule: a call becomes a task at most once, and not while it waits for an answer: a question that was asked in the usual
way is answered in the usual way.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import gevent

from mcpgreen.errors import InternalError
from mcpgreen.features.call import Call, State

if TYPE_CHECKING:
    from mcpgreen.features.tools import ToolTerms

LOOK_SECS = 0.05  # between two looks whether a question is still open


class Promotion:
    """With `after_secs`, the call becomes a task by itself. `progress` is what its script reported last."""

    def __init__(self, call: Call, terms: ToolTerms, after_secs: float | None) -> None:
        self.progress: tuple[float, float | None, str | None] | None = None
        self._call = call
        self._terms = terms
        self._greenlet: gevent.Greenlet | None = None
        self._timer = gevent.get_hub().loop.timer(after_secs or 0)
        if after_secs is not None:
            self._timer.start(self.begin)

    def begin(self) -> None:
        """Begin to make the call a task. Never waits."""
        if self._greenlet is None:
            self._greenlet = gevent.spawn(self._promote)

    def wait(self) -> None:
        """If that has begun, wait until it is done."""
        if self._greenlet is not None:
            self._greenlet.join()

    def settle(self) -> None:
        """The script has ended: from now on, the call stays what it is."""
        self.close()
        if not self._call.is_cancelled:
            self.wait()
        self._call.promotion = None  # breaks a reference cycle, or each call would wait for the garbage collector

    def close(self) -> None:
        self._timer.close()

    def _promote(self) -> None:
        call = self._call
        while call.interaction.state in (State.ASKING, State.PARKED):
            gevent.sleep(LOOK_SECS)
        if call.view.has_tasks and not call.is_cancelled:
            with suppress(InternalError):  # it goes on without a task
                call.services.tasks.begin(call, self._terms)
