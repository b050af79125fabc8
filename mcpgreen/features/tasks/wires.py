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
from gevent.event import Event as Bell

from mcpgreen import errors
from mcpgreen.errors import InternalError, InvalidParams, RpcError
from mcpgreen.features.call import Call, Route
from mcpgreen.links.sink import Sink
from mcpgreen.protocol import revision_fields
from mcpgreen.protocol.admission import ClientView
from mcpgreen.protocol.input import requests
from mcpgreen.protocol.revisions import RELATED_TASK, TASKS_NEEDED, Era
from mcpgreen.running.shares import in_turns, let_others
from mcpgreen.tasks import life
from mcpgreen.tasks.life import Status, Task
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

if TYPE_CHECKING:
    from mcpgreen.features.tasks.tasks import Tasks
    from mcpgreen.features.watching.subscriptions import Listen

CANCEL_SECS = 5.0  # for another process to cancel a task
LOOK_SECS = 1.0  # while a client waits for a result: another client that was asked a question may be gone
ANSWER_SECS = 86_400.0
MAX_ID_CHARS = 100
MAX_IDS = 1000  # of one listen
NO_ANSWER: Json = {"action": "cancel"}
LONG_CHARS = 65_536


class Wire(NamedTuple):
    """The names of fields, what a handle is, and the status of a tool that has failed."""

    ttl: str
    poll_interval: str
    handle: Callable[[Json], Json]
    status_of_error: str

    def fields(self, task: Task) -> Json:
        status = Status.WORKING if task.status == Status.QUEUED else task.status
        fields: Json = {
            "taskId": task.id,
            "status": self.status_of_error if task.is_error else status,
            "createdAt": life.iso_time(task.created_at),
            "lastUpdatedAt": life.iso_time(task.updated_at),
            self.ttl: life.ttl_ms(task),
            self.poll_interval: life.poll_interval_ms((task.ended_at or time.time()) - task.created_at),
        }
        return {**fields, "statusMessage": task.status_message} if task.status_message else fields


OLDER = Wire("ttl", "pollInterval", lambda fields: {"task": fields}, Status.FAILED)
EXTENSION = Wire("ttlMs", "pollIntervalMs", lambda fields: {"resultType": "task", **fields}, Status.COMPLETED)


def wire_of(view: ClientView) -> Wire:
    return EXTENSION if view.revision.era == Era.STATELESS else OLDER


def created(task: Task, view: ClientView) -> Json:
    """Return the handle of a new task."""
    return wire_of(view).handle(wire_of(view).fields(task))


def detailed(tasks: Tasks, task: Task) -> bytes:
    """Return a task of the extension as JSON, with its questions, its result or its error."""
    fields = EXTENSION.fields(task)
    if task.status == Status.INPUT_REQUIRED:
        fields["inputRequests"] = task.open_questions
    elif task.status == Status.FAILED:
        fields["error"] = task.error
    result = b',"result":%b' % _result_of(tasks, task) if task.status == Status.COMPLETED else b""
    return b"%b%b}" % (jsontext.dumps(fields)[:-1], result)


def _result_of(tasks: Tasks, task: Task) -> bytes:
    if task.result is not None:
        return task.result
    try:
        found: bytes | None = tasks.attempt(tasks.store.result_of, task)
    except LookupError:
        found = None
    if found is None:
        raise InternalError("The result of this task cannot be read.")
    return found


def require_declared(call: Call) -> None:
    """Raises MissingClientCapability."""
    if not call.view.has_tasks:
        raise errors.MissingClientCapability("The client does not support the tasks extension.", data=TASKS_NEEDED)


def _task_id(call: Call) -> str:
    require_declared(call)  # before the id is looked at
    task_id = call.params.get("taskId")
    if type(task_id) is not str or not 0 < len(task_id) <= MAX_ID_CHARS:
        raise InvalidParams("taskId must be the id of a task.")
    return task_id


def get(call: Call, task_id: str) -> Json | bytes:
    tasks = call.services.tasks
    tasks.count_poll(call, task_id)
    task = tasks.find(call, task_id)
    if wire_of(call.view) is OLDER:
        return OLDER.fields(task)
    stamp = revision_fields.finish({}, call.view.revision, call.services.identity.info)
    return b"%b,%b" % (jsontext.dumps(stamp)[:-1], detailed(tasks, task)[1:])


def list_tasks(call: Call, _: None) -> Json:
    tasks, cursor, limit = call.services.tasks, call.params.get("cursor") or "", call.services.settings.page_size
    tasks.count_poll(call)
    try:
        found: list[Task] = tasks.attempt(tasks.store.list, tasks.owner_of(call), after=str(cursor), limit=limit) or []
    except LookupError:
        raise InvalidParams("Unknown cursor.") from None
    more = {"nextCursor": found[-1].id} if len(found) >= limit else {}
    return {"tasks": [OLDER.fields(task) for task in found if task.is_begun], **more}


def cancel(call: Call, task_id: str) -> Json:
    tasks, wire = call.services.tasks, wire_of(call.view)
    task = tasks.find(call, task_id)
    if task.has_ended and wire is OLDER:
        raise InvalidParams("The task has ended already.")
    if not task.has_ended:
        tasks.cancel(task_id)
    if wire is EXTENSION:
        return {}
    task = wait(call, task_id, time.monotonic() + CANCEL_SECS)
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
        try:
            tasks.attempt(tasks.store.answer, task_id, fitting)
        except ValueError as error:
            raise InvalidParams(f"inputResponses cannot be stored: {error}.") from error
        tasks.ring()
    return {}


def result(call: Call, task_id: str) -> Json:
    """Wait for the end of a task, and return what its call would have returned. Meanwhile, ask its questions."""
    tasks = call.services.tasks
    task = tasks.find(call, task_id)
    askers: list[gevent.Greenlet] = []
    try:
        while not task.has_ended:
            askers += ask_open(call, call.sink, task)
            task = wait(call, task_id, time.monotonic() + LOOK_SECS, since=task)
    finally:
        gevent.killall(askers, block=False)
    answer = result_for(call, task)
    return {**answer, "_meta": {**answer.get("_meta", {}), RELATED_TASK: {"taskId": task_id}}}


def result_for(call: Call, task: Task) -> Json:
    """Return what the call of a task that has ended would have returned. Raises RpcError."""
    tasks = call.services.tasks
    if task.status == Status.CANCELLED:
        raise InternalError("The task was cancelled.")
    if task.error is not None:
        raise errors.ScriptError(task.error["code"], task.error["message"], data=task.error.get("data"))
    stored: Json = jsontext.loads(_result_of(tasks, task), let_others)
    fitted = revision_fields.fit_call_result(stored, call.view.revision)
    for block in fitted["content"]:
        if len(block.get("text", "")) > LONG_CHARS:  # encoded in turns
            block["text"] = jsontext.LargeText(in_turns([block["text"].encode("utf-8", "surrogatepass")]))
    return fitted


def wait(call: Call, task_id: str, until: float, since: Task | None = None) -> Task:
    """Wait until the task has ended, has other questions than then, has begun, or the time is up. Return it."""
    tasks, bell = call.services.tasks, Bell()
    watch = lambda changed: bell.set()  # noqa: E731
    tasks.watch(task_id, watch)
    try:
        while True:
            bell.clear()
            task = tasks.find(call, task_id)
            is_news = since and (task.questions, task.is_begun) != (since.questions, since.is_begun)
            left_secs = until - time.monotonic()
            if task.has_ended or is_news or left_secs <= 0:
                return task
            bell.wait(min(LOOK_SECS, left_secs))
    finally:
        tasks.unwatch(task_id, watch)


def ask_open(call: Call, sink: Sink, task: Task) -> list[gevent.Greenlet]:
    """Ask the client of a session all open questions that no client is being asked, each in a greenlet."""
    unasked = {
        key: each for key, each in task.open_questions.items() if (task.id, key) not in call.services.tasks.asked
    }
    return [gevent.spawn(ask, call, sink, task.id, key, each) for key, each in unasked.items()]


def ask(call: Call, sink: Sink, task_id: str, key: str, request: Json) -> None:
    """Ask the client of a session one question, and store the answer. If it cannot answer, the script learns that. If
    it is gone, the question stays open."""
    tasks = call.services.tasks
    tasks.asked.add((task_id, key))
    try:
        related = {RELATED_TASK: {"taskId": task_id}}
        outcome = call.services.asking.ask_one(call, sink, request, ANSWER_SECS, _meta=related)
        if outcome["status"] != errors.LinkClosed.status:
            tasks.attempt(tasks.store.answer, task_id, {key: outcome.get("result", NO_ANSWER)})
    finally:
        tasks.asked.discard((task_id, key))
        tasks.ring()


def wanted_ids(call: Call) -> list[str]:
    """Return the ids that a listen names, each once. Raises MissingClientCapability and InvalidParams."""
    ids = call.params["notifications"]["taskIds"]
    require_declared(call)
    if type(ids) is not list or len(ids) > MAX_IDS or not all(type(each) is str for each in ids):
        raise InvalidParams(f"notifications.taskIds must be an array of at most {MAX_IDS} strings.")
    return list(dict.fromkeys(ids))


class TaskWatch:
    """Tells a listen about a task. Making one may wait. Raises InvalidParams if the caller may not see the task."""

    def __init__(self, listen: Listen, task_id: str) -> None:
        self._listen, self._tasks, self._id = listen, listen.call.services.tasks, task_id
        self._tasks.find(listen.call, task_id)
        self._tasks.watch(task_id, self._tell)

    def tell_now(self) -> None:
        """Tell how the task is now. May wait."""
        with suppress(InvalidParams):  # it has expired
            self._tell(self._tasks.find(self._listen.call, self._id))

    def _tell(self, task: Task) -> None:
        with suppress(RpcError):  # its result has expired
            meta = jsontext.dumps({revision_fields.SUBSCRIPTION_ID: self._listen.call.id})
            line = b'{"jsonrpc":"2.0","method":"notifications/tasks","params":%b,"_meta":%b}}'
            self._listen.send(line % (detailed(self._tasks, task)[:-1], meta))

    def stop(self) -> None:
        self._tasks.unwatch(self._id, self._tell)


GET = Route(_task_id, get, uses_catalog=False, waits=True)
RESULT = Route(_task_id, result, uses_catalog=False, waits=True)
LIST = Route(lambda call: None, list_tasks, uses_catalog=False, waits=True)
CANCEL = Route(_task_id, cancel, uses_catalog=False, waits=True)
UPDATE = Route(_task_id, update, uses_catalog=False, waits=True)
