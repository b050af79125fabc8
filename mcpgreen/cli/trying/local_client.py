"""A client of a server in the same process."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from functools import partial

import gevent

from mcpgreen.cli.output import tell
from mcpgreen.cli.trying.person import CAPABILITIES, Answer, unknown
from mcpgreen.engine.server import Server
from mcpgreen.errors import InternalError, McpgreenError
from mcpgreen.links.session import Stream
from mcpgreen.links.sink import MemorySink
from mcpgreen.protocol.admission import CLIENT_CAPABILITIES, PROTOCOL_VERSION
from mcpgreen.protocol.revision_fields import SERVER_INFO
from mcpgreen.protocol.revisions import EXTENSION_OF, LATEST_HANDSHAKE, NEWEST, TASKS_EXTENSION
from mcpgreen.text.json_types import Json

LOOK_SECS = 0.2  # between two looks at a task
PERCENT = re.compile(r"(\d+) %(?:: )?(.*)", re.DOTALL)


class Refused(McpgreenError):
    """The server answered with an error."""

    def __init__(self, error: Json) -> None:
        super().__init__(str(error["message"]))
        self.error = error


class LocalClient:
    """One session with one request at a time. `answer` answers what a script asks meanwhile: it takes a method and its
    params, and returns `{"result": ...}` or `{"error": ...}`. Without it, the client has no capabilities. With
    `has_tasks`, it has no session, and supports the tasks extension."""

    def __init__(
        self,
        server: Server,
        *,
        answer: Answer | None = None,
        on_notification: Callable[[Json], object] | None = None,
        has_tasks: bool = False,
    ) -> None:
        self.server = server
        self._answer = answer
        self._on_notification = on_notification
        self._has_tasks = has_tasks
        self._capabilities: Json = CAPABILITIES if answer else {}
        self._sink = MemorySink(on_request=partial(gevent.spawn, self._answer_script), on_notification=on_notification)
        self._link = server.connect(Stream(self._sink, transport="stdio"))
        self._last_id = 0
        if not has_tasks:
            params = {"protocolVersion": LATEST_HANDSHAKE.name, "capabilities": self._capabilities}
            self.ask("initialize", {**params, "clientInfo": {"name": "mcpgreen", "version": "1"}})
            self._link.receive({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def ask(self, method: str, params: Json) -> Json:
        """Send a request and return its result. Raises Refused."""
        if self._has_tasks or method in EXTENSION_OF:
            capabilities = {"extensions": {TASKS_EXTENSION: {}}, **self._capabilities}
            meta = {PROTOCOL_VERSION: NEWEST.name, CLIENT_CAPABILITIES: capabilities, **params.get("_meta", {})}
            params = {**params, "_meta": meta}
        self._last_id += 1
        self._link.receive({"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params})
        self._link.stream.idle.wait()
        answer = next(message for message in self._sink.responses if message.get("id") == self._last_id)
        self._sink.forget()
        if "error" in answer:
            raise Refused(answer["error"])
        result: Json = answer["result"]
        return result

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
        """Call a tool, answer its questions, and follow its task to the end. Raises Refused."""
        result = self.ask("tools/call", params)
        while result.get("resultType") == "input_required":
            answers = {"inputResponses": self._answers_to(result["inputRequests"])}
            result = self.ask("tools/call", {**params, **answers, "requestState": result["requestState"]})
        if result.get("resultType") == "task":
            try:
                result = self._followed(result["taskId"])
            except KeyboardInterrupt:
                self._take_leave(result["taskId"], params["name"])
                raise
        if result.pop("resultType", None):
            result.get("_meta", {}).pop(SERVER_INFO, None)
        return result

    def _followed(self, task_id: str) -> Json:
        """Return the result of the task. Raises Refused if it has none."""
        shown = ""
        while True:
            task = self.ask("tasks/get", {"taskId": task_id})
            if "result" in task:
                result: Json = task["result"]
                return result
            if "error" in task or task["status"] == "cancelled":
                raise Refused(task.get("error") or {"code": InternalError.code, "message": "The task was cancelled."})
            if task.get("inputRequests"):
                try:
                    answers = self._answers_to(task["inputRequests"])
                except Refused:
                    self.ask("tasks/cancel", {"taskId": task_id})
                    raise
                self.ask("tasks/update", {"taskId": task_id, "inputResponses": answers})
            if self._on_notification is not None and (message := task.get("statusMessage", "")) != shown:
                shown, found = message, PERCENT.fullmatch(message)
                progress = {"progress": int(found[1]), "total": 100} if found else {"progress": 0}
                params = {**progress, "message": found[2] if found else message}
                self._on_notification({"method": "notifications/progress", "params": params})
            gevent.sleep(LOOK_SECS)

    def _take_leave(self, task_id: str, tool: str) -> None:
        services = self.server.services
        goes_on = services.snapshot("tools").by_name[tool].description.task_survives_client is not False
        word = "The task goes on." if goes_on else "The task ends, because the tool has taskSurvivesClient: false."
        tell(f"{word} To see it: mcpgreen tasks show {task_id} --project-root {shlex.quote(services.project.root)}\n")

    def _answers_to(self, asked: Json) -> Json:
        """Raises Refused if the person does not want to answer for a model."""
        answers: Json = {}
        for key, request in asked.items():
            answer = self._answer(request["method"], request["params"]) if self._answer else {}
            if "result" not in answer:
                raise Refused(answer.get("error") or {"code": InternalError.code, "message": "There is no answer."})
            answers[key] = answer["result"]
        return answers

    def _answer_script(self, request: Json) -> None:
        method = request["method"]
        answer = self._answer(method, request.get("params", {})) if self._answer else unknown(method)
        self._link.receive({"jsonrpc": "2.0", "id": request["id"], **answer})
