"""What people type: values for arguments, and answers to a script's questions.

Values are `key=value` by the schema, `key:=JSON`, and `@FILE` for a value from a file. Answers come from `--answer`, or
from a person at the terminal, who fills in forms field by field, opens URLs, and types what a model would say.
Questions go to stderr, because stdout is for the result.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from functools import partial
from itertools import repeat
from typing import Any

import gevent

from mcpgreen import journal
from mcpgreen.catalog.descriptions.metadata import is_instant
from mcpgreen.cli.commands import Options
from mcpgreen.cli.mcp_client import Answer, sampled, unknown
from mcpgreen.cli.output import tell
from mcpgreen.errors import McpgreenError, UsageError
from mcpgreen.protocol.input.requests import ELICIT, SAMPLE, blocks_of, problems_with_form
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

CAPABILITIES: Json = {"elicitation": {"form": {}, "url": {}}, "sampling": {}}
DECLINE = "!"
SAMPLED = "sampling"  # the key of `--answer` for what a model would say
# What a text has to be, and whether it is: a check returns something empty, or raises ValueError.
FORMATS: dict[str, tuple[str, Callable[[str], object]]] = {
    "email": ("an email address", re.compile(r"[^@\s]+@[^@\s]+").fullmatch),
    "uri": ("a URI, as in https://example.com", re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+").fullmatch),
    "date": ("a date, written YYYY-MM-DD", date.fromisoformat),
    "date-time": ("a date and time, written YYYY-MM-DDThh:mm:ssZ", is_instant),
}
CANCEL: Json = {"result": {"action": "cancel"}}
_DECLINED = object()  # instead of a value: the person declines the form
REFUSAL: Json = {"error": {"code": -1, "message": "User rejected sampling request"}}

MAX_FILE_BYTES = 10 << 20
TYPES = {"integer": (int,), "number": (int, float), "array": (list,), "object": (dict,)}
TRUTHS = {"true": True, "yes": True, "y": True, "on": True, "1": True}
TRUTHS |= {"false": False, "no": False, "n": False, "off": False, "0": False}


def arguments_of(text: str, given: str = "--args") -> Json:
    """Return the arguments in a text, for instance that of `--args`. Raises McpgreenError."""
    given = f"--args {text}" if text.startswith("@") else given
    try:
        value = jsontext.loads(content_of(text))
    except UsageError as error:
        raise McpgreenError(f"--args {error}") from error
    except ValueError as error:
        raise McpgreenError(f"{given} is not valid JSON: {error}") from error
    if not isinstance(value, dict):
        raise McpgreenError(f"{given} must be a JSON object.")
    return value


def calls_of(params: Json, options: Options, properties: Json) -> Iterator[Json]:
    """Yield the call as often as `--repeat` says; with `--stay`, also one for each line of stdin."""
    if not re.fullmatch("[1-9][0-9]{0,5}", options["--repeat"]):
        raise UsageError("--repeat must be a number from 1 to 999999.")
    yield from repeat(params, int(options["--repeat"]))
    in_thread = gevent.get_hub().threadpool.apply  # the process goes on while a person types
    while options["--stay"] and (typed := in_thread(sys.stdin.buffer.readline, (MAX_FILE_BYTES,))):
        try:
            line = typed.decode("utf-8")
            is_json = line.lstrip().startswith("{")
            arguments = arguments_of(line, "The line") if is_json else values_of(shlex.split(line), properties)
        except (McpgreenError, ValueError) as error:
            journal.warning("%s", error)
        else:
            yield {**params, "arguments": arguments}


def values_of(words: Sequence[str], properties: Json) -> Json:
    """Return the values that the words give. For an array, each word adds an element. `a.b` is the member `b` of an
    object `a`, unless the schema has such a name. Raises UsageError."""
    values: Json = {}
    for word in words:
        key, equals, text = word.partition("=")
        if not equals or not key or key == ":":
            raise UsageError(f"{word}: write key=value, key:=JSON, or key=@FILE.")
        name, members, known = key.removesuffix(":"), values, properties
        while name not in known and name.partition(".")[0] in known and "." in name:
            outer, _, name = name.partition(".")
            known = _members_of(_schema_of(known[outer]))
            members = members.setdefault(outer, {})
            if not isinstance(members, dict):
                raise UsageError(f"{word}: {outer} already has a value; set its members or the whole value, not both.")
        if key.endswith(":"):
            try:
                members[name] = jsontext.loads(content_of(text))
            except ValueError as error:
                raise UsageError(f"{key}= is not valid JSON: {error}.") from error
            continue
        about = _schema_of(known.get(name))
        value = typed(key, content_of(text), about)
        if "array" in _types_of(about) and not isinstance(value, list):
            members.setdefault(name, []).append(value)
        else:
            members[name] = value
    return values


def _members_of(about: Json) -> Json:
    branches = [about, *(_schema_of(each) for each in about.get("anyOf") or ())]
    return next((each["properties"] for each in branches if isinstance(each.get("properties"), dict)), {})


def typed(key: str, text: str, about: Json) -> Any:
    """Return the text as a value of the first type in its schema that fits; for an array, as one element."""
    kinds = _types_of(about)
    if "array" in kinds and not text.lstrip().startswith("["):
        return typed(key, text, _schema_of(about.get("items")))
    for kind in kinds:
        if kind == "string":
            return text
        try:
            return _as(kind, text)
        except ValueError:
            continue
    if kinds:
        raise UsageError(f"{key}={text}: this is not a valid {' or '.join(kinds)}.")
    return text


def _as(kind: str, text: str) -> Any:
    if kind == "boolean" and text.lower() in TRUTHS:
        return TRUTHS[text.lower()]
    if kind == "null" and text in ("", "null"):
        return None
    value = jsontext.loads(text) if kind in TYPES else None
    if value is None or type(value) not in TYPES[kind]:
        raise ValueError(text)
    return value


def _types_of(about: Json) -> list[str]:
    """Return the types that a schema and its alternatives name. "string" comes last, because every text fits it."""
    named = about.get("type", [])
    kinds = [named] if isinstance(named, str) else [kind for kind in named if isinstance(kind, str)]
    for key in ("anyOf", "oneOf"):
        for option in about.get(key) or []:
            kinds += _types_of(_schema_of(option))
    if not kinds and isinstance(about.get("properties"), dict):
        kinds = ["object"]
    return sorted(dict.fromkeys(kinds), key=lambda kind: kind == "string")


def _schema_of(about: object) -> Json:
    return about if isinstance(about, dict) else {}


def content_of(text: str) -> str:
    """Return the text itself, or the content of the file that @FILE names."""
    if not text.startswith("@"):
        return text
    try:
        with open(text[1:], "rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
        if len(content) > MAX_FILE_BYTES:
            raise UsageError(f"{text}: the file is larger than {MAX_FILE_BYTES} bytes.")
        return content.decode("utf-8")
    except OSError as error:
        raise UsageError(f"{text}: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{text}: the file is not UTF-8.") from error


def answers_from(words: Sequence[str]) -> dict[str, Any]:
    """Return how a client answers: with the given words if there are some, else as a person at the terminal says, or
    else not at all."""
    answer: Answer = partial(answer_prepared, words) if words else answer_at_terminal
    values_of(words, {})  # refuse a word that is not key=value before anything runs
    is_able = words or (sys.stdin.isatty() and sys.stderr.isatty())
    return {"answer": answer, "capabilities": CAPABILITIES} if is_able else {}


def answer_prepared(words: Sequence[str], method: str, params: Json) -> Json:
    """Answer with the words that were given with the command."""
    if method == SAMPLE:
        text = values_of(words, {}).get(SAMPLED)
        return {"result": sampled(text)} if isinstance(text, str) else _unanswered(method, [SAMPLED], REFUSAL)
    if method != ELICIT or params.get("mode") == "url":
        return _unanswered(method, [], {"result": {"action": "decline"}})
    schema = params["requestedSchema"]
    fields: Json = schema["properties"]
    named = [word for word in words if word.partition("=")[0].rstrip(":") in fields]
    try:
        defaults = {name: about["default"] for name, about in fields.items() if "default" in about}
        given = {**defaults, **values_of(named, fields)}
    except UsageError as error:
        _say(f"--answer {error}")
        return CANCEL
    content = {name: given[name] for name in fields if name in given}
    problems = problems_with_form(schema, content)
    if problems:
        missing = [name for name in schema.get("required", ()) if name not in content]
        _say(f"The answers do not match the form: {'; '.join(problems)}.")
        return _unanswered(method, missing, CANCEL)
    return {"result": {"action": "accept", "content": content}}


def _unanswered(method: str, keys: Sequence[str], answer: Json) -> Json:
    hint = "".join(f" --answer {key}=VALUE" for key in keys)
    _say(f"The script's question ({method}) was declined." + (f" To answer it, add:{hint}" if hint else ""))
    return answer


def answer_at_terminal(method: str, params: Json) -> Json:
    try:
        if method == SAMPLE:
            return _sample(params)
        if method != ELICIT:
            return unknown(method)
        return {"result": _visit(params) if params.get("mode") == "url" else _fill_in(params)}
    except EOFError:
        _say("")
        return REFUSAL if method == SAMPLE else CANCEL


def _fill_in(params: Json) -> Json:
    schema = params["requestedSchema"]
    required = schema.get("required", ())
    _say(f"\n{params['message']}")
    _say(f"(Press Return for the value in brackets, {DECLINE} to decline, Ctrl-D to cancel.)")
    content: Json = {}
    for name, about in schema["properties"].items():
        value = _ask_field(name, about, is_required=name in required)
        if value is _DECLINED:
            return {"action": "decline"}
        if value is not None:
            content[name] = value
    return {"action": "accept", "content": content}


def _ask_field(name: str, about: Json, *, is_required: bool) -> Any:
    """Ask for a value until it fits. Return None if it is left out."""
    options = _options(about)
    _say("")
    for number, (value, title) in enumerate(options, start=1):
        _say(f"  {number}. {title}" + (f" ({value})" if title != value else ""))
    label = str(about.get("title") or name)
    if about.get("description"):
        label += f" ({about['description']})"
    label += {"boolean": " yes/no", "array": ", numbers or names separated by commas"}.get(about["type"], "")
    default = about.get("default")
    shown = f" [{_shown(default)}]" if default is not None else "" if is_required else " []"
    while True:
        text = _read(f"{label}{shown}: ").strip()
        if text == DECLINE:
            return _DECLINED
        if not text and (default is not None or not is_required):
            return default
        try:
            value = _chosen(name, text, about, options)
        except UsageError as error:
            _say(str(error))
            continue
        problems = problems_with_form({"properties": {name: about}}, {name: value})
        form = about.get("format", "")
        if not problems and isinstance(value, str) and not has_format(value, form):
            problems = [f"{name} must be {FORMATS[form][0]}, got {value}"]
        if not problems and text:
            return value
        _say("; ".join(problems) or f"{label} is required.")


def _visit(params: Json) -> Json:
    _say(f"\n{params['message']}\n\n  {params['url']}\n")
    is_agreed = _read("Open this URL, then answer yes, or no to decline: ").strip().lower() in ("y", "yes")
    return {"action": "accept" if is_agreed else "decline"}


def _sample(params: Json) -> Json:
    _say("\nThe script asks a model:")
    if params.get("systemPrompt"):
        _say(f"[system] {params['systemPrompt']}")
    for message in params.get("messages", ()):
        for block in blocks_of(message):
            _say(f"[{message.get('role')}] {block.get('text', '(' + str(block.get('type')) + ')')}")
    text = _read("Answer for the model (press Return to decline): ").strip()
    return {"result": sampled(text)} if text else REFUSAL


def _options(about: Json) -> list[tuple[str, str]]:
    """Return the choices of a field: pairs of value and title."""
    holder = about.get("items", {}) if about["type"] == "array" else about
    titled = holder.get("oneOf") or holder.get("anyOf")
    if titled:
        return [(each["const"], each["title"]) for each in titled]
    values = holder.get("enum", [])
    names = holder.get("enumNames") or values
    return [(value, names[index] if index < len(names) else value) for index, value in enumerate(values)]


def _chosen(name: str, text: str, about: Json, options: Sequence[tuple[str, str]]) -> Any:
    """Return the value of a typed text. A choice can be typed as its number, value or title."""
    if not options:
        return typed(name, text, about)
    by_word = {title: value for value, title in options} | {value: value for value, _ in options}
    by_word |= {str(number): value for number, (value, _) in enumerate(options, start=1) if str(number) not in by_word}
    if about["type"] == "array":
        return [by_word.get(word.strip(), word.strip()) for word in text.split(",") if word.strip()]
    return by_word.get(text, text)


def has_format(text: str, form: str) -> bool:
    """Check a format, which is up to clients. A format that MCP does not know fits everything."""
    try:
        return form not in FORMATS or bool(FORMATS[form][1](text))
    except ValueError:
        return False


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _say(text: str) -> None:
    tell(f"{text}\n")


def _read(prompt: str) -> str:
    """Read a line from the terminal, in a thread, so that the server goes on meanwhile."""

    def read() -> str:
        tell(prompt)
        return sys.stdin.readline()

    line: str = gevent.get_hub().threadpool.apply(read)
    if not line:
        raise EOFError  # raised here because gevent would print it in the thread
    return line
