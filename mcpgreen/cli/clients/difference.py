"""What a change does to a file, for people: one hunk, as `diff -u` writes it.

Not `difflib`, whose time grows with the square of the lines: a change of ours is in one place.
"""

from __future__ import annotations

from itertools import takewhile

from mcpgreen.cli.clients.install import Change

CONTEXT = 1
MAX_CHARS = 300  # of a line: a file may have only one


def shown(change: Change) -> str:
    """Empty if nothing changes."""
    if not change.is_one:
        return ""
    old, new = _lines(change.before), _lines(change.after)
    same = _common(old, new)
    same_end = _common(old[same:][::-1], new[same:][::-1])
    start = max(0, same - CONTEXT)
    old_end, new_end = len(old) - same_end, len(new) - same_end
    behind = old[old_end : old_end + CONTEXT]
    head = [
        f"--- {change.path if change.before is not None else '/dev/null'}",
        f"+++ {change.path if change.after is not None else '/dev/null'}",
        f"@@ -{_range(start, old_end + len(behind))} +{_range(start, new_end + len(behind))} @@",
    ]
    rows = [
        *(f" {line}" for line in old[start:same]),
        *(f"-{line}" for line in old[same:old_end]),
        *(f"+{line}" for line in new[same:new_end]),
        *(f" {line}" for line in behind),
    ]
    return "\n".join((*head, *map(_cut, rows))) + "\n"


def _range(start: int, end: int) -> str:
    return f"{start + 1 if end > start else start},{end - start}"


def _lines(text: str | None) -> list[str]:
    return [] if not text else text.removesuffix("\n").split("\n")


def _common(one: list[str], other: list[str]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _cut(line: str) -> str:
    """What others wrote must not tell a terminal what to do."""
    line = line.rstrip("\r")
    safe = "".join(each if each.isprintable() or each == "\t" else repr(each)[1:-1] for each in line[:MAX_CHARS])
    return safe if len(line) <= MAX_CHARS else f"{safe}... ({len(line)} characters)"
