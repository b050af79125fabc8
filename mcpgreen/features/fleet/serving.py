"""A task that this worker runs for a server elsewhere.

Until clients know of it, it is like a plain call: it has the time and the questions of one. Its messages go to the
server, which passes them on to the client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import gevent
from gevent.event import Event as Bell

from mcpgreen.errors import InternalError
from mcpgreen.features.asking.asking import PARKED_SECS
from mcpgreen.features.tasks.running import RunningTask, TaskSink
from mcpgreen.fleet import labels
from mcpgreen.links.session import Stream
from mcpgreen.links.sink import Answerable
from mcpgreen.protocol.messages import Line, whole
from mcpgreen.tasks.life import Task
from mcpgreen.text.json_types import Json

if TYPE_CHECKING:
    from mcpgreen.features.call import Call
    from mcpgreen.features.fleet.tasks import FleetTasks
    from mcpgreen.features.tools import ToolTerms


class FleetSink(TaskSink):
    """Sends the messages of a call to the server that it came from."""

    def __init__(self, task: FleetTask) -> None:
        super().__init__(None)
        self._task = task

    def notify(self, line: Line, call: Answerable | None = None, *, is_droppable: bool = True) -> None:
        self._task.tell(whole(line))


class FleetTask(RunningTask):
    """`freed` is set when the task needs its place at the worker no longer: it has ended, or asks something."""

    def __init__(self, tasks: FleetTasks, call: Call, record: Task) -> None:
        super().__init__(tasks, call, record)
        old = call.stream
        self.stream = Stream(FleetSink(self), transport=old.transport, principal=old.principal, owner=old.owner)
        self.freed = Bell()
        self.is_plain = not record.is_begun
        self._fleet: Json = record.client["fleet"]
        self._worker = tasks
        self._begins: gevent.Greenlet | None = None

    def tell(self, line: bytes) -> None:
        self._worker.tell_later(self._fleet["home"], b"%s %d %s" % (self.id.encode("ascii"), self.attempt, line))

    def require_same(self, terms: ToolTerms) -> None:
        """Raises InternalError if the tool is another one than where the call comes from."""
        ours, theirs = labels.digest_of(terms.tool.path, terms.entry_json), self._fleet["digest"]
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

    def store_message(self, calls_before: int | None) -> None:
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
