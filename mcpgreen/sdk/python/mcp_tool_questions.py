"""Questions to the person and to the model behind the client. A part of `mcp_tool`, loaded on demand.

A `*_request` function builds a question for `ask`; the others ask one question and wait. Functions that return the
answer itself raise a `NotAnswered` when there is none.

Rule: an answer comes from outside. What does not fit the question is AskFailed, never a value.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from mcp_tool_asking import Answer, AskFailed, Reply, ask

__all__ = [
    "Sample",
    "ask_string",
    "can_elicit",
    "can_sample",
    "choice",
    "confirm",
    "elicit",
    "elicit_url",
    "form_request",
    "multi_choice",
    "roots_request",
    "sample",
    "sampling_request",
    "titled_choice",
    "titled_multi_choice",
    "url_request",
]

Json = dict[str, Any]
Titles = Mapping[str, str] | Iterable[tuple[str, str]]

SAMPLING_OPTIONS = {
    "system_prompt": "systemPrompt",
    "temperature": "temperature",
    "stop_sequences": "stopSequences",
    "model_preferences": "modelPreferences",
    "include_context": "includeContext",
    "metadata": "metadata",
    "tools": "tools",
    "tool_choice": "toolChoice",
}


class Sample(NamedTuple):
    """What the model said: its text, and the whole of it as content blocks."""

    text: str
    content: list[Json]
    model: str
    stop_reason: str | None


def can_elicit(mode: str = "form") -> bool:
    """Whether the client shows forms (or, with "url", opens addresses)."""
    modes = os.environ.get("MCP_ELICIT_MODES")
    if modes is None:
        return mode == "form" and os.environ.get("MCP_ELICIT_SUPPORTED") == "1"
    return mode in modes.split()


def can_sample() -> bool:
    """Whether the client lets its model be asked."""
    return os.environ.get("MCP_SAMPLING_SUPPORTED") == "1"


def form_request(message: str, schema: Mapping[str, Any]) -> Json:
    """A form, as a question for `ask`."""
    if not isinstance(schema, Mapping) or not isinstance(schema.get("properties"), Mapping):
        raise ValueError("a form needs a schema with properties, one for each field")
    params = {"mode": "form", "message": message, "requestedSchema": {"type": "object", **schema}}
    return {"method": "elicitation/create", "params": params}


def url_request(message: str, url: str) -> Json:
    """An address for the person to visit, as a question for `ask`."""
    return {"method": "elicitation/create", "params": {"mode": "url", "message": message, "url": url}}


def sampling_request(messages: str | Sequence[Mapping[str, Any]], max_tokens: int, **options: Any) -> Json:
    """Work for the model, as a question for `ask`. A string is one message of the user's."""
    if isinstance(messages, str):
        messages = [{"role": "user", "content": {"type": "text", "text": messages}}]
    params: Json = {"messages": list(messages), "maxTokens": max_tokens}
    for name, value in options.items():
        if name not in SAMPLING_OPTIONS:
            raise TypeError(f"unknown option {name!r}; the options are {', '.join(SAMPLING_OPTIONS)}")
        params[SAMPLING_OPTIONS[name]] = value
    return {"method": "sampling/createMessage", "params": params}


def roots_request() -> Json:
    """The roots as the client has them now, as a question for `ask`."""
    return {"method": "roots/list", "params": {}}


def elicit(message: str, schema: Mapping[str, Any], timeout: float | None = None) -> Answer:
    """Show a form. Raises AskTimeout, Unsupported, CallCancelled or AskFailed when the person never decided."""
    return _ask_one(form_request(message, schema), _patience_secs(timeout)).answer()


def elicit_url(message: str, url: str, timeout: float | None = None) -> Answer:
    """Ask the person to visit an address. Accepted does not tell what they did there. Raises as `elicit`."""
    return Answer(_ask_one(url_request(message, url), _patience_secs(timeout)).answer().action)


def ask_string(message: str, field: str = "value", timeout: float | None = None, **schema: Any) -> str:
    """A line of text. More keywords go into the schema of the field, such as `minLength=3`."""
    value = _ask_field(message, field, {"type": "string", **schema}, timeout)
    return value if isinstance(value, str) else _misfit(field)


def confirm(message: str, timeout: float | None = None) -> bool:
    """Yes or no. Someone who declines to answer has said neither."""
    value = _ask_field(message, "confirmed", {"type": "boolean"}, timeout)
    return value if isinstance(value, bool) else _misfit("confirmed")


def choice(message: str, options: Iterable[str], timeout: float | None = None) -> str:
    """One of the options."""
    known = _options(options)
    return _chosen(_ask_field(message, "choice", {"type": "string", "enum": known}, timeout), known)


def titled_choice(message: str, options: Titles, timeout: float | None = None) -> str:
    """The value of one of the options, which are shown by their titles."""
    titles = _titles(options)
    return _chosen(_ask_field(message, "choice", {"type": "string", "oneOf": titles}, timeout), _values(titles))


def multi_choice(message: str, options: Iterable[str], timeout: float | None = None, **schema: Any) -> list[str]:
    """Some of the options, maybe none. More keywords go into the schema of the field, such as `minItems=1`."""
    known = _options(options)
    items = {"type": "string", "enum": known}
    return _all_chosen(_ask_field(message, "choices", {"type": "array", "items": items, **schema}, timeout), known)


def titled_multi_choice(message: str, options: Titles, timeout: float | None = None, **schema: Any) -> list[str]:
    """The values of some of the options, which are shown by their titles."""
    titles = _titles(options)
    field = {"type": "array", "items": {"anyOf": titles}, **schema}
    return _all_chosen(_ask_field(message, "choices", field, timeout), _values(titles))


def sample(
    messages: str | Sequence[Mapping[str, Any]], max_tokens: int, timeout: float | None = None, **options: Any
) -> Sample:
    """Let the client's model answer. Raises AskTimeout, Unsupported, CallCancelled or AskFailed."""
    said = _ask_one(sampling_request(messages, max_tokens, **options), timeout).result_or_raise()
    content = said.get("content")
    blocks = [block for block in (content if isinstance(content, list) else [content]) if isinstance(block, dict)]
    if not blocks:
        raise AskFailed("The model's answer has no content.")
    text = "".join(block["text"] for block in blocks if isinstance(block.get("text"), str))
    return Sample(text, blocks, str(said.get("model", "")), said.get("stopReason"))


def _ask_one(request: Json, timeout: float | None) -> Reply:
    return ask({"question": request}, timeout)["question"]


def _patience_secs(timeout: float | None) -> float | None:
    """How long a person has: what the script says, else what is configured for it, else None for the server's limit."""
    configured = os.environ.get("MCPBASH_ELICITATION_TIMEOUT", "")
    if timeout is not None or not configured.replace(".", "", 1).isdecimal():
        return timeout
    return float(configured) or None


def _ask_field(message: str, field: str, schema: Json, timeout: float | None) -> Any:
    """The value of the only field of a form, which is required."""
    whole = {"type": "object", "properties": {field: schema}, "required": [field]}
    return elicit(message, whole, timeout).content_or_raise().get(field)


def _options(options: Iterable[str]) -> list[str]:
    known = [options] if isinstance(options, str) else list(options)
    if not known:
        raise ValueError("a choice needs at least one option")
    return known


def _titles(options: Titles) -> list[Json]:
    pairs = list(options.items() if isinstance(options, Mapping) else options)
    if not pairs:
        raise ValueError("a choice needs at least one option")
    return [{"const": value, "title": title} for value, title in pairs]


def _values(titles: list[Json]) -> list[str]:
    return [each["const"] for each in titles]


def _chosen(value: Any, known: list[str]) -> str:
    return value if isinstance(value, str) and value in known else _misfit("choice")


def _all_chosen(values: Any, known: list[str]) -> list[str]:
    return values if isinstance(values, list) and all(value in known for value in values) else _misfit("choices")


def _misfit(field: str) -> Any:
    raise AskFailed(f"The client accepted the form, but its {field} does not fit the question.")
