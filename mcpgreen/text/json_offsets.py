"""Find the positions of members and items in JSON text. The text may be damaged."""

from __future__ import annotations

import json
import re

Keys = tuple[str | int, ...]  # the names and indices that lead to a value

_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[{}\[\]:,]|[^\s{}\[\]:,"]+', re.DOTALL)


def offsets_in(text: str) -> tuple[dict[Keys, int], list[tuple[Keys, int]]]:
    """Return the offset of each member name and array item of a JSON text, and the members that occur again."""
    found: dict[Keys, int] = {}
    again: list[tuple[Keys, int]] = []
    path: list[str | int] = []  # the member or item that is being read, of each open brace or bracket
    is_name = False
    for token in _TOKEN.finditer(text):
        word = token[0]
        if word == ":":
            continue
        if word == ",":
            if path and isinstance(path[-1], int):
                path[-1] += 1
            else:
                is_name = True
        elif word in ("}", "]"):
            path[-1:] = []
            is_name = False
        elif is_name:
            path[-1:] = [_name(word)]
            keys = tuple(path)
            if keys in found:
                again.append((keys, token.start()))
            found[keys] = token.start()
            is_name = False
        else:
            if not path or isinstance(path[-1], int):
                found[tuple(path)] = token.start()
            if word in ("{", "["):
                path.append("" if word == "{" else 0)
                is_name = word == "{"
    return found, again


def _name(word: str) -> str:
    try:
        return str(json.loads(word, strict=False))
    except ValueError:
        return word
