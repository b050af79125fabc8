"""Find the statements of a TOML text: which table or key each one names, where it begins and ends.

Not a judge of TOML: that is `tomllib`, which says no positions. Here the text is known to be valid, so it is enough to
know where strings, brackets and lines end.

Rule: one pass, and no recursion.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from importlib import import_module
from typing import Any, NamedTuple

from mcpgreen.cli.clients.formats.spot import MAX_DEPTH, MAX_PIECES, Unfit, end_of_line

_PART = re.compile(r"""[ \t]*(?:(?P<bare>[A-Za-z0-9_-]+)|(?P<basic>"(?:[^"\\\n]|\\.)*")|'(?P<plain>[^'\n]*)')[ \t]*""")
_PIECE = re.compile(
    r'''"""[^"\\]*(?:(?:\\.|""?(?!"))[^"\\]*)*"{3,5}|"(?!"")[^"\\\n]*(?:\\.[^"\\\n]*)*"|\#[^\n]*'''
    r"""|'''.*?'{3,5}|'(?!'')[^'\n]*'|[\[{]|[\]}]|\n|[^"'\#\[\]{}\n]+""",
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\U([0-9a-fA-F]{8})|\\e|\\x([0-9a-fA-F]{2})")

MAX_DOTS = 32


class Statement(NamedTuple):
    kind: str  # "table", "array" (of tables) or "key"
    path: tuple[str, ...]  # from the top
    start: int
    value_start: int  # of a key
    end: int  # behind the value, or the closing bracket


@lru_cache(maxsize=4)
def values_of(text: str) -> dict[str, Any]:
    """Raises Unfit."""
    _require_modest(text)
    tomllib = _parser()
    try:
        # Line ends are normalised, as tomllib.load does it: a carriage return by itself is an error.
        values: dict[str, Any] = tomllib.loads(text.removeprefix("\ufeff").replace("\r\n", "\n"))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise Unfit(f"it is not valid TOML: {error}") from None
    return values


def _parser() -> Any:
    """Python has one from 3.11 on; before that, whoever needs it installs one."""
    for name in ("tomllib", "tomli"):
        with suppress(ImportError):
            return import_module(name)
    raise Unfit("to read TOML, use Python 3.11 or newer, or install mcpgreen[toml]")


@lru_cache(maxsize=4)
def statements_of(text: str) -> tuple[Statement, ...]:
    """Of a valid text. Keys have the path of their table before their own."""
    return tuple(_statements(text))


def _statements(text: str) -> Iterator[Statement]:
    position = 1 if text.startswith("\ufeff") else 0
    table: tuple[str, ...] = ()
    while position < len(text):
        if text[position] in " \t\r\n":
            position += 1
        elif text[position] == "#":
            position = end_of_line(text, position)
        elif text[position] == "[":
            is_array = text.startswith("[[", position)
            table, end = _key(text, position + 1 + is_array)
            end += 1 + is_array
            yield Statement("array" if is_array else "table", table, position, -1, end)
            position = end_of_line(text, end)
        else:
            path, equals = _key(text, position)
            start = equals + 1
            while text[start] in " \t":
                start += 1
            end = _end_of_value(text, start)
            yield Statement("key", table + path, position, start, end)
            position = end


def _key(text: str, position: int) -> tuple[tuple[str, ...], int]:
    parts: list[str] = []
    while True:
        part = _PART.match(text, position)
        if part is None:
            raise Unfit("a key in it is not understood")
        position = part.end()
        if part["bare"] is not None:
            parts.append(part["bare"])
        else:
            parts.append(part["plain"] if part["basic"] is None else _unquoted(part["basic"]))
        if text[position : position + 1] != ".":
            return tuple(parts), position
        position += 1


def _unquoted(quoted: str) -> str:
    try:
        return str(json.loads(_ESCAPE.sub(_character, quoted), strict=False))
    except ValueError:
        raise Unfit("a key in it is not understood") from None


def _character(escape: re.Match[str]) -> str:
    code = escape[1] or escape[2]
    return json.dumps(chr(int(code, 16) if code else 27))[1:-1]


def _end_of_value(text: str, position: int) -> int:
    depth, end = 0, position
    for token, start in _pieces(text, position):
        if token == "\n" or token.startswith("#"):
            if depth == 0:
                break
        elif token in "[{":
            depth += 1
        elif token in "]}":
            depth -= 1
        if token.strip() and not token.startswith("#"):
            end = start + len(token.rstrip())
    return end


def _require_modest(text: str) -> None:
    """A parser that calls itself for each bracket must not be led too deep; and for a name with many dots it takes a
    time that grows with their square."""
    depth = dots = 0
    for count, (token, _) in enumerate(_pieces(text, 0), start=1):
        if token in ("[", "{"):
            depth += 1
        elif token in ("]", "}"):
            depth = max(0, depth - 1)
        elif token[0] not in "\"'#":
            last = token.rpartition("," if token != "\n" else "\n")
            dots = last[2].count(".") + (0 if last[1] else dots)
        if depth > MAX_DEPTH:
            raise Unfit(f"it is nested deeper than {MAX_DEPTH} levels")
        if count > MAX_PIECES:
            raise Unfit(f"it has more than {MAX_PIECES} pieces")
        if dots > MAX_DOTS:
            raise Unfit(f"a name in it has more than {MAX_DOTS} dots")


def _pieces(text: str, position: int) -> Iterator[tuple[str, int]]:
    """Strings, comments, brackets, line ends and what is between them, each with its place."""
    while position < len(text):
        piece = _PIECE.match(text, position)
        if piece is None:
            raise Unfit("it is not valid TOML: a string in it does not end")
        yield piece.group(), position
        position = piece.end()
