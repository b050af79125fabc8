"""A call whose tool runs on a worker, as the server sees it: it waits for the end of a task that clients need not know.

Progress and log messages come as events, and go to the client as if the script ran here. Questions are found in the
record; the client is asked as the call's own script would ask, and the answers go back into the record.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import gevent

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

LOOK_SECS = 1.0  # between two looks whether a question is still open
AWAY = "The fleet cannot be reached; whether the call has an effect is not known."
GONE = "The fleet does not know this call any more: its ledger was emptied, or has lost what was stored last."


class Follower:
    """Takes the place of `Call.task` for progress that comes after the call was answered with a task."""

    def __init__(self, tasks: FleetTasks, call: Call, record: Task) -> None:
        self.id = record.id
        self.call = call
        self._tasks = tasks
        self.latest = record
        self._is_fresh, self._seen_at = True, time.monotonic()
        self._asker: gevent.Greenlet | None = None
        self._asked: Json = {}

    def hear(self, task: Task) -> None:
        self.latest, self._is_fresh = task, True
        if task.has_ended:
            self._tasks.followed.pop(self.id, None)

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
        was_begun, until = self.latest.is_begun, time.monotonic() + secs
        self._tasks.watch(self.id, self.hear)
        try:
            while True:
                for _ in self._tasks.changes(self.id, until):
                    if not self._is_fresh:
                        self._look()
                    self._is_fresh = False
                    if self.latest.has_ended or self.latest.is_begun != was_begun:
                        return self.latest
                    self._ask(self.latest.open_questions)
                if not self.latest.open_questions:
                    return self.latest
                until = time.monotonic() + LOOK_SECS
        finally:
            self._tasks.unwatch(self.id, self.hear)
            if self._asker is not None:
                self._asker.kill(block=False)

    def _look(self) -> None:
        """Read the record. Raises InternalError if it is gone, or was out of reach for long."""
        try:
            task = self._tasks.store.get(self.id)
        except StoreUnusable as error:
            self._tasks.mention(error)
            if time.monotonic() > self._seen_at + 2 * self._tasks.ledger.lease_secs:
                raise InternalError(AWAY) from error
            return
        if task is None:
            raise InternalError(GONE)
        self.latest, self._seen_at = task, time.monotonic()

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
