"""Put an entry into a TOML text as a table of its own, at the end, and take it out again."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from itertools import takewhile
from typing import Any

from mcpgreen.cli.clients.formats.spot import Found, Spot, Unfit, after_line_end, end_of_line, line_end
from mcpgreen.cli.clients.formats.toml_text import Statement, statements_of, values_of

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def find(text: str, spot: Spot) -> Found:
    document = values_of(text)
    root = document.get(spot.root)
    if root is not None and not isinstance(root, dict):
        raise Unfit(f"{spot.root} is no table in it")
    if root is not None and any(each.path == (spot.root,) and each.kind == "key" for each in statements_of(text)):
        raise Unfit(
            f"{spot.root} is an inline table in it, to which no other can be added; write [{spot.root}] instead"
        )
    if not root or spot.name not in root:
        return Found(None, None, root is not None)
    statements = _of_entry(text, spot)
    first = statements[0]
    if first.kind == "key":
        if len(statements) > 1 or len(first.path) > 2:
            raise Unfit(f"{spot.name} is written with dots in it; make a table [{spot.root}.{_key(spot.name)}] of it")
        return Found(root[spot.name], (first.value_start, first.end), True)
    return Found(root[spot.name], (first.start, statements[-1].end), True)


def inserted(text: str, spot: Spot, entry: Mapping[str, Any]) -> str:
    ending = line_end(text)
    body = text.removeprefix("\ufeff")
    gap = "" if not body.strip() else ending if body.endswith("\n") else ending * 2
    return text + gap + _table(spot, entry, ending) + ending


def rendered(text: str, spot: Spot, entry: Mapping[str, Any]) -> str:
    if _of_entry(text, spot)[0].kind == "key":
        return _value(entry)
    return _table(spot, entry, line_end(text))


def removed(text: str, spot: Spot, *, drops_root: bool) -> str:
    del drops_root  # a table that was made with the entry goes with it
    span = find(text, spot).span
    if span is None:
        raise Unfit("the entry is not there")
    start, end = span
    if _of_entry(text, spot)[0].kind == "key":
        start = _of_entry(text, spot)[0].start
    end = after_line_end(text, end_of_line(text, end))
    ending = line_end(text)
    if text[:start].endswith(ending * 2) and (end == len(text) or text.startswith(ending, end)):
        start -= len(ending)
    return text[:start] + text[end:]


def values(text: str, spot: Spot) -> Any:
    del spot
    return values_of(text) or None


def _of_entry(text: str, spot: Spot) -> list[Statement]:
    """The statements that make the entry, side by side. Raises Unfit if others are between them."""
    own = (spot.root, spot.name)
    statements = list(statements_of(text))
    first = next((index for index, each in enumerate(statements) if each.path[:2] == own), len(statements))
    found = list(takewhile(lambda each: each.path[:2] == own, statements[first:]))
    if any(each.path[:2] == own for each in statements[first + len(found) :]):
        raise Unfit(f"the parts of {spot.name} do not stand side by side in it")
    return found


def _table(spot: Spot, entry: Mapping[str, Any], ending: str) -> str:
    head = f"{_key(spot.root)}.{_key(spot.name)}"
    plain = [f"{_key(key)} = {_value(value)}" for key, value in entry.items() if not isinstance(value, dict)]
    lines = [f"[{head}]", *plain]
    for key, value in entry.items():
        if isinstance(value, dict) and value:
            lines += ["", f"[{head}.{_key(key)}]", *(f"{_key(name)} = {_value(each)}" for name, each in value.items())]
    return ending.join(lines)


def _value(value: Any) -> str:
    if isinstance(value, str):
        # What JSON escapes, TOML reads; and it wants this one escaped, too.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        members = ", ".join(f"{_key(key)} = {_value(each)}" for key, each in value.items())
        return f"{{ {members} }}" if members else "{}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_value, value))}]"
    return str(value)


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _value(name)
