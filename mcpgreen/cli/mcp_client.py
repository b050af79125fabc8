"""A client of a server, of any revision: it sends requests, answers questions, retries, follows tasks and cancels.

It does not know where the server is: a `connection.Connection` leads to another process, and
`trying.local_client.LocalClient` is for a server in this process.

Rule: nothing here needs gevent, so that pytest can use it without being changed.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from typing import Any

from mcpgreen import __version__
from mcpgreen.errors import InternalError, McpgreenError
from mcpgreen.protocol.admission import CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL, PROTOCOL_VERSION
from mcpgreen.protocol.messages import normal_id
from mcpgreen.protocol.revisions import EXTENSION_OF, LATEST_HANDSHAKE, NEWEST, TASKS_EXTENSION, Era, Revision
from mcpgreen.text.json_types import Json

INFO: Json = {"name": "mcpgreen", "version": __version__}
WITH_TASKS: Json = {"extensions": {TASKS_EXTENSION: {}}}
LOOK_SECS = 0.2  # between two looks at a task
PERCENT = re.compile(r"(\d+) %(?:: )?(.*)", re.DOTALL)

Answer = Callable[[str, Json], Json]  # takes a method and its params; returns `{"result": ...}` or `{"error": ...}`
OnFrame = Callable[[Json], object]


class Refused(McpgreenError):
    """The server answered with an error, or a question has no answer."""

    def __init__(self, error: Any) -> None:
        super().__init__(str(error["message"] if isinstance(error, dict) and "message" in error else error))
        self.error = error


class Cancelled(McpgreenError):
    """The client has cancelled its request, so there is no answer."""


def unknown(method: str, params: Json | None = None) -> Json:
    """An `Answer` for what a client does not support."""
    return {"error": {"code": -32601, "message": f"This client does not answer {method}."}}


def sampled(text: str) -> Json:
    """Return the result of a request to sample, with this text of the model."""
    content = {"type": "text", "text": text}
    return {"role": "assistant", "content": content, "model": "person", "stopReason": "endTurn"}


def ignore(frame: Json) -> None:
    pass


@dataclass(eq=False)
class McpClient:
    """Waits for the answer to each request, at most until `give_up_at`. `receive` waits for the next message of the
    server until a time, and returns it, unless it went to `take` already. `answer` answers what a script asks.
    `on_task` gets each state of a task; without it, its messages count as progress."""

    send: OnFrame
    receive: Callable[[float], Any]
    capabilities: Json
    revision: Revision = LATEST_HANDSHAKE
    answer: Answer = unknown
    on_notification: OnFrame = ignore
    on_task: OnFrame | None = None
    log_level: str | None = None
    give_up_at: float = inf  # as of `time.monotonic`

    def __post_init__(self) -> None:
        self.server_info: Any = None
        self.task_id = ""  # of what is being played
        self._task_state = ("", "")  # with its message
        self._last_id = 0
        self._responses: dict[object, Json | Cancelled | None] = {}  # to the requests that are open
        if self.revision.era == Era.HANDSHAKE:
            params = {"protocolVersion": self.revision.name, "capabilities": self.capabilities, "clientInfo": INFO}
            self.server_info = self.ask("initialize", params).get("serverInfo")
            self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
            if self.log_level is not None:
                self.ask("logging/setLevel", {"level": self.log_level})

    def ask(self, method: str, params: Json) -> Json:
        """Send a request and return its result. Raises Refused, TimeoutError and Cancelled."""
        return result_in(self.exchange(method, params))

    def all_of(self, method: str, member: str) -> list[Json]:
        """Return all items of a list, from all its pages."""
        items: list[Json] = []
        params: Json | None = {}
        while params is not None:
            page = self.ask(method, params)
            items += page.get(member, ())
            params = {"cursor": page["nextCursor"]} if page.get("nextCursor") else None
        return items

    def play(self, method: str, params: Json) -> Json:
        """Send a request, answer its questions, and follow its task to the end. Return the last response, as a whole.
        Raises Refused if a question has no answer, TimeoutError and Cancelled."""
        self.task_id, self._task_state = "", ("", "")
        response = self.exchange(method, params)
        while (result := response.get("result", {})).get("resultType") == "input_required":
            answers = {"inputResponses": self._answers_to(result["inputRequests"])}
            response = self.exchange(method, {**params, **answers, "requestState": result["requestState"]})
        if result.get("resultType") == "task":
            return self._followed(result)
        if "task" in params and "task" in result:
            self._take_task(result["task"])
            return self.exchange("tasks/result", {"taskId": self.task_id})
        return response

    def cancel(self) -> None:
        """Cancel what is being played, or its task. May wait."""
        if self.task_id:
            self.exchange("tasks/cancel", {"taskId": self.task_id})
            return
        for request_id in [each for each, response in self._responses.items() if response is None]:
            cancelled = {"requestId": request_id, "reason": "The user has cancelled it."}
            self.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled})
            self._responses[request_id] = Cancelled()

    def exchange(self, method: str, params: Json) -> Json:
        """Send a request and return the whole response. Raises TimeoutError and Cancelled."""
        self._last_id += 1
        request_id = self._last_id
        self._responses[request_id] = None
        self.send({"jsonrpc": "2.0", "id": request_id, "method": method, "params": self._envelope(method, params)})
        while (response := self._responses[request_id]) is None:
            if time.monotonic() >= self.give_up_at:
                raise TimeoutError(f"{method}: no answer in time")
            self._hear(self.give_up_at)
        del self._responses[request_id]
        if isinstance(response, Cancelled):
            raise response
        return response

    def take(self, message: Any) -> None:
        """Take what the server sends."""
        if not isinstance(message, dict):
            return  # it is not one of our servers
        method = message.get("method")
        if method is None:
            request_id = normal_id(message.get("id"))
            if request_id in self._responses:
                self._responses[request_id] = message
        elif "id" in message:
            self.reply(message)
        elif method == "notifications/tasks/status":
            self._take_task(message["params"])
        else:
            self.on_notification(message)

    def _hear(self, until: float) -> None:
        message = self.receive(until)
        if message is not None:
            self.take(message)

    def reply(self, question: Json) -> None:
        """Answer a question of the server."""
        with suppress(Cancelled):
            answer = self.answer(question["method"], question.get("params", {}))
            self.send({"jsonrpc": "2.0", "id": question["id"], **answer})

    def _envelope(self, method: str, params: Json) -> Json:
        """Return a copy of the params, which for a stateless request describe the client."""
        if self.revision.era == Era.HANDSHAKE and method not in EXTENSION_OF:
            return {**params}
        meta: Json = {PROTOCOL_VERSION: NEWEST.name, CLIENT_CAPABILITIES: self.capabilities, CLIENT_INFO: INFO}
        meta |= {} if self.log_level is None else {LOG_LEVEL: self.log_level}
        return {**params, "_meta": {**meta, **params.get("_meta", {})}}

    def _answers_to(self, asked: Json) -> Json:
        """Raises Refused if there is no answer, as when a person does not want to answer for a model."""
        return {key: result_in(self.answer(each["method"], each.get("params", {}))) for key, each in asked.items()}

    def _followed(self, task: Json) -> Json:
        """Look at the task until it ends; return its result or error as a response. Raises Refused."""
        self._take_task(task)
        named = {"taskId": self.task_id}
        while True:
            response = self.exchange("tasks/get", named)
            if "error" in response:
                return response
            task = response["result"]
            outcome: Json = {key: task[key] for key in ("result", "error") if key in task}
            if task["status"] == "cancelled":
                outcome = {"error": {"code": InternalError.code, "message": "The task was cancelled."}}
            self._take_task({key: value for key, value in task.items() if key not in ("_meta", "resultType", *outcome)})
            if outcome:
                return {"jsonrpc": "2.0", "id": response["id"], **outcome}
            if task.get("inputRequests"):
                try:
                    answers = self._answers_to(task["inputRequests"])
                except Refused:
                    self.cancel()
                    raise
                self.ask("tasks/update", {**named, "inputResponses": answers})
            next_look_at = time.monotonic() + LOOK_SECS
            while time.monotonic() < next_look_at:
                self._hear(next_look_at)

    def _take_task(self, task: Json) -> None:
        """Report a task if it has changed."""
        self.task_id = task["taskId"]
        message = task.get("statusMessage", "")
        state, self._task_state = self._task_state, (task["status"], message)
        if self._task_state == state:
            return
        if self.on_task is not None:
            self.on_task(task)
        elif message:
            found = PERCENT.fullmatch(message)
            progress = {"progress": int(found[1]), "total": 100} if found else {"progress": 0}
            params = {**progress, "message": found[2] if found else message}
            self.on_notification({"method": "notifications/progress", "params": params})


def result_in(response: Json) -> Json:
    """Raises Refused."""
    result = response.get("result")
    if not isinstance(result, dict):
        raise Refused(response.get("error"))
    return result
