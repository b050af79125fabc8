"""Texts of the small jq: regular expressions, and the forms that values take behind words such as @sh."""

from __future__ import annotations

import re
from itertools import islice

from .values import FilterError, dumps, shown, text_of, wanted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

FLAGS = {"i": re.IGNORECASE, "x": re.VERBOSE, "s": re.DOTALL, "g": 0, "n": 0, "l": 0}


def _pattern(value: Any, pattern: Any, flags: Any) -> tuple[Any, bool, bool]:
    if not isinstance(value, str) or not isinstance(pattern, str):
        raise FilterError(f"{shown(value)} cannot be matched, as it or the pattern is not a string")
    if not isinstance(flags or "", str) or any(flag not in FLAGS for flag in flags or ""):
        raise FilterError(f"Flags of a regular expression are {', '.join(FLAGS)}; found {shown(flags)}")
    named = re.sub(r"\(\?<(?=[A-Za-z_])", "(?P<", pattern)
    try:
        compiled = re.compile(named, sum({FLAGS[flag] for flag in flags or ""}))
    except re.error as error:
        raise FilterError(f"{pattern} is not a regular expression: {error}") from None
    return compiled, "g" in (flags or ""), "n" in (flags or "")


def matches(value: Any, pattern: Any, flags: Any) -> Iterator[Any]:
    compiled, is_global, without_empty = _pattern(value, pattern, flags)
    found = (match for match in compiled.finditer(value) if match.group() or not without_empty)
    return found if is_global else islice(found, 1)


def match_object(match: Any) -> dict[str, Any]:
    names = {index: name for name, index in match.re.groupindex.items()}
    groups = [
        {
            "offset": match.start(at),
            "length": len(match.group(at) or ""),
            "string": match.group(at),
            "name": names.get(at),
        }
        for at in range(1, match.re.groups + 1)
    ]
    return {"offset": match.start(), "length": len(match.group()), "string": match.group(), "captures": groups}


def _quoted(value: Any) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "'\\''") + "'"
    if isinstance(value, (list, dict)):
        raise FilterError(f"{shown(value)} cannot be escaped for a shell")
    return dumps(value)


def _row(value: Any, name: str, separator: str, cell: Callable[[str], str]) -> str:
    cells = []
    for each in wanted(f"@{name}", "array", value):
        if isinstance(each, (list, dict)):
            raise FilterError(f"{shown(each)} is not valid in a {name} row")
        cells.append(cell(each) if isinstance(each, str) else "" if each is None else dumps(each))
    return separator.join(cells)


def _tsv_cell(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")


def _html(text: str) -> str:
    for character, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("'", "&#39;"), ('"', "&quot;")):
        text = text.replace(character, entity)
    return text


def _uri(text: str) -> str:
    from urllib.parse import quote

    return quote(text, safe="-_.~", errors="replace")


def _to_base64(text: str) -> str:
    from binascii import b2a_base64

    return b2a_base64(text.encode("utf-8", "replace"), newline=False).decode("ascii")


def _from_base64(text: str) -> str:
    from binascii import Error, a2b_base64

    try:
        return a2b_base64(text + "=" * (-len(text) % 4)).decode("utf-8", "replace")
    except (Error, ValueError):
        raise FilterError(f"{shown(text)} is not valid base64 data") from None


FORMATS: dict[str, Callable[[Any], str]] = {
    "text": text_of,
    "json": dumps,
    "csv": lambda value: _row(value, "csv", ",", lambda text: '"' + text.replace('"', '""') + '"'),
    "tsv": lambda value: _row(value, "tsv", "\t", _tsv_cell),
    "html": lambda value: _html(text_of(value)),
    "uri": lambda value: _uri(text_of(value)),
    "sh": lambda value: " ".join(map(_quoted, value)) if isinstance(value, list) else _quoted(value),
    "base64": lambda value: _to_base64(text_of(value)),
    "base64d": lambda value: _from_base64(text_of(value)),
}
