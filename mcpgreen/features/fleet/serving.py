"""A task that this worker runs for a server elsewhere.

Its call is one of a task here, whatever it is for its client. Until clients know of the task, it has the time and the
questions of a plain call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import gevent
from gevent.event import Event as Bell

from mcpgreen.errors import InternalError
from mcpgreen.features.asking.asking import PARKED_SECS
from mcpgreen.features.tasks.running import RunningTask
from mcpgreen.links.session import Throttle
from mcpgreen.tasks.life import Task
from mcpgreen.text.json_types import Json

if TYPE_CHECKING:
    from mcpgreen.features.call import Call
    from mcpgreen.features.fleet.tasks import FleetTasks
    from mcpgreen.features.tools import ToolTerms


class FleetTask(RunningTask):
    """`freed` is set when the task needs its place at the worker no longer: it has ended, or asks something."""

    def __init__(self, tasks: FleetTasks, call: Call, record: Task) -> None:
        super().__init__(tasks, call, record)
        self.freed = Bell()
        self.is_plain = not record.is_begun
        self._fleet: Json = record.client["fleet"]
        self._worker = tasks
        settings = call.services.settings
        self._begins: gevent.Greenlet | None = None
        self._progress: float | None = None  # what the server was told last
        self._progress_throttle = Throttle(settings.max_progress_per_min)
        self._log_throttle = Throttle(settings.max_logs_per_min)

    def progress(self, progress: float, total: float | None, message: str | None) -> None:
        super().progress(progress, total, message)
        if (self._progress is None or progress > self._progress) and self._progress_throttle.count():
            self._progress = progress
            self._tell("progress", progress, total, message)

    def log(self, level: str, logger: str | None, data: object) -> None:
        if self.is_plain and self._log_throttle.count():
            self._tell("log", level, logger, data)

    def _tell(self, kind: str, *values: object) -> None:
        self._worker.tell_later(self._fleet["home"], [self.id, kind, self.attempt, values])

    def require_same(self, terms: ToolTerms) -> None:
        """Raises InternalError if the tool is another one than where the call comes from."""
        ours, theirs = self._worker.digest_of(terms), self._fleet["digest"]
        if ours != theirs:
            about = f"The worker {self._worker.member['name']} has another version of the tool '{terms.tool.name}'"
            raise InternalError(f"{about} ({ours}) than the server ({theirs}); deploy the same project there.")

    def begin(self) -> None:
        if self._fleet["may_begin"] and self._begins is None:
            self._begins = gevent.spawn(self._tasks.attempt, self._store.begin, self.id)

    def hear(self, record: Task) -> None:
        super().hear(record)
        if self.is_plain and record.is_begun:
            self.is_plain = False
            if self.call.run is not None and self.call.run.deadline is not None and self._fleet["lengthens"]:
                self.call.run.deadline.lengthen(self._fleet["task_secs"])

    def store_message(self, calls_before: int) -> None:
        if not self.is_plain:
            super().store_message(calls_before)

    def ask(self, asked: Json, timeout_secs: float | None) -> Json:
        self.freed.set()
        return super().ask(asked, timeout_secs or (PARKED_SECS if self.is_plain else None))

    def _outcome(self, request: Json, answer: Json | None) -> Json:
        if self.is_plain and answer is not None:  # the server has judged it
            return answer
        return super()._outcome(request, answer)

    def end(self, status: str, **how: object) -> None:
        self._worker.tell_now()
        if self._begins is not None:
            self._begins.join()  # what has begun ends as a task
        super().end(status, **how)
        self.freed.set()
