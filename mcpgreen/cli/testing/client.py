"""A client of a server in another process, for tests: it speaks any revision, and answers questions as a test says.

One call at a time. What comes meanwhile (progress, log messages, questions) is kept with the call's `Outcome`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mcpgreen import __version__
from mcpgreen.cli.clients.launch import program_words
from mcpgreen.cli.connection import Connection, NoAnswer
from mcpgreen.protocol.admission import CLIENT_CAPABILITIES, CLIENT_INFO, PROTOCOL_VERSION
from mcpgreen.protocol.input.requests import ELICIT, SAMPLE, blocks_of
from mcpgreen.protocol.revisions import BY_NAME, LATEST_HANDSHAKE, TASKS_EXTENSION, Era
from mcpgreen.text.json_types import Json

PATIENCE_SECS = 600.0  # for an answer, if a test says nothing; a tool has a time limit of its own
POLL_SECS = 0.1
MAX_NOTIFICATIONS = 10_000
MAX_ROUNDS = 100  # of questions in one call
SHOWN_CHARS = 200
INFO = {"name": "mcpgreen test", "version": __version__}
ALL: Json = {"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {}}
CANCEL: Json = {"action": "cancel"}


class Outcome(NamedTuple):
    """What came of a call: a result or an error, and what came before. `unanswered` are the questions for which there
    was no answer, `unused` the answers for which there was no question."""

    answer: Json
    notifications: Sequence[Json] = ()
    unanswered: Sequence[str] = ()
    unused: Sequence[str] = ()
    secs: float = 0.0
    is_late: bool = False  # it was cancelled because its time was over

    @property
    def result(self) -> Json:
        result: Json = self.answer.get("result", {})
        return result

    @property
    def error(self) -> Json | None:
        return self.answer.get("error")

    @property
    def is_error(self) -> bool:
        return self.error is not None or bool(self.result.get("isError"))

    @property
    def text(self) -> str:
        """The text of the result, without newlines at its end; or the message of the error."""
        blocks = [block["text"] for block in self.result.get("content", ()) if block.get("type") == "text"]
        return "\n".join(blocks).rstrip("\n") if self.error is None else str(self.error.get("message"))

    @property
    def structured(self) -> Any:
        return self.result.get("structuredContent")

    @property
    def exit_code(self) -> int | None:
        code = self.result.get("_meta", {}).get("exitCode")
        return code if isinstance(code, int) else None

    @property
    def stderr(self) -> str:
        """The end of what the tool wrote to stderr."""
        return str(self.result.get("_meta", {}).get("stderr", ""))

    @property
    def progress(self) -> list[Json]:
        return [each["params"] for each in self.notifications if each["method"] == "notifications/progress"]

    @property
    def messages(self) -> list[Json]:
        """The log messages."""
        return [each["params"] for each in self.notifications if each["method"] == "notifications/message"]


class Client:
    """`capabilities` is "all", "none", or an object as the protocol has it. Raises NoAnswer where the server ends."""

    def __init__(
        self,
        project_root: str,
        *,
        environment: Mapping[str, str] | None = None,
        revision: str = LATEST_HANDSHAKE.name,
        capabilities: Json | str = "all",
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self._root = project_root = os.path.realpath(project_root)
        self._is_stateless = BY_NAME[revision].era == Era.STATELESS
        self._revision = revision
        if isinstance(capabilities, str):
            tasks: Json = {"extensions": {TASKS_EXTENSION: {}}} if self._is_stateless else {}
            capabilities = {**ALL, **tasks} if capabilities == "all" else {}
        self.capabilities: Json = capabilities
        env = {**environ, "MCPGREEN_RESULT_META": "always", **(environment or {})}
        words = (*program_words(environ), "serve", "--project-root", project_root)
        self.connection = Connection(words, env=env, cwd=project_root)
        self._last_id = 0
        self._begin({})
        if not self._is_stateless:
            params = {"protocolVersion": revision, "capabilities": capabilities, "clientInfo": INFO}
            try:
                self.request("initialize", params)
                self.connection.send({"method": "notifications/initialized"})
            except BaseException:
                self.close()
                raise

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        self.connection.close()

    def call(
        self,
        name: str,
        arguments: Json | None = None,
        *,
        answers: Mapping[str, Any] | None = None,
        within_secs: float = PATIENCE_SECS,
    ) -> Outcome:
        """Call a tool, answer its questions, and follow its task to the end. `answers` are found by the key of a
        question, a field of its form, or words in it."""
        self._begin(answers or {})
        began_at = time.monotonic()
        params: Json = {"name": name, "arguments": arguments or {}, "_meta": {"progressToken": "progress"}}
        answer, is_late = {}, False
        try:
            answer = self._called(params, began_at + within_secs)
        except TimeoutError:
            is_late = True
        secs = time.monotonic() - began_at
        unused = [each for each in self._answers if each not in self._used]
        return Outcome(answer, self._notifications, self._unanswered, unused, secs, is_late)

    def request(self, method: str, params: Json | None = None, *, until: float | None = None) -> Json:
        """Send a request; return the whole answer. Raises TimeoutError after cancelling the request."""
        params = dict(params or {})
        if self._is_stateless:
            envelope = {PROTOCOL_VERSION: self._revision, CLIENT_CAPABILITIES: self.capabilities, CLIENT_INFO: INFO}
            params["_meta"] = {**envelope, **params.get("_meta", {})}
        self._last_id += 1
        request_id = self._last_id
        until = time.monotonic() + PATIENCE_SECS if until is None else until
        try:
            self.connection.send({"id": request_id, "method": method, "params": params})
            while True:
                message = self.connection.receive(until)
                if message is None:
                    cancelled = {"requestId": request_id, "reason": "The time of the test is over."}
                    self.connection.send({"method": "notifications/cancelled", "params": cancelled})
                    raise TimeoutError
                if "method" not in message:
                    if message.get("id") == request_id:
                        return dict(message)
                elif "id" in message:
                    outcome = self._answer_to("", message["method"], message.get("params", {}))
                    self.connection.send({"id": message["id"], **outcome})
                elif len(self._notifications) < MAX_NOTIFICATIONS:
                    self._notifications.append(message)
        except NoAnswer as error:
            raise NoAnswer(f"{method}: {error}{self.connection.last_words()}") from error

    def _begin(self, answers: Mapping[str, Any]) -> None:
        self._answers = answers
        self._used: set[str] = set()
        self._unanswered: list[str] = []
        self._notifications: list[Json] = []

    def _called(self, params: Json, until: float) -> Json:
        answer = self.request("tools/call", params, until=until)
        for _ in range(MAX_ROUNDS):
            result = answer.get("result", {})
            if result.get("resultType") == "task":
                return self._followed(result["taskId"], until)
            if result.get("resultType") != "input_required":
                break
            answers, refusal = self._answers_to(result["inputRequests"])
            if refusal is not None:
                return {"error": refusal}  # this revision has no way to say so
            state = {"requestState": result["requestState"]} if "requestState" in result else {}
            answer = self.request("tools/call", {**params, "inputResponses": answers, **state}, until=until)
        return answer

    def _followed(self, task_id: str, until: float) -> Json:
        while True:
            answer = self.request("tasks/get", {"taskId": task_id}, until=until)
            task = answer.get("result", {})
            if "result" in task or "error" in task or "error" in answer:
                return {key: task[key] for key in ("result", "error") if key in task} or answer
            if task["status"] == "cancelled":
                return {"error": {"code": 0, "message": "The task was cancelled."}}
            if task.get("inputRequests"):
                answers, refusal = self._answers_to(task["inputRequests"])
                if refusal is not None:
                    self.request("tasks/cancel", {"taskId": task_id}, until=until)
                    return {"error": refusal}
                self.request("tasks/update", {"taskId": task_id, "inputResponses": answers}, until=until)
            time.sleep(POLL_SECS)

    def _answers_to(self, asked: Json) -> tuple[Json, Json | None]:
        """Return the answers, and the error if one of them is refused."""
        outcomes = {key: self._answer_to(key, each["method"], each.get("params", {})) for key, each in asked.items()}
        refusals = [outcome["error"] for outcome in outcomes.values() if "error" in outcome]
        return {key: outcome.get("result") for key, outcome in outcomes.items()}, next(iter(refusals), None)

    def _answer_to(self, key: str, method: str, params: Json) -> Json:
        """Return the result or the error for a question."""
        if method == "roots/list":
            return {"result": {"roots": [{"uri": Path(self._root).absolute().as_uri()}]}}
        if method not in (ELICIT, SAMPLE):
            return {"error": {"code": -32601, "message": f"This client does not answer {method}."}}
        fields = params.get("requestedSchema", {}).get("properties", {})
        asked = [block.get("text", "") for each in params.get("messages", ()) for block in blocks_of(each)]
        words = " ".join(map(str, [params.get("message", ""), *asked]))
        for name, answer in self._answers.items():
            if name == key or name in fields or (name and name.casefold() in words.casefold()):
                self._used.add(name)
                return {"result": _sampled(answer) if method == SAMPLE and isinstance(answer, str) else answer}
        self._unanswered.append(words[:SHOWN_CHARS])
        return {"result": CANCEL} if method == ELICIT else {"error": {"code": -1, "message": "There is no answer."}}


def _sampled(text: str) -> Json:
    content = {"type": "text", "text": text}
    return {"role": "assistant", "content": content, "model": "test", "stopReason": "endTurn"}
