"""The language in which people say which calls they want to see: `tool:stats status:error dur:>1s -client:cursor word`.

The rules are in docs/debugging.md, and the page of `mcpgreen dev` follows the same. A filter never fails: what it does
not understand is a word to look for.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fnmatch import fnmatchcase

from mcpgreen.cli.watching.board import CallRow

Test = Callable[[CallRow], bool]

WORD = re.compile(r'(-?)(?:([a-z]+):)?(?:"([^"]*)"|(\S+))')
DURATION = re.compile(r"(>=|<=|>|<|=)?(\d+(?:\.\d+)?)(us|ms|s|m|h)?")
MS_OF = {"us": 0.001, "ms": 1.0, "s": 1000.0, "m": 60_000.0, "h": 3_600_000.0, None: 1000.0}
COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">": lambda one, other: one > other,
    ">=": lambda one, other: one >= other,
    "<": lambda one, other: one < other,
    "<=": lambda one, other: one <= other,
    "=": lambda one, other: one == other,
}
TEXT_OF: dict[str, Callable[[CallRow], str]] = {
    "tool": lambda row: row.name if row.method == "tools/call" else "",
    "name": lambda row: row.name,
    "method": lambda row: row.method,
    "client": lambda row: row.client,
    "server": lambda row: f"{row.server.get('name', '')} {row.server.get('project', '')}",
    "task": lambda row: row.task,
    "reason": lambda row: row.reason,
}
NUMBERS_OF: dict[str, Callable[[CallRow], tuple[object, ...]]] = {
    "call": lambda row: (row.number, row.interaction),
    "id": lambda row: (row.id,),
    "pid": lambda row: (row.server.get("pid"), row.process.get("pid")),
    "link": lambda row: (row.link,),
}


def parsed(text: str) -> Test:
    """Return the test of a filter: whether a call is wanted."""
    tests = [_test(*found.groups(default="")) for found in WORD.finditer(text)]
    return lambda row: all(test(row) for test in tests)


def _test(minus: str, key: str, quoted: str, plain: str) -> Test:
    value = (quoted or plain).lower()
    test = _of_key(key, value)
    if test is None:
        word = f"{key}:{value}" if key else value
        test = lambda row: word in row.text()  # noqa: E731
    found = test
    return (lambda row: not found(row)) if minus else found


def _of_key(key: str, value: str) -> Test | None:
    if key in TEXT_OF:
        return _like(TEXT_OF[key], value)
    if key in NUMBERS_OF:
        return lambda row: value in map(str, NUMBERS_OF[key](row))
    if key == "status":
        wanted = value.replace("-", " ")
        return lambda row: row.is_failure if wanted == "error" else row.status.startswith(wanted)
    if key == "dur" and (found := DURATION.fullmatch(value)):
        compare, limit_ms = COMPARE[found[1] or ">="], float(found[2]) * MS_OF[found[3]]
        return lambda row: compare(row.total_ms, limit_ms)
    return None


def _like(text_of: Callable[[CallRow], str], value: str) -> Test:
    """With a star, the whole text has to match; otherwise the value may be anywhere in it."""
    if "*" in value:
        return lambda row: bool(text_of(row)) and fnmatchcase(text_of(row).lower(), value)
    return lambda row: value in text_of(row).lower()
