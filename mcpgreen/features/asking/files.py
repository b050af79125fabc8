"""Elicitation by file, as scripts of older servers ask without an SDK: they write one file and wait for another.

`MCP_ELICIT_REQUEST_FILE` is `{"message", "schema", "mode"}`, or `{"message", "url", "mode": "url"}`, and
`MCP_ELICIT_RESPONSE_FILE` becomes `{"action", "content"}`. Nobody tells us that a script has written the first, so it
is looked for while the script runs. From there on it is a question like those on the control pipe.

Rule: a look waits for nothing, whatever lies there, and reads no more than a line on the control pipe may have. One
question is open at a time; who writes another one meanwhile does not wait for the answer to the first any more, and
must not take it for that to the second.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import gevent

from mcpgreen.features.call import Call
from mcpgreen.files.regular_files import existing_file
from mcpgreen.protocol.input import requests
from mcpgreen.protocol.input.shapes import ELICIT
from mcpgreen.running.scripts import scratch
from mcpgreen.running.scripts.replies import deliver
from mcpgreen.text import jsontext

if TYPE_CHECKING:
    from mcpgreen.features.asking.scripts import AskingScript
    from mcpgreen.running.scripts.scratch import CallFiles

Json = dict[str, Any]

LOOK_SECS = 0.1
SETTLED_SECS = 1.0  # what is no JSON by then, and has not changed, is not being written any more
NO_FIELDS: Json = {"type": "object", "properties": {}}
ACTION_OF = {"unsupported": "decline", "cancelled": "cancel"}  # "error" for whatever else brought no answer


class ElicitationFiles:
    """The two files of one run. They are looked at inside of `with`, if the client can be asked at all."""

    __slots__ = ("_begun", "_files", "_is_open", "_name", "_script", "_timer")

    def __init__(self, call: Call, files: CallFiles, script: Callable[[], AskingScript]) -> None:
        """`script` gives who asks for this run, once there is something to ask."""
        self._files = files
        self._script = script
        self._name = files.name_of(scratch.REQUEST_FILE)
        self._is_open = False
        self._begun: tuple[tuple[int, int, int], float] | None = None  # a file that is no JSON yet, and since when
        self._timer: Any = None
        if call.about_the_client["MCP_ELICIT_SUPPORTED"] == "1":
            self._timer = gevent.get_hub().loop.timer(LOOK_SECS, LOOK_SECS)

    def __enter__(self) -> None:
        if self._timer is not None:
            self._timer.start(self._look)

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.stop()
            self._timer.close()

    def _look(self) -> None:
        """On the hub."""
        status = None if self._is_open else self._found()
        if status is None or not self._script().has_room:
            return
        seen = status.st_ino, status.st_size, status.st_mtime_ns
        if self._begun is not None and self._begun[0] == seen:
            if time.monotonic() - self._begun[1] >= SETTLED_SECS:
                self._take(fault="it is not JSON")
            return
        try:
            with open(existing_file(self._name, dir_fd=self._files.directory.fd), "rb") as file:
                content = file.read(requests.MAX_ROUND_BYTES + 1)
        except OSError:
            return  # it is gone again
        if len(content) > requests.MAX_ROUND_BYTES:
            self._take(fault=f"it has more than {requests.MAX_ROUND_BYTES} bytes")
            return
        try:
            question = jsontext.loads(content)
        except ValueError:
            self._begun = seen, time.monotonic()
            return
        fault = "" if isinstance(question, dict) else "it must be an object with a message"
        self._take(question, size_bytes=len(content), fault=fault)

    def _found(self) -> os.stat_result | None:
        """What lies in the place of the request. Empty files are about to be written; other things are none."""
        try:
            status = os.stat(self._name, dir_fd=self._files.directory.fd, follow_symlinks=False)
        except OSError:
            return None
        return status if stat.S_ISREG(status.st_mode) and status.st_size else None

    def _take(self, question: Any = None, *, size_bytes: int = 0, fault: str) -> None:
        self._begun = None
        try:
            os.unlink(self._name, dir_fd=self._files.directory.fd)
        except OSError:
            return
        self._is_open = True
        if fault:
            self._script().refuse(fault, self._answer)
        else:
            self._script().begin({requests.NAMELESS: _request_of(question)}, None, self._answer, size_bytes=size_bytes)

    def _answer(self, statuses: Json) -> None:
        self._is_open = False
        if self._found() is None:
            answer = _answer_of(statuses.get(requests.NAMELESS, {}))
            deliver(os.fsdecode(self._files.place + scratch.RESPONSE_FILE), jsontext.dumps(answer))


def _request_of(question: Json) -> Json:
    """In the newest dialect. What is wrong with it is said by whoever asks."""
    params = {"mode": question.get("mode") or "form", "message": question.get("message")}
    if params["mode"] == "url":
        params["url"] = question.get("url")
    else:
        params["requestedSchema"] = question.get("schema") or NO_FIELDS
    return {"method": ELICIT, "params": params}


def _answer_of(status: Json) -> Json:
    kind = status.get("status", "error")
    if kind == "answered":
        return {"action": status["result"]["action"], "content": status["result"].get("content")}
    action = ACTION_OF.get(kind, "error")
    return {"action": action, "content": None, "reason": kind, "message": status.get("message", "")}
