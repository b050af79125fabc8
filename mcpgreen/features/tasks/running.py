"""A task that this process runs: what its call reports goes to the store, and answers come from there.

Rule: a task ends once. The store decides which end counts, so whatever ends a task just tries.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import gevent

from mcpgreen.features.asking.scripts import answered, unanswered
from mcpgreen.features.call import Call
from mcpgreen.features.tasks import wires
from mcpgreen.links.session import Session, Stream
from mcpgreen.links.sink import Answerable, MemorySink
from mcpgreen.protocol.input import requests
from mcpgreen.protocol.messages import Line
from mcpgreen.running.shares import let_others
from mcpgreen.tasks import life
from mcpgreen.tasks.life import Status, Task
from mcpgreen.tasks.store import StoreUnusable
from mcpgreen.text.json_types import Json

if TYPE_CHECKING:
    from mcpgreen.features.tasks.tasks import Tasks
    from mcpgreen.features.tools import ToolTerms

MESSAGE_SECS = 1.0  # between two changes of the status message
END_TRIES_SECS = (0.1, 1.0, 5.0, 30.0)  # between tries to store an end


class TaskSink(MemorySink):
    """The sink of calls for which no request waits. Progress goes to the session, if there is one."""

    def __init__(self, session: Session | None) -> None:
        super().__init__()
        self._session = session

    def respond(self, line: Line, call: Answerable | None = None) -> None:
        """Do nothing: the task has the result."""

    def notify(self, line: Line, call: Answerable | None = None, *, is_droppable: bool = True) -> None:
        if self._session is not None:
            self._session.sink.notify(line, call, is_droppable=is_droppable)


class RunningTask:
    is_cancelled = False  # the answer to its request is sent in any case
    is_plain = False  # clients know of it

    def __init__(self, tasks: Tasks, call: Call, record: Task) -> None:
        self.id, self.attempt = record.id, record.attempt
        self.survives, self.idempotent = record.survives, record.idempotent
        self.call = call
        old = call.stream
        stream = Stream(TaskSink(call.session), transport=old.transport, principal=old.principal, owner=old.owner)
        # By the identity of the principal: equal ones may have different scopes and claims.
        key = call.session, old.transport, id(old.principal), old.owner
        self.stream = tasks.streams.setdefault(key, stream)
        self._is_ending = False
        self._tasks, self._store = tasks, tasks.store
        self._stored = record.status, record.status_message
        self._stored_at = time.monotonic()
        self._printed, self._printed_line = b"", ""

    def require_same(self, terms: ToolTerms) -> None:
        """Do nothing: the tool is that of this project."""

    def begin(self) -> None:
        """The script says that the task begins; clients know of it already, unless it was handed over. Never waits."""
        gevent.spawn(self._tasks.attempt, self._store.begin, self.id)

    def hear(self, record: Task) -> None:
        """The record has changed, perhaps by another process: the task may have to end."""
        if (record.wants_cancel or record.has_ended) and not self._is_ending:
            self.stop(Status.CANCELLED)

    def store_message(self, calls_before: int | None) -> None:
        """Store what the task does now, but not too often: it runs, or waits behind other calls."""
        if time.monotonic() < self._stored_at + MESSAGE_SECS:
            return
        if calls_before is not None:
            new = Status.QUEUED, life.place_message(calls_before)
        else:
            new = Status.WORKING, life.message_of(self.call.reported) or self._last_line()
        if new != self._stored:
            self._stored, self._stored_at = new, time.monotonic()
            self._tasks.attempt(self._store.note, self.id, self.attempt, status=new[0], status_message=new[1])

    def _last_line(self) -> str:
        """Return the last line that the running script wrote to stderr, as the client may read it."""
        call = self.call
        if call.run is None:
            return ""
        printed = call.run.stderr_so_far()
        if printed != self._printed:
            self._printed, self._printed_line = printed, call.services.confidential.last_words(printed, call).last
        return self._printed_line

    def ask(self, asked: Json, timeout_secs: float | None) -> Json:
        """Ask all these tidy requests, and return the outcome of each."""
        try:
            if not (keys := self._store.ask(self.id, self.attempt, asked)):
                return dict.fromkeys(asked, unanswered("cancelled", "The task has ended."))
        except (ValueError, StoreUnusable) as error:
            return dict.fromkeys(asked, unanswered("error", f"The task cannot ask: {error}."))
        self._tasks.ring()
        most_secs: float = self.call.services.settings.task_timeout_secs
        answers = self._wait_for(set(keys.values()), min(timeout_secs or most_secs, most_secs))
        return {key: self._outcome(request, answers.get(keys[key])) for key, request in asked.items()}

    def _wait_for(self, keys: set[str], secs: float) -> dict[str, Json]:
        """Return the answers that have come within this time. Questions without one are closed."""
        answers: dict[str, Json] = {}
        for _ in self._tasks.changes(self.id, time.monotonic() + secs):
            answers |= self._tasks.attempt(self._store.take_answers, self.id, self.attempt, keys) or {}
            if not (left := keys - answers.keys()):
                break
        if left:
            self._tasks.attempt(self._store.answer, self.id, dict.fromkeys(left, wires.NO_ANSWER))
            self._tasks.attempt(self._store.take_answers, self.id, self.attempt, left)
        self._tasks.ring()
        return answers

    def _outcome(self, request: Json, answer: Json | None) -> Json:
        if answer is None:
            return unanswered("timeout", "There was no answer in time.")
        problem = requests.problem_with_answer(request, answer)
        return unanswered("error", f"The client's answer is invalid: {problem}.") if problem else answered(answer)

    def complete(self, result: Json, body: bytes) -> None:
        """Store the result of the call: `body`, as it is written in the newest dialect."""
        is_error = bool(result.get("isError"))
        said = next((str(each["text"]) for each in result["content"] if "text" in each), "") if is_error else ""
        self.end(Status.COMPLETED, result=body, is_error=is_error, status_message=said)

    def stop(self, status: str, error: Json | None = None) -> None:
        """Stop the call and end the task in this way, unless it has ended already."""
        self.call.cancel()
        self.end(status, error=error)

    def end(self, status: str, **how: object) -> None:
        self._is_ending, how["stderr_end"], ended = True, self._stderr(), None
        for pause_secs in END_TRIES_SECS:
            try:
                ended = self._store.finish(self.id, self.attempt, status, **how)  # type: ignore[arg-type]
                break
            except StoreUnusable as error:
                self._tasks.mention(error)
                gevent.sleep(pause_secs)
        self._tasks.forget(self, ended)

    def _stderr(self) -> bytes:
        """Return the end of what the script wrote to stderr, without secrets."""
        call, run = self.call, self.call.run
        if run is None or not run.stderr_end:
            return b""
        secrets = call.services.confidential.of(call.method, {**call.params, "arguments": call.arguments})
        text = secrets.text(run.stderr_end.decode("utf-8", "replace"), limit_chars=life.STDERR_BYTES, turn=let_others)
        return text.encode("utf-8", "replace")
