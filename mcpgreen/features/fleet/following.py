"""A call whose tool runs on a worker, as the server sees it: it waits for the end of a task that clients need not know.

Progress and log messages come as events, and go to the client as if the script ran here. Questions are found in the
record; the client is asked as the call's own script would ask, and the answers go back into the record.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

import gevent
from gevent.event import Event as Bell

from mcpgreen.errors import InternalError
from mcpgreen.features.asking.asking import ASK_SECS
from mcpgreen.features.asking.scripts import unanswered
from mcpgreen.features.call import Call, Event, State
from mcpgreen.tasks.life import Task
from mcpgreen.tasks.store import StoreUnusable
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

if TYPE_CHECKING:
    from mcpgreen.features.fleet.tasks import FleetTasks

LOOK_SECS = 1.0  # between two looks at the record, in case that news was lost
GONE = "The fleet does not know this call any more: its ledger was emptied, or has lost what was stored last."


class Follower:
    """Takes the place of `Call.task` for progress that comes after the call was answered with a task."""

    def __init__(self, tasks: FleetTasks, call: Call, record: Task) -> None:
        self.id = record.id
        self.call = call
        self._tasks = tasks
        self.latest = record
        self._bell = Bell()
        self._asker: gevent.Greenlet | None = None
        self._asked: Json = {}

    def hear(self, task: Task) -> None:
        self.latest = task
        self._bell.set()

    def hear_message(self, attempt: int, line: bytes) -> None:
        """Pass on progress or a log message, unless another attempt has begun since."""
        call, message = self.call, jsontext.parsed(line)
        params = message["params"]
        if attempt < self.latest.attempt:
            return
        if call.interaction.state == State.FINISHED and call.session is not None:
            call.task = self  # type: ignore[assignment]  # it was answered with the task
        if message["method"] == "notifications/progress":
            call.progress(params["progress"], params.get("total"), params.get("message"))
        else:
            call.log(params["level"], params.get("logger"), params["data"])

    def wait(self, secs: float) -> Task:
        """Wait until the task has ended or begun, or the time is up and no question is open. Return it."""
        began, was_begun, look_at = time.monotonic(), self.latest.is_begun, 0.0
        seen_at = began
        self._tasks.watch(self.id, self.hear)
        try:
            while True:
                self._bell.clear()
                now = time.monotonic()
                if look_at and now >= look_at:
                    seen_at = self._look(seen_at)
                task = self.latest
                left_secs = math.inf if task.open_questions else began + secs - now
                if task.has_ended or task.is_begun != was_begun or left_secs <= 0:
                    return task
                self._ask(task.open_questions)
                look_at = now + LOOK_SECS
                self._bell.wait(min(LOOK_SECS, left_secs))
        finally:
            self._tasks.unwatch(self.id, self.hear)
            if self._asker is not None:
                self._asker.kill(block=False)

    def _look(self, seen_at: float) -> float:
        """Read the record. Return when that was last possible. Raises InternalError if it is gone, or out of reach."""
        try:
            task = self._tasks.store.get(self.id)
        except StoreUnusable as error:
            self._tasks.mention(error)
            if time.monotonic() > seen_at + 2 * self._tasks.ledger.lease_secs:
                raise InternalError(
                    "The fleet cannot be reached; whether the call has an effect is not known."
                ) from error
            return seen_at
        if task is None:
            raise InternalError(GONE)
        self.latest = task
        return time.monotonic()

    def _ask(self, questions: Json) -> None:
        """Have the client asked, one round at a time. Stop asking what the script no longer waits for."""
        if self._asker is not None and not self._asker.ready():
            if questions.keys() & self._asked.keys():
                return
            self._asker.kill()
        if questions:
            self._asked = questions
            self._asker = gevent.spawn(self._ask_client, questions)

    def _ask_client(self, questions: Json) -> None:
        call, interaction = self.call, self.call.interaction
        asking = call.services.asking
        outcomes: Json = {}
        if interaction.state == State.PARKED:
            pass  # nothing can be asked until the client is back
        elif asking.parks(call):
            outcomes = asking.park(call, questions, None)
        else:
            interaction.on(Event.ASK)
            try:
                outcomes = asking.ask_live(call, questions, ASK_SECS)
            finally:
                if interaction.state == State.ASKING:
                    interaction.on(Event.STOP_ASKING)
        late = unanswered("timeout", "The client did not come back.")
        self._tasks.attempt(self._tasks.store.answer, self.id, {key: outcomes.get(key, late) for key in questions})
