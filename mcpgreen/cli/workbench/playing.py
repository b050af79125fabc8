"""Requests that the page plays: as a client of any revision, with its person in place of the user and the model."""

from __future__ import annotations

import time
from contextlib import suppress
from itertools import count

import gevent
from gevent.event import AsyncResult

from mcpgreen.cli.mcp_client import WITH_TASKS, Cancelled, Refused
from mcpgreen.cli.trying.local_client import LocalClient
from mcpgreen.cli.trying.person import CAPABILITIES
from mcpgreen.cli.workbench.streams import EventStream
from mcpgreen.engine.server import Server
from mcpgreen.protocol.revisions import BY_NAME, UI_DETAILS, UI_EXTENSION, Feature
from mcpgreen.text.json_types import Json

WITH_UI: Json = {"extensions": {UI_EXTENSION: UI_DETAILS}}
ALL: Json = {**CAPABILITIES, **WITH_UI}
TASKS: Json = WITH_TASKS["extensions"]
REPORTING = ("tools/call", "prompts/get", "resources/read")  # methods whose scripts may report progress


class Interaction:
    """A client with one request, and all that belongs to it: its retries, its questions, its task. The page is told all
    that happens, by the stream. Must be ended."""

    def __init__(self, server: Server, stream: EventStream, wanted: Json) -> None:
        method, params, revision = wanted["method"], wanted["params"], BY_NAME[wanted["revision"]]
        self._stream = stream
        self._questions: dict[int, AsyncResult] = {}
        self._next_key = count(1).__next__
        capabilities: Json = ALL if wanted["capabilities"] == "all" else {}
        if wanted["task"]:
            capabilities = {**capabilities, "extensions": {**capabilities.get("extensions", {}), **TASKS}}
        self._client = LocalClient(
            server,
            answer=self._ask,
            on_notification=self._tell,
            on_task=lambda task: stream.put({**task, "type": "task"}),
            revision=revision,
            capabilities=capabilities,
            log_level="debug",
        )
        if method in REPORTING:
            params = {**params, "_meta": {"progressToken": "workbench", **params.get("_meta", {})}}
        if method == "tools/call" and wanted["task"] and Feature.TASKS in revision.features:
            params = {"task": {}, **params}
        self._playing = gevent.spawn(self._play, method, params)

    def answer(self, key: int, answer: Json) -> bool:
        """Answer a question of the script. Return False if it is not open."""
        question = self._questions.get(key)
        if question is not None:
            question.set(answer)
        return question is not None

    def cancel(self) -> None:
        self._client.cancel()
        for question in self._questions.values():
            question.set_exception(Cancelled())

    def end(self) -> None:
        """The page is gone, or has all: the server cancels what is in flight."""
        self._playing.kill(block=False)
        self._client.close()

    def _play(self, method: str, params: Json) -> None:
        began_at = time.monotonic()
        outcome: Json = {"type": "cancelled"}
        with suppress(Cancelled):
            try:
                frame = self._client.play(method, params)
            except Refused as refused:  # a question has no answer
                frame = {"jsonrpc": "2.0", "id": None, "error": refused.error}
            outcome = {"type": "answer", "frame": frame}
        took_ms = round((time.monotonic() - began_at) * 1000, 1)
        self._stream.put({**outcome, "ms": took_ms, "call": self._client.call_number})
        self._stream.end()

    def _ask(self, method: str, params: Json) -> Json:
        key = self._next_key()
        question = self._questions[key] = AsyncResult()
        self._stream.put({"type": "question", "key": key, "method": method, "params": params})
        try:
            answer: Json = question.get()
            return answer
        finally:
            del self._questions[key]

    def _tell(self, notification: Json) -> None:
        if self._stream.has_room:
            self._stream.put({**notification.get("params", {}), "type": notification["method"]})
