"""Requests that the page plays: as a client of any revision, with its person in place of the user and the model.

An interaction is one request with all that belongs to it: its retries, its questions, its task.
"""

from __future__ import annotations

import time
from contextlib import suppress
from itertools import count
from typing import NamedTuple

import gevent
from gevent.event import AsyncResult

from mcpgreen.cli.trying.local_client import Cancelled, LocalClient, Refused
from mcpgreen.cli.trying.person import CAPABILITIES
from mcpgreen.cli.workbench.streams import EventStream
from mcpgreen.engine.server import Server
from mcpgreen.protocol.revisions import REVISIONS, UI_DETAILS, UI_EXTENSION, Feature, Revision
from mcpgreen.text.json_types import Json
from mcpgreen.text.uris import file_uri

WITH_UI: Json = {"extensions": {UI_EXTENSION: UI_DETAILS}}
ALL: Json = {**CAPABILITIES, **WITH_UI, "roots": {}}
REPORTING = ("tools/call", "prompts/get", "resources/read")  # methods whose scripts may report progress
UNSEEN = ("initialize", "logging/setLevel", "tasks/get")  # the page asked for none of these
KINDS = {"notifications/progress": "progress", "notifications/message": "log"}


class Wanted(NamedTuple):
    """What the page asks for."""

    method: str
    params: Json
    revision: Revision
    has_capabilities: bool
    is_task: bool

    def full_params(self) -> Json:
        params = dict(self.params)
        if self.method in REPORTING:
            params["_meta"] = {"progressToken": "workbench", **params.get("_meta", {})}
        if self.is_task and self.method == "tools/call" and Feature.TASKS in self.revision.features:
            params.setdefault("task", {})
        return params


class Interaction:
    """Tells the page all that happens, by its stream. Must be ended."""

    def __init__(self, server: Server, wanted: Wanted, stream: EventStream) -> None:
        self._stream = stream
        self._roots = [{"uri": file_uri(path)} for path in server.services.roots.paths]
        self._questions: dict[str, AsyncResult] = {}
        self._next_key = count(1).__next__
        self._client = LocalClient(
            server,
            answer=self._ask,
            on_notification=self._tell,
            on_sent=self._show_sent,
            on_task=lambda task: stream.put({"type": "task", **task}),
            has_tasks=wanted.is_task,
            revision=wanted.revision,
            capabilities=ALL if wanted.has_capabilities else {},
            log_level="debug",
        )
        self._greenlet = gevent.spawn(self._play, wanted)

    def answer(self, key: str, answer: Json) -> bool:
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
        self._greenlet.kill(block=False)
        self._client.close()

    def _play(self, wanted: Wanted) -> None:
        began_at = time.monotonic()
        outcome: Json = {"type": "cancelled"}
        with suppress(Cancelled):
            outcome = {"type": "answer", "frame": _played(self._client, wanted.method, wanted.full_params())}
        self._stream.put({**outcome, "ms": _ms_since(began_at), "call": self._client.call_number})
        self._stream.end()

    def _ask(self, method: str, params: Json) -> Json:
        if method == "roots/list":
            return {"result": {"roots": self._roots}}
        key = str(self._next_key())
        question = self._questions[key] = AsyncResult()
        self._stream.put({"type": "question", "key": key, "method": method, "params": params})
        try:
            answer: Json = question.get()
            return answer
        finally:
            del self._questions[key]

    def _tell(self, notification: Json) -> None:
        kind = KINDS.get(notification["method"])
        if kind is not None and self._stream.has_room:
            self._stream.put({"type": kind, **notification["params"]})

    def _show_sent(self, request: Json) -> None:
        if request["method"] not in UNSEEN:
            self._stream.put({"type": "sent", "frame": request})


def compared(server: Server, method: str, params: Json) -> Json:
    """Return the answer of each revision to a client without capabilities, one after the other."""
    answers: Json = {}
    for revision in REVISIONS:
        client = LocalClient(server, revision=revision, capabilities={})
        began_at = time.monotonic()
        try:
            frame = _played(client, method, params)
        finally:
            client.close()
        answers[revision.name] = {"frame": frame, "ms": _ms_since(began_at)}
    return answers


def _played(client: LocalClient, method: str, params: Json) -> Json:
    """Return the last response; the error as one if a question was refused."""
    try:
        return client.play(method, params)
    except Refused as refused:
        return {"jsonrpc": "2.0", "id": None, "error": refused.error}


def _ms_since(began_at: float) -> float:
    return round((time.monotonic() - began_at) * 1000, 1)
