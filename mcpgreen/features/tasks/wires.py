"""Tasks as clients see them: the two wires as tables of fields, the methods `tasks/...`, and `notifications/tasks`.

A client of the handshake era asks for a task and waits for its result; questions are requests of the server meanwhile.
A client of the extension looks at the task from time to time, and finds questions and the result in it.

Rule: a wire is a row here. What a task is and does, no wire decides.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import gevent

from mcpgreen import errors
from mcpgreen.errors import InternalError, InvalidParams, RpcError
from mcpgreen.features.call import Call, Route
from mcpgreen.links.session import Session
from mcpgreen.links.sink import Sink
from mcpgreen.protocol import messages, revision_fields
from mcpgreen.protocol.admission import ClientView
from mcpgreen.protocol.input import requests
from mcpgreen.protocol.revisions import Era
from mcpgreen.running.shares import in_turns, let_others
from mcpgreen.tasks import life
from mcpgreen.tasks.life import Status, Task
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

if TYPE_CHECKING:
    from mcpgreen.features.tasks.tasks import Tasks

CANCEL_SECS = 5.0  # for another process to cancel a task
LOOK_SECS = 1.0  # while a client waits for a result: another client that was asked a question may be gone
UNASKED_SECS = 1.5  # before a client that does not wait for the result is asked
ANSWER_SECS = 86_400.0
NO_ANSWER: Json = {"action": "cancel"}
LONG_CHARS = 65_536


class Wire(NamedTuple):
    """The names of fields, what a handle is, and the status of a tool that has failed."""

    ttl: str
    poll_interval: str
    handle: Callable[[Json], Json]
    status_of_error: str

    def fields(self, task: Task) -> Json:
        fields = {"taskId": task.id, **life.shown(task), self.ttl: life.ttl_ms(task)}
        fields[self.poll_interval] = life.poll_interval_ms((task.ended_at or time.time()) - task.created_at)
        if task.is_error:
            fields["status"] = self.status_of_error
        message = fields.pop("statusMessage")
        return {**fields, "statusMessage": message} if message else fields


OLDER = Wire("ttl", "pollInterval", lambda fields: {"task": fields}, Status.FAILED)
EXTENSION = Wire("ttlMs", "pollIntervalMs", lambda fields: {"resultType": "task", **fields}, Status.COMPLETED)


def wire_of(view: ClientView) -> Wire:
    return EXTENSION if view.revision.era == Era.STATELESS else OLDER


def created(task: Task, view: ClientView) -> Json:
    """Return the handle of a new task."""
    return wire_of(view).handle(wire_of(view).fields(task))


def detailed(tasks: Tasks, task: Task, more: Json) -> bytes:
    """Return a task of the extension as JSON, with its questions, its result or its error, and more members. Raises
    InternalError if its result has expired."""
    fields = {**EXTENSION.fields(task), **more}
    if task.status == Status.INPUT_REQUIRED:
        fields["inputRequests"] = task.open_questions
    elif task.status == Status.FAILED:
        fields["error"] = task.error
    elif task.status == Status.COMPLETED:
        result = task.result or tasks.store.result_of(task)
        return b'%b,"result":%b}' % (jsontext.dumps(fields)[:-1], result)
    return jsontext.dumps(fields)


def notice(tasks: Tasks, task: Task, meta: Json) -> bytes:
    """Return a notification of the extension, which says all about a task, as `detailed`."""
    return b'{"jsonrpc":"2.0","method":"notifications/tasks","params":%b}' % detailed(tasks, task, {"_meta": meta})


def _task_id(call: Call) -> str:
    call.view.require_tasks()  # before the id is looked at
    task_id = call.params.get("taskId")
    if type(task_id) is not str:
        raise InvalidParams("taskId must be the id of a task.")
    return task_id


def get(call: Call, task_id: str) -> Json | bytes:
    tasks = call.services.tasks
    tasks.count_polls(call)
    task = tasks.find(call, task_id)
    if wire_of(call.view) is OLDER:
        return OLDER.fields(task)
    return detailed(tasks, task, revision_fields.finish({}, call.view.revision, call.services.identity.info))


def list_tasks(call: Call, _: None) -> Json:
    tasks, cursor, limit = call.services.tasks, call.params.get("cursor") or "", call.services.settings.page_size
    tasks.count_polls(call)
    found = tasks.store.list(tasks.owner_of(call), after=str(cursor), limit=limit)
    more = {"nextCursor": found[-1].id} if len(found) >= limit else {}
    return {"tasks": [OLDER.fields(task) for task in found if task.is_begun], **more}


def cancel(call: Call, task_id: str) -> Json:
    tasks, wire = call.services.tasks, wire_of(call.view)
    task = tasks.find(call, task_id)
    if task.has_ended and wire is OLDER:
        raise InvalidParams("The task has ended already.")
    if not task.has_ended:
        tasks.cancel(task_id)
        with suppress(InvalidParams):  # it may be removed at once
            task = wait(call, task_id, time.monotonic() + CANCEL_SECS)
    if wire is EXTENSION:
        return {}
    if not task.has_ended:
        raise InternalError("The task cannot be cancelled now; try again.")
    return OLDER.fields(task)


def update(call: Call, task_id: str) -> Json:
    """Take answers to open questions. A question whose answer does not fit stays open."""
    tasks = call.services.tasks
    questions, responses = tasks.find(call, task_id).open_questions, call.params.get("inputResponses")
    if type(responses) is not dict:
        raise InvalidParams("inputResponses must be an object.")
    known = {key: answer for key, answer in responses.items() if key in questions}
    fitting = {key: each for key, each in known.items() if not requests.problem_with_answer(questions[key], each)}
    if fitting:
        tasks.store.answer(task_id, fitting)
        tasks.ring()
    return {}


def result(call: Call, task_id: str) -> Json:
    """Wait for the end of a task, and return what its call would have returned. Meanwhile, ask its questions."""
    answer = result_for(call, wait_and_ask(call, task_id, call.sink))
    return {**answer, "_meta": {**answer.get("_meta", {}), **revision_fields.about_task(task_id)}}


def result_for(call: Call, task: Task) -> Json:
    """Return what the call of a task that has ended would have returned. Raises RpcError."""
    if task.status == Status.CANCELLED:
        raise InternalError("The task was cancelled.")
    if task.error is not None:
        raise errors.ScriptError(task.error["code"], task.error["message"], data=task.error.get("data"))
    stored: Json = jsontext.loads(task.result or call.services.tasks.store.result_of(task), let_others)
    fitted = revision_fields.fit_call_result(stored, call.view.revision)
    for block in fitted["content"]:
        if len(block.get("text", "")) > LONG_CHARS:  # encoded in turns
            block["text"] = jsontext.LargeText(in_turns([block["text"].encode("utf-8", "surrogatepass")]))
    return fitted


def wait(call: Call, task_id: str, until: float, since: Task | None = None) -> Task:
    """Wait until the task has ended, has other questions than then, has begun, or the time is up. Return it."""
    for _ in call.services.tasks.changes(task_id, until):
        task = call.services.tasks.find(call, task_id)
        if task.has_ended or (since and (task.questions, task.is_begun) != (since.questions, since.is_begun)):
            break
    return task


def wait_and_ask(call: Call, task_id: str, sink: Sink) -> Task:
    """Wait until the task has ended, and return it. Meanwhile, ask the client of the session, by this sink, all open
    questions that no client is being asked."""
    tasks, askers = call.services.tasks, list[gevent.Greenlet]()
    task = tasks.find(call, task_id)
    try:
        while not task.has_ended:
            for key, request in task.open_questions.items():
                if (task_id, key) not in tasks.asked and sink.carries_requests:
                    askers.append(gevent.spawn(_ask, call, sink, task_id, key, request))
            task = wait(call, task_id, time.monotonic() + LOOK_SECS, since=task)
        return task
    finally:
        gevent.killall(askers, block=False)


def _ask(call: Call, sink: Sink, task_id: str, key: str, request: Json) -> None:
    """Ask the client of a session one question, and store the answer. If it cannot answer, the script learns that. If
    it is gone, the question stays open."""
    tasks = call.services.tasks
    tasks.asked.add((task_id, key))
    try:
        meta = revision_fields.about_task(task_id)
        outcome = call.services.asking.ask_one(call, sink, request, ANSWER_SECS, _meta=meta)
        if outcome["status"] != errors.LinkClosed.status:
            tasks.attempt(tasks.store.answer, task_id, {key: outcome.get("result", NO_ANSWER)})
    finally:
        tasks.asked.discard((task_id, key))
        tasks.ring()


class SessionWatch:
    """Tells the session of a call about its task. Asks the task's questions if the client does not wait for the result,
    where it would be asked: the Inspector, for one, only looks at the status."""

    def __init__(self, call: Call, session: Session) -> None:
        self._call, self._session = call, session
        self._told: str = Status.WORKING
        self._asker: gevent.Greenlet | None = None

    def tell(self, task: Task) -> None:
        fields = OLDER.fields(task)
        if fields["status"] != self._told:
            self._told = fields["status"]
            self._session.sink.notify(messages.notification("notifications/tasks/status", fields), is_droppable=False)
        if task.open_questions and not self._asker:
            self._asker = gevent.spawn_later(UNASKED_SECS, self._ask, task.id)

    def _ask(self, task_id: str) -> None:
        with suppress(RpcError):  # the task has expired
            wait_and_ask(self._call, task_id, self._session.sink)


GET = Route(_task_id, get, uses_catalog=False, waits=True)
RESULT = Route(_task_id, result, uses_catalog=False, waits=True)
LIST = Route(lambda call: None, list_tasks, uses_catalog=False, waits=True)
CANCEL = Route(_task_id, cancel, uses_catalog=False, waits=True)
UPDATE = Route(_task_id, update, uses_catalog=False, waits=True)
