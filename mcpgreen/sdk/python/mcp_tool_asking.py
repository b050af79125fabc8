"""Ask the client while the tool runs: questions out through the control pipe, replies in through a FIFO.

A part of `mcp_tool`, loaded on demand. What the questions look like is in `mcp_tool_questions`; here is the way there
and back, and what may come of a question.

Rule: the FIFO is open for reading before the question is sent, so that the server never finds it without a reader; and
it is gone when `ask` returns, however it returns.
"""

from __future__ import annotations

import itertools
import json
import os
import select
import stat
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import mcp_tool

__all__ = [
    "Answer",
    "AskFailed",
    "AskTimeout",
    "CallCancelled",
    "Declined",
    "Dismissed",
    "NotAnswered",
    "Reply",
    "Unsupported",
    "ask",
    "input_required",
    "input_responses",
    "request_state",
]

Json = dict[str, Any]

MAX_LINE_BYTES = 1 << 20
LOOK_SECS = 0.1  # how often to see whether the call is cancelled
_numbers = itertools.count(1)


class NotAnswered(Exception):
    """There is no answer to work with. The subclasses say why."""

    __module__ = "mcp_tool"  # of an error that nobody catches, the model reads this name


class Declined(NotAnswered):
    """The person said no."""

    __module__ = "mcp_tool"


class Dismissed(NotAnswered):
    """The person closed the question without an answer."""

    __module__ = "mcp_tool"


class AskTimeout(NotAnswered):
    """Nobody answered in time."""

    __module__ = "mcp_tool"


class Unsupported(NotAnswered):
    """This client cannot be asked this."""

    __module__ = "mcp_tool"


class CallCancelled(NotAnswered):
    """The call was cancelled while it waited."""

    __module__ = "mcp_tool"


class AskFailed(NotAnswered):
    """The client answered with an error, or with what makes no sense."""

    __module__ = "mcp_tool"


_WHY_NOT: dict[str, tuple[type[NotAnswered], str]] = {
    "unsupported": (Unsupported, "This client cannot be asked this."),
    "timeout": (AskTimeout, "Nobody answered in time."),
    "cancelled": (CallCancelled, "The call was cancelled."),
    "error": (AskFailed, "Asking failed."),
}


class Answer(NamedTuple):
    """What became of a form or a URL: `action` is accept, decline or cancel. Only an accepted form has content."""

    action: str
    content: Json | None = None

    @property
    def is_accepted(self) -> bool:
        return self.action == "accept"

    def content_or_raise(self) -> Json:
        """The values of the form. Raises Declined or Dismissed."""
        if self.action == "decline":
            raise Declined("The person declined to answer.")
        if self.action == "cancel":
            raise Dismissed("The person closed the question without an answer.")
        return self.content or {}


class Reply(NamedTuple):
    """What became of one question. `status` is answered, unsupported, timeout, cancelled or error."""

    status: str
    result: Json
    message: str = ""

    def result_or_raise(self) -> Json:
        """What the client said, in the words of the protocol. Raises what fits when it said nothing."""
        if self.status == "answered":
            return self.result
        kind, sentence = _WHY_NOT.get(self.status, _WHY_NOT["error"])
        raise kind(self.message or sentence)

    def answer(self) -> Answer:
        """What became of a form or a URL."""
        said = self.result_or_raise()
        action, content = said.get("action"), said.get("content")
        if action not in ("accept", "decline", "cancel"):
            raise AskFailed("The client answered without accepting, declining or cancelling.")
        return Answer(action, content if isinstance(content, dict) and action == "accept" else None)


def ask(requests: Mapping[str, Mapping[str, Any]], timeout: float | None = None) -> dict[str, Reply]:
    """Ask several questions in one round, and wait. The replies, by the keys of the questions.

    Raises ValueError for what makes no sense, and nothing for questions that were not answered: each reply tells.
    """
    if not requests:
        raise ValueError("ask: at least one question is needed")
    if timeout is not None and not timeout > 0:
        raise ValueError("ask: timeout must be a positive number of seconds")
    prefix, stream = os.environ.get("MCP_ASK_REPLY"), os.environ.get("MCP_LOG_STREAM")
    if not prefix or not stream:
        return {key: Reply("unsupported", {}, "Nobody can be asked here.") for key in requests}
    path = f"{prefix}.{os.getpid()}.{next(_numbers)}"
    question: Json = {"ask": dict(requests), "reply": path}
    if timeout is not None:
        question["timeoutSecs"] = timeout
    line = mcp_tool._line(question).encode("ascii")
    if len(line) > MAX_LINE_BYTES:
        raise ValueError(f"ask: the questions are {len(line)} bytes long; {MAX_LINE_BYTES} are the limit")
    replies = _round_trip(stream, line, path)
    if isinstance(replies, Reply):
        return dict.fromkeys(requests, replies)
    by_key = {key: _reply(replies.get(key)) for key in requests}
    for reply in by_key.values():
        if reply.status == "invalid":
            raise ValueError(reply.message)
    return by_key


def input_required(requests: Mapping[str, Mapping[str, Any]], state: str = "") -> None:
    """Print what the tool needs to know, and go on; leave then. The tool is run again with `input_responses`."""
    mcp_tool.emit_json({"resultType": "input_required", "inputRequests": dict(requests), "requestState": state})


def input_responses() -> Json:
    """What the client answered to `input_required`, by key; empty when the tool runs for the first time."""
    return mcp_tool._document("MCP_INPUT_RESPONSES")


def request_state() -> str:
    """What the tool gave `input_required` as its state."""
    return os.environ.get("MCP_REQUEST_STATE", "")


def _round_trip(stream: str, line: bytes, path: str) -> Json | Reply:
    """What the server replies, by key; or one reply to all questions, when it says nothing that makes sense."""
    fifo = _open_fifo(path)
    try:
        mcp_tool._send(stream, line)
        text = _from_file(path) if fifo is None else _from_fifo(fifo)
    except OSError as error:
        return Reply("error", {}, f"The server cannot be asked: {error.strerror}.")
    finally:
        if fifo is not None:
            os.close(fifo)
        if os.path.lexists(path):
            os.unlink(path)
    if text is None:
        return Reply("cancelled", {})
    try:
        replies = json.loads(text)
    except ValueError:
        replies = None
    return replies if isinstance(replies, dict) else Reply("error", {}, "The server's reply makes no sense.")


def _open_fifo(path: str) -> int | None:
    """The reading end of a new FIFO; None where there are none, and then the server makes a file of that name."""
    try:
        os.mkfifo(path, 0o600)
    except (AttributeError, OSError):
        return None
    # Without waiting for the other side, which is told only after this where to write.
    return os.open(path, os.O_RDONLY | os.O_NONBLOCK)


def _from_fifo(fifo: int) -> bytes | None:
    """All that comes until the writer closes; None when the call is cancelled first."""
    text = b""
    while True:
        is_ready = bool(select.select([fifo], [], [], LOOK_SECS)[0])
        try:
            chunk = os.read(fifo, 1 << 16)
        except BlockingIOError:  # there is a writer, who has not written yet
            chunk, is_ready = b"", False
        else:
            if text and not chunk:
                return text
        text += chunk
        if not text and mcp_tool.is_cancelled():
            return None
        if is_ready and not chunk:
            time.sleep(LOOK_SECS)  # no writer yet, or one that left without a word; select does not wait for another


def _from_file(path: str) -> bytes | None:
    while not (os.path.exists(path) and stat.S_ISREG(os.stat(path).st_mode)):
        if mcp_tool.is_cancelled():
            return None
        time.sleep(LOOK_SECS)
    with open(path, "rb") as file:  # it appeared whole
        return file.read()


def _reply(said: Any) -> Reply:
    if not isinstance(said, dict) or not isinstance(said.get("status"), str):
        return Reply("error", {}, "The server's reply lacks this question.")
    result = said.get("result")
    if said["status"] != "answered":
        return Reply(said["status"], {}, str(said.get("message") or ""))
    return Reply("answered", result) if isinstance(result, dict) else Reply("error", {}, "The answer is not an object.")
