"""A client of a server in the same process, of any revision."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from contextlib import suppress

import gevent
from gevent.event import AsyncResult
from gevent.pool import Group

from mcpgreen.cli.output import tell
from mcpgreen.cli.trying.person import CAPABILITIES, Answer, unknown
from mcpgreen.engine.frames import Frames
from mcpgreen.engine.server import Server
from mcpgreen.errors import InternalError, McpgreenError
from mcpgreen.links.session import Stream
from mcpgreen.links.sink import Answerable, MemorySink
from mcpgreen.protocol.admission import CLIENT_CAPABILITIES, LOG_LEVEL, PROTOCOL_VERSION
from mcpgreen.protocol.messages import Line, whole
from mcpgreen.protocol.revision_fields import SERVER_INFO
from mcpgreen.protocol.revisions import EXTENSION_OF, LATEST_HANDSHAKE, NEWEST, TASKS_EXTENSION, Era, Revision
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

NO_ANSWER = "There is no answer."
LOOK_SECS = 0.2  # between two looks at a task
PERCENT = re.compile(r"(\d+) %(?:: )?(.*)", re.DOTALL)
OnFrame = Callable[[Json], object]


class Refused(McpgreenError):
    """The server answered with an error, or a question has no answer."""

    def __init__(self, error: Json) -> None:
        super().__init__(str(error["message"]))
        self.error = error


class Cancelled(McpgreenError):
    """The client has cancelled its request, so there is no answer."""


class LocalClient:
    """A client that waits for the answer to each request. `answer` answers what a script asks meanwhile: it takes a
    method and its params, and returns `{"result": ...}` or `{"error": ...}`. Without it, the client has no
    capabilities, unless they are given. With `has_tasks`, it supports tasks, as the newest revision has them unless
    there is a `revision`. `call_number` is the server's number of the last request that it did not answer at once."""

    def __init__(
        self,
        server: Server,
        *,
        answer: Answer | None = None,
        on_notification: OnFrame | None = None,
        on_sent: OnFrame | None = None,
        on_task: OnFrame | None = None,
        has_tasks: bool = False,
        revision: Revision | None = None,
        capabilities: Json | None = None,
        log_level: str | None = None,
    ) -> None:
        self.server = server
        self.call_number: int | None = None
        self._answer = answer
        self._on_notification = on_notification
        self._on_sent = on_sent
        self._on_task = on_task
        self._has_tasks = has_tasks
        self._revision = revision or (NEWEST if has_tasks else LATEST_HANDSHAKE)
        self._capabilities: Json = (CAPABILITIES if answer else {}) if capabilities is None else capabilities
        self._log_level = log_level
        self._link = server.connect(Stream(MemorySink(self._take), transport="stdio"))
        self._frames = Frames(server.services, self._link)
        self._askers = Group()
        self._waiting: dict[object, AsyncResult] = {}
        self._task_id = ""
        self._state = ("", "")  # of the task, with its message
        self._last_id = 0
        if self._revision.era == Era.HANDSHAKE:
            params = {"protocolVersion": self._revision.name, "capabilities": self._capabilities}
            self.ask("initialize", {**params, "clientInfo": {"name": "mcpgreen", "version": "1"}})
            self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
            if log_level is not None:
                self.ask("logging/setLevel", {"level": log_level})

    def close(self) -> None:
        """Leave the server, which cancels what is in flight."""
        self._askers.kill(block=False)
        self.server.disconnect(self._link)

    def ask(self, method: str, params: Json) -> Json:
        """Send a request and return its result. Raises Refused."""
        return _result_in(self._exchange(method, params))

    def all_of(self, method: str, member: str) -> list[Json]:
        """Return all items of a list, from all its pages."""
        items: list[Json] = []
        params: Json = {}
        while True:
            page = self.ask(method, params)
            items += page[member]
            if not page.get("nextCursor"):
                return items
            params = {"cursor": page["nextCursor"]}

    def call(self, params: Json) -> Json:
        """Call a tool as `play` does, and return its result. Raises Refused."""
        try:
            result = _result_in(self.play("tools/call", params))
        except KeyboardInterrupt:
            if self._task_id:
                self._take_leave(self._task_id, params["name"])
            raise
        if result.pop("resultType", None):
            result.get("_meta", {}).pop(SERVER_INFO, None)
        return result

    def play(self, method: str, params: Json) -> Json:
        """Send a request, answer its questions, and follow its task to the end. Return the last response, as a whole.
        Raises Refused if a question has no answer, and Cancelled."""
        self._task_id, self._state = "", ("", "")
        response = self._exchange(method, params)
        while (result := response.get("result", {})).get("resultType") == "input_required":
            answers = {"inputResponses": self._answers_to(result["inputRequests"])}
            response = self._exchange(method, {**params, **answers, "requestState": result["requestState"]})
        if result.get("resultType") == "task":
            return self._followed(result)
        if "task" in params and "task" in result:
            self._take_task(result["task"])
            return self._exchange("tasks/result", {"taskId": self._task_id})
        return response

    def cancel(self) -> None:
        """Cancel what is being played, or its task. May wait."""
        if self._task_id:
            self._exchange("tasks/cancel", {"taskId": self._task_id})
            return
        self._askers.kill(block=False)
        for request_id, response in list(self._waiting.items()):
            cancelled = {"requestId": request_id, "reason": "The user has cancelled it."}
            self._send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled})
            response.set_exception(Cancelled())

    def _exchange(self, method: str, params: Json) -> Json:
        self._last_id += 1
        request_id = self._last_id
        request = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": self._envelope(method, params)}
        if self._on_sent is not None:
            self._on_sent(request)
        waiting = self._waiting[request_id] = AsyncResult()
        try:
            self._send(request)
            if call := self._link.stream.in_flight.get(request_id):
                self.call_number = call.number
            response: Json = waiting.get()
            return response
        finally:
            del self._waiting[request_id]

    def _send(self, message: Json) -> None:
        if "frame" in self.server.services.events.wants:
            self._frames.tell_incoming(jsontext.dumps(message), message)
        self._link.receive(message)

    def _envelope(self, method: str, params: Json) -> Json:
        """Return a copy of the params, which for a stateless request describe the client."""
        if self._revision.era == Era.HANDSHAKE and method not in EXTENSION_OF:
            return {**params}
        extensions = self._capabilities.get("extensions", {})
        with_tasks = {"extensions": {**extensions, TASKS_EXTENSION: {}}} if self._has_tasks else {}
        meta: Json = {PROTOCOL_VERSION: NEWEST.name, CLIENT_CAPABILITIES: {**self._capabilities, **with_tasks}}
        meta |= {} if self._log_level is None else {LOG_LEVEL: self._log_level}
        return {**params, "_meta": {**meta, **params.get("_meta", {})}}

    def _take(self, line: Line, call: Answerable | None) -> None:
        """Take what the server sends."""
        if "frame" in self.server.services.events.wants:
            self._frames.tell_outgoing(line, call)
        message = jsontext.loads(whole(line))
        method = message.get("method")
        if method is None:
            if waiting := self._waiting.get(message.get("id")):
                waiting.set(message)
        elif "id" in message:
            self._askers.spawn(self._answer_script, message)
        elif method == "notifications/tasks/status":
            self._take_task(message["params"])
        elif self._on_notification is not None:
            self._on_notification(message)

    def _answer_script(self, request: Json) -> None:
        method = request["method"]
        with suppress(Cancelled):
            answer = self._answer(method, request.get("params", {})) if self._answer else unknown(method)
            self._send({"jsonrpc": "2.0", "id": request["id"], **answer})

    def _answers_to(self, asked: Json) -> Json:
        """Raises Refused if there is no answer, as when a person does not want to answer for a model."""
        answers: Json = {}
        for key, request in asked.items():
            answer = self._answer(request["method"], request["params"]) if self._answer else {}
            answers[key] = _result_in(answer or {"error": {"code": InternalError.code, "message": NO_ANSWER}})
        return answers

    def _followed(self, task: Json) -> Json:
        """Look at the task until it ends; return its result or error as a response. Raises Refused."""
        self._take_task(task)
        named = {"taskId": self._task_id}
        while True:
            response = self._exchange("tasks/get", named)
            if "error" in response:
                return response
            task = response["result"]
            outcome: Json = {key: task[key] for key in ("result", "error") if key in task}
            if task["status"] == "cancelled":
                outcome = {"error": {"code": InternalError.code, "message": "The task was cancelled."}}
            self._take_task({key: value for key, value in task.items() if key not in ("_meta", "resultType", *outcome)})
            if outcome:
                return {**response, **outcome}
            if task.get("inputRequests"):
                try:
                    answers = self._answers_to(task["inputRequests"])
                except Refused:
                    self.ask("tasks/cancel", named)
                    raise
                self.ask("tasks/update", {**named, "inputResponses": answers})
            gevent.sleep(LOOK_SECS)

    def _take_task(self, task: Json) -> None:
        """Report a task if it has changed; without `on_task`, as progress."""
        self._task_id = task["taskId"]
        message = task.get("statusMessage", "")
        state, self._state = self._state, (task["status"], message)
        if self._state == state:
            return
        if self._on_task is not None:
            self._on_task(task)
        elif self._on_notification is not None and message:
            found = PERCENT.fullmatch(message)
            progress = {"progress": int(found[1]), "total": 100} if found else {"progress": 0}
            params = {**progress, "message": found[2] if found else message}
            self._on_notification({"method": "notifications/progress", "params": params})

    def _take_leave(self, task_id: str, tool: str) -> None:
        services = self.server.services
        goes_on = services.snapshot("tools").by_name[tool].description.task_survives_client is not False
        word = "The task goes on." if goes_on else "The task ends, because the tool has taskSurvivesClient: false."
        tell(f"{word} To see it: mcpgreen tasks show {task_id} --project-root {shlex.quote(services.project.root)}\n")


def _result_in(response: Json) -> Json:
    if "error" in response:
        raise Refused(response["error"])
    result: Json = response["result"]
    return result
