"""Ask the client while the tool runs. A part of `mcp_tool`, loaded on demand.

A question goes out through the control pipe, and the server puts the reply into a file. A `*_request` function builds
a question for `ask`; the other functions ask one question and wait. A function that returns the answer itself raises a
`NotAnswered` if there is no answer.

Rules: the file is removed when `ask` ends. An answer is data from outside: if it does not fit, raise AskFailed.
"""

from __future__ import annotations

import itertools
import json
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

import mcp_tool

__all__ = ["Answer", "AskFailed", "AskTimeout", "CallCancelled", "Declined", "Dismissed", "NotAnswered", "Reply"]
__all__ += ["Sample", "Unsupported", "ask", "ask_string", "can_elicit", "can_sample", "choice", "confirm", "elicit"]
__all__ += ["elicit_url", "form_request", "input_required", "input_responses", "multi_choice", "request_state"]
__all__ += ["roots_request", "sample", "sampling_request", "titled_choice", "titled_multi_choice", "url_request"]

Json = dict[str, Any]

MAX_LINE_BYTES = 1 << 20
LOOK_SECS = 0.02  # between two looks whether there is a reply, or the call is cancelled
_numbers = itertools.count(1)

Titles = Mapping[str, str] | Iterable[tuple[str, str]]  # of options: by value, or pairs of value and title

SAMPLING_OPTIONS = ["system_prompt", "temperature", "stop_sequences", "model_preferences", "include_context"]
SAMPLING_OPTIONS += ["metadata", "tools", "tool_choice"]


class NotAnswered(Exception):
    """There is no answer. The subclasses say why."""

    __module__ = "mcp_tool"  # the model reads this name if the script does not catch the error


class Declined(NotAnswered):
    """The person said no."""


class Dismissed(NotAnswered):
    """The user dismissed the question."""


class AskTimeout(NotAnswered):
    """There was no answer in time."""


class Unsupported(NotAnswered):
    """The client does not support this question."""


class CallCancelled(NotAnswered):
    """The call was cancelled while it waited."""


class AskFailed(NotAnswered):
    """The client answered with an error, or the answer does not match the question."""


for _each in NotAnswered.__subclasses__():
    _each.__module__ = NotAnswered.__module__


_WHY_NOT: dict[str, tuple[type[NotAnswered], str]] = {
    "unsupported": (Unsupported, "The client does not support this question."),
    "timeout": (AskTimeout, "There was no answer in time."),
    "cancelled": (CallCancelled, "The call was cancelled."),
    "error": (AskFailed, "The question failed."),
}


class Answer(NamedTuple):
    """The answer to a form or a URL. `action` is accept, decline or cancel. Only an accepted form has content."""

    action: str
    content: Json | None = None

    @property
    def is_accepted(self) -> bool:
        return self.action == "accept"

    def content_or_raise(self) -> Json:
        """Return the values of the form. Raises Declined or Dismissed."""
        if self.action == "decline":
            raise Declined("The user declined to answer.")
        if self.action == "cancel":
            raise Dismissed("The user dismissed the question.")
        return self.content or {}


class Reply(NamedTuple):
    """The reply to one question. `status` is answered, unsupported, timeout, cancelled or error."""

    status: str
    result: Json
    message: str = ""

    def result_or_raise(self) -> Json:
        """Return the client's result, as in the protocol. Raises the fitting NotAnswered if there is none."""
        if self.status == "answered":
            return self.result
        kind, sentence = _WHY_NOT.get(self.status, _WHY_NOT["error"])
        raise kind(self.message or sentence)

    def answer(self) -> Answer:
        """Return the answer to a form or a URL. Raises NotAnswered."""
        said = self.result_or_raise()
        action, content = said.get("action"), said.get("content")
        if action not in ("accept", "decline", "cancel"):
            raise AskFailed("The client answered without accepting, declining or cancelling.")
        return Answer(action, content if isinstance(content, dict) and action == "accept" else None)


class Sample(NamedTuple):
    """The answer of the model: its text, and all of it as content blocks."""

    text: str
    content: list[Json]
    model: str
    stop_reason: str | None


def ask(requests: Mapping[str, Mapping[str, object]], timeout: float | None = None) -> dict[str, Reply]:
    """Ask several questions in one round, wait, and return the replies by the keys of the questions.

    Raises ValueError for invalid questions. A question without an answer raises nothing: its reply has a status.
    """
    if not requests:
        raise ValueError("ask: at least one question is required")
    if timeout is not None and not timeout > 0:
        raise ValueError("ask: timeout must be a positive number of seconds")
    prefix, stream = os.environ.get("MCP_ASK_REPLY"), os.environ.get("MCP_LOG_STREAM")
    staying = mcp_tool._staying
    if not (prefix and stream) and staying is None:
        return {key: Reply("unsupported", {}, "There is no client to ask.") for key in requests}
    path = f"{prefix}.{os.getpid()}.{next(_numbers)}"
    question: Json = {"ask": dict(requests), "reply": path}
    if timeout is not None:
        question["timeoutSecs"] = timeout
    line = mcp_tool._line(question).encode("ascii")
    if len(line) > MAX_LINE_BYTES:
        raise ValueError(f"ask: the questions are {len(line)} bytes long; the limit is {MAX_LINE_BYTES}")
    replies = _round_trip(str(stream), line, path) if staying is None else staying.ask(question)
    if replies is None:
        replies = Reply("cancelled", {})
    if isinstance(replies, Reply):
        return dict.fromkeys(requests, replies)
    by_key = {key: _reply(replies.get(key)) for key in requests}
    for reply in by_key.values():
        if reply.status == "invalid":
            raise ValueError(reply.message)
    return by_key


def input_required(requests: Mapping[str, Mapping[str, object]], state: str = "") -> None:
    """Print the questions as the result of the tool. End the script then: it is run again with `input_responses`."""
    mcp_tool.emit_json({"resultType": "input_required", "inputRequests": dict(requests), "requestState": state})


def input_responses() -> Json:
    """Return the answers to `input_required`, by key; empty when the tool runs for the first time."""
    return mcp_tool._document("MCP_INPUT_RESPONSES")


def request_state() -> str:
    """Return the state that the tool passed to `input_required`."""
    return str(mcp_tool._environ.get("MCP_REQUEST_STATE", ""))


def can_elicit(mode: str = "form") -> bool:
    """Tell whether the client shows forms (or, with "url", opens URLs)."""
    modes = mcp_tool._environ.get("MCP_ELICIT_MODES")
    if modes is None:
        return mode == "form" and mcp_tool._environ.get("MCP_ELICIT_SUPPORTED") == "1"
    return mode in modes.split()


def can_sample() -> bool:
    """Tell whether the client lets tools ask its model."""
    return bool(mcp_tool._environ.get("MCP_SAMPLING_SUPPORTED") == "1")


def form_request(message: str, schema: Mapping[str, object]) -> Json:
    """Return a form, as a question for `ask`."""
    if not isinstance(schema, Mapping) or not isinstance(schema.get("properties"), Mapping):
        raise ValueError("a form needs a schema with properties, one for each field")
    params = {"mode": "form", "message": message, "requestedSchema": {"type": "object", **schema}}
    return {"method": "elicitation/create", "params": params}


def url_request(message: str, url: str) -> Json:
    """Return a URL that the person should visit, as a question for `ask`."""
    return {"method": "elicitation/create", "params": {"mode": "url", "message": message, "url": url}}


def sampling_request(messages: str | Sequence[Mapping[str, object]], max_tokens: int, **options: object) -> Json:
    """Messages for the model, as a question for `ask`. A string is one message of the user."""
    if isinstance(messages, str):
        messages = [{"role": "user", "content": {"type": "text", "text": messages}}]
    params: Json = {"messages": list(messages), "maxTokens": max_tokens}
    for name, value in options.items():
        if name not in SAMPLING_OPTIONS:
            raise TypeError(f"unknown option {name!r}; use {', '.join(SAMPLING_OPTIONS)}")
        first, *others = name.split("_")
        params[first + "".join(map(str.title, others))] = value
    return {"method": "sampling/createMessage", "params": params}


def roots_request() -> Json:
    """Return the current roots of the client, as a question for `ask`."""
    return {"method": "roots/list", "params": {}}


def elicit(message: str, schema: Mapping[str, object], timeout: float | None = None) -> Answer:
    """Show a form. Raises AskTimeout, Unsupported, CallCancelled or AskFailed if the person did not decide."""
    return _ask_one(form_request(message, schema), _patience_secs(timeout)).answer()


def elicit_url(message: str, url: str, timeout: float | None = None) -> Answer:
    """Ask the person to visit a URL. Acceptance does not say what they did there. Raises the same as `elicit`."""
    return Answer(_ask_one(url_request(message, url), _patience_secs(timeout)).answer().action)


def ask_string(message: str, field: str = "value", timeout: float | None = None, **schema: object) -> str:
    """Ask for a line of text. More keywords go into the schema of the field, such as `minLength=3`."""
    value = _ask_field(message, field, {"type": "string", **schema}, timeout)
    return value if isinstance(value, str) else _misfit(field)


def confirm(message: str, timeout: float | None = None) -> bool:
    """Ask for yes or no. Declining to answer raises Declined and is not a no."""
    value = _ask_field(message, "confirmed", {"type": "boolean"}, timeout)
    return value if isinstance(value, bool) else _misfit("confirmed")


def choice(message: str, options: Iterable[str], timeout: float | None = None) -> str:
    """Ask for one of the options."""
    return _pick(message, _options(options), "enum", timeout)[0]


def titled_choice(message: str, options: Titles, timeout: float | None = None) -> str:
    """Ask for one of the options, which are shown by their titles, and return its value."""
    return _pick(message, _titles(options), "oneOf", timeout)[0]


def multi_choice(message: str, options: Iterable[str], timeout: float | None = None, **schema: object) -> list[str]:
    """Ask for any number of the options. More keywords go into the schema of the field, such as `minItems=1`."""
    return _pick(message, _options(options), "enum", timeout, schema)


def titled_multi_choice(message: str, options: Titles, timeout: float | None = None, **schema: object) -> list[str]:
    """Ask for any number of the options, which are shown by their titles, and return their values."""
    return _pick(message, _titles(options), "anyOf", timeout, schema)


def sample(
    messages: str | Sequence[Mapping[str, object]], max_tokens: int, timeout: float | None = None, **options: object
) -> Sample:
    """Ask the client's model. Raises AskTimeout, Unsupported, CallCancelled or AskFailed."""
    said = _ask_one(sampling_request(messages, max_tokens, **options), timeout).result_or_raise()
    content = said.get("content")
    blocks = [block for block in (content if isinstance(content, list) else [content]) if isinstance(block, dict)]
    if not blocks:
        raise AskFailed("The model's answer has no content.")
    text = "".join(block["text"] for block in blocks if isinstance(block.get("text"), str))
    return Sample(text, blocks, str(said.get("model", "")), said.get("stopReason"))


def _round_trip(stream: str, line: bytes, path: str) -> Json | Reply:
    """Return the replies of the server by key, or one reply for all questions if there are none."""
    replies = None
    try:
        mcp_tool._send(stream, line)
        while not os.path.exists(path):
            if mcp_tool.is_cancelled():
                return Reply("cancelled", {})
            time.sleep(LOOK_SECS)
        with open(path, "rb") as file:  # it appears complete
            replies = json.load(file)
    except OSError as error:
        return Reply("error", {}, f"The question cannot be sent to the server: {error.strerror}.")
    except ValueError:
        pass
    finally:
        if os.path.lexists(path):
            os.unlink(path)
    return replies if isinstance(replies, dict) else Reply("error", {}, "The server's reply is not a JSON object.")


def _reply(said: object) -> Reply:
    if not isinstance(said, dict) or not isinstance(said.get("status"), str):
        return Reply("error", {}, "The server's reply does not include this question.")
    result = said.get("result")
    if said["status"] != "answered":
        return Reply(said["status"], {}, str(said.get("message") or ""))
    return Reply("answered", result) if isinstance(result, dict) else Reply("error", {}, "The answer is not an object.")


def _ask_one(request: Json, timeout: float | None) -> Reply:
    return ask({"question": request}, timeout)["question"]


def _patience_secs(timeout: float | None) -> float | None:
    """Return the time that a person has: of the script, else of the configuration, else None for the server's limit."""
    configured = os.environ.get("MCPBASH_ELICITATION_TIMEOUT", "")
    if timeout is not None or not configured.replace(".", "", 1).isdecimal():
        return timeout
    return float(configured) or None


def _ask_field(message: str, field: str, schema: Json, timeout: float | None) -> object:
    """Return the value of the only field of a form, which is required."""
    whole = {"type": "object", "properties": {field: schema}, "required": [field]}
    return elicit(message, whole, timeout).content_or_raise().get(field)


def _pick(
    message: str, options: list[Any], keyword: str, timeout: float | None, schema: Json | None = None
) -> list[str]:
    """Ask for one of the options, or for any number of them if there is a schema for the list."""
    if not options:
        raise ValueError("a choice needs at least one option")
    known = [each["const"] if isinstance(each, dict) else each for each in options]
    option = {keyword: options} if keyword == "anyOf" else {"type": "string", keyword: options}
    if schema is None:
        chosen: Any = [_ask_field(message, "choice", option, timeout)]
    else:
        chosen = _ask_field(message, "choices", {"type": "array", "items": option, **schema}, timeout)
    if not isinstance(chosen, list) or not all(value in known for value in chosen):
        _misfit("choice" if schema is None else "choices")
    return chosen


def _options(options: Iterable[str]) -> list[str]:
    return [options] if isinstance(options, str) else list(options)


def _titles(options: Titles) -> list[Json]:
    pairs = options.items() if isinstance(options, Mapping) else options
    return [{"const": value, "title": title} for value, title in pairs]


def _misfit(field: str) -> NoReturn:
    raise AskFailed(f"The client accepted the form, but its {field} does not match the question.")
