"""Add an entry to TOML text as a separate table at the end, and remove it again, line by line."""

from __future__ import annotations

import json
import re
import sys
from importlib import import_module
from typing import Any

from mcpgreen.cli.clients.formats.spot import Spot, Unfit, line_end, without_lines
from mcpgreen.text.json_types import Json

MAX_DOTS = 2_000
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_HEAD = re.compile(r"[ \t]*\[.*\][ \t]*(#.*)?$")  # of a table


def values(text: str, spot: Spot) -> Json:
    try:
        tomllib: Any = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    except ImportError:
        raise Unfit("to read TOML, use Python 3.11 or newer, or install mcpgreen[toml]") from None
    if any(line.count(".") > MAX_DOTS for line in text.splitlines()):
        # The time of the parser grows with the square of the dots in a name.
        raise Unfit(f"a line in it has more than {MAX_DOTS} dots")
    try:
        # Line ends are normalised as in tomllib.load; a single carriage return is an error.
        document: Json = tomllib.loads(text.removeprefix("\ufeff").replace("\r\n", "\n"))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise Unfit(f"it is not valid TOML: {error}") from None
    if not isinstance(document.get(spot.root, {}), dict):
        raise Unfit(f"{spot.root} is not a table")
    return document


def put(text: str, spot: Spot, entry: Json) -> str:
    if spot.entry_in(values(text, spot)) is not None:
        text = removed(text, spot)
    ending = line_end(text)
    body = text.removeprefix("\ufeff")
    gap = "" if not body.strip() else ending if body.endswith("\n") else ending * 2
    head = f"{_key(spot.root)}.{_key(spot.name)}"
    plain = [f"{_key(key)} = {_value(value)}" for key, value in entry.items() if not isinstance(value, dict)]
    lines = [f"[{head}]", *plain]
    for key, value in entry.items():
        if isinstance(value, dict) and value:
            lines += ["", f"[{head}.{_key(key)}]", *(f"{_key(name)} = {_value(each)}" for name, each in value.items())]
    return text + gap + ending.join(lines) + ending


def removed(text: str, spot: Spot) -> str:
    lines = text.splitlines(keepends=True)
    names = (rf"""(?:{re.escape(name)}|"{re.escape(name)}"|'{re.escape(name)}')""" for name in (spot.root, spot.name))
    own = re.compile(r"[ \t]*\[[ \t]*" + r"[ \t]*\.[ \t]*".join(names) + r"[ \t]*[.\]]")
    starts = [index for index, line in enumerate(lines) if own.match(line)]
    if not starts:
        raise Unfit(f"it does not contain {spot.name} as a table [{spot.root}.{_key(spot.name)}]")
    for start in reversed(starts):
        following = (index for index in range(start + 1, len(lines)) if _HEAD.match(lines[index].rstrip("\r\n")))
        lines = without_lines(lines, start, next(following, len(lines)))
        if start and not lines[start - 1].strip() and (start == len(lines) or not lines[start].strip()):
            del lines[start - 1]  # the blank line that we put before a table
    return "".join(lines)


def _value(value: object) -> str:
    # TOML reads the escapes of JSON, and wants this character escaped, too.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _value(name)
