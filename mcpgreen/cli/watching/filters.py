"""The language in which people say which calls they want to see: `tool:stats status:error dur:>1s -client:cursor word`.

The rules are in docs/debugging.md, and the page of `mcpgreen dev` follows the same. A filter never fails: what it does
not understand is a word to look for.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from fnmatch import fnmatchcase

from mcpgreen.cli.watching.calls import Call
from mcpgreen.text import jsontext

WORD = re.compile(r'(-?)(?:([a-z]+):)?(?:"([^"]*)"|(\S+))')
DURATION = re.compile(r"(>=|<=|>|<|=)?(\d+(?:\.\d+)?)(us|ms|s|m|h)?")
MS_OF = {"us": 0.001, "ms": 1.0, "s": 1000.0, "m": 60_000.0, "h": 3_600_000.0}
COMPARE = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le, "=": operator.eq}
SEARCHED = ("method", "name", "reason", "task")


def _is_like(text: str, value: str) -> bool:
    """With a star, the whole text has to match; otherwise the value may be anywhere in it."""
    return bool(text) and fnmatchcase(text.lower(), value) if "*" in value else value in text.lower()


def _has_status(call: Call, value: str) -> bool:
    special = {"error": call.is_failure, "hung": call.is_hung}
    return special[value] if value in special else call.status.startswith(value.replace("-", " "))


def _took(call: Call, value: str) -> bool:
    found = DURATION.fullmatch(value)
    return found is not None and COMPARE[found[1] or ">="](call.took_ms, float(found[2]) * MS_OF[found[3] or "s"])


def _has_word(call: Call, value: str) -> bool:
    arguments = jsontext.dumps(call.about.get("arguments", "")).decode("ascii")
    return value in " ".join([call.client, call.status, arguments, *map(call.text, SEARCHED)]).lower()


FIELDS: dict[str, Callable[[Call, str], bool]] = {
    "tool": lambda call, value: call.text("method") == "tools/call" and _is_like(call.text("name"), value),
    "name": lambda call, value: _is_like(call.text("name"), value),
    "method": lambda call, value: _is_like(call.text("method"), value),
    "client": lambda call, value: _is_like(call.client, value),
    "server": lambda call, value: _is_like(f"{call.server.get('name')} {call.server.get('project')}", value),
    "task": lambda call, value: _is_like(call.text("task"), value),
    "reason": lambda call, value: _is_like(call.text("reason"), value),
    "call": lambda call, value: value in (str(call.number), call.text("interaction")),
    "id": lambda call, value: value == call.text("id").lower(),
    "pid": lambda call, value: value in (str(call.server.get("pid")), call.text("pid")),
    "link": lambda call, value: value == call.text("link"),
    "status": _has_status,
    "dur": _took,
    "": _has_word,
}


def parsed(text: str) -> Callable[[Call], bool]:
    """Return the test of a filter: whether a call is wanted."""
    tests = []
    for minus, key, quoted, plain in WORD.findall(text.lower()):
        value = quoted or plain
        if key not in FIELDS or (key == "dur" and not DURATION.fullmatch(value)):
            key, value = "", f"{key}:{value}"
        tests.append((FIELDS[key], value, not minus))
    return lambda call: all(test(call, value) == is_wanted for test, value, is_wanted in tests)
