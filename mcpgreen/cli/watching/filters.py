"""The language in which people say which calls they want to see: `tool:stats status:error dur:>1s -client:cursor word`.

The rules are in docs/debugging.md, and the page of `mcpgreen dev` follows the same. A filter never fails: what it does
not understand is a word to look for.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fnmatch import fnmatchcase
from operator import eq, ge, gt, le, lt

from mcpgreen.cli.watching.calls import Call
from mcpgreen.text import jsontext

WORD = re.compile(r'(-?)(?:([a-z]+):)?(?:"([^"]*)"|(\S+))')
DURATION = re.compile(r"(>=|<=|>|<|=)?(\d+(?:\.\d+)?)(us|ms|s|m|h)?")
MS_OF = {"us": 0.001, "ms": 1.0, "s": 1000.0, "m": 60_000.0, "h": 3_600_000.0}
COMPARE: dict[str, Callable[[float, float], bool]] = {">": gt, ">=": ge, "<": lt, "<=": le, "=": eq}
SEARCHED = ("method", "name", "reason", "task")
NUMBERS = ("call", "id", "pid", "link")
TEXTS_OF: dict[str, Callable[[Call], tuple[object, ...]]] = {
    "tool": lambda call: (call.text("name"),) if call.text("method") == "tools/call" else (),
    "name": lambda call: (call.text("name"),),
    "method": lambda call: (call.text("method"),),
    "client": lambda call: (call.client,),
    "server": lambda call: (call.server.get("name"), call.server.get("project")),
    "task": lambda call: (call.text("task"),),
    "reason": lambda call: (call.text("reason"),),
    "status": lambda call: (call.status, call.is_failure and "error", call.is_hung and "hung"),
    "call": lambda call: (call.number, call.text("interaction")),
    "id": lambda call: (call.text("id"),),
    "pid": lambda call: (call.server.get("pid"), call.text("pid")),
    "link": lambda call: (call.text("link"),),
    "": lambda call: (
        call.client,
        call.status,
        *map(call.text, SEARCHED),
        jsontext.pretty(call.about.get("arguments", "")),
    ),
}


def parsed(text: str) -> Callable[[Call], bool]:
    """Return the test of a filter: whether a call is wanted."""
    tests = []
    for minus, key, quoted, plain in WORD.findall(text.lower()):
        value = quoted or plain
        if key not in TEXTS_OF and not (key == "dur" and DURATION.fullmatch(value)):
            key, value = "", f"{key}:{value}"
        tests.append((key, value, not minus))
    return lambda call: all(_fits(call, key, value) == is_wanted for key, value, is_wanted in tests)


def _fits(call: Call, key: str, value: str) -> bool:
    """With a star, a whole text has to match; otherwise the value may be anywhere in it."""
    if key == "dur" and (found := DURATION.fullmatch(value)):
        return COMPARE[found[1] or ">="](call.took_ms, float(found[2]) * MS_OF[found[3] or "s"])
    texts = [str(each).lower() for each in TEXTS_OF[key](call) if each]
    if key in NUMBERS:
        return value in texts
    if key == "status":
        return any(text.startswith(value.replace("-", " ")) for text in texts)
    return any(fnmatchcase(text, value) if key and "*" in value else value in text for text in texts)
