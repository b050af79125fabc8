"""Read what a docstring says about a function and its arguments, in the style of Google, NumPy or Sphinx.

The text before the first section is the description. Only arguments, attributes and the result are read.
"""

from __future__ import annotations

import re
from typing import NamedTuple

MAX_CHARS = 32_768
MAX_LINE_CHARS = 1000  # of a line that may name an argument
ARGUMENTS = {"args", "arguments", "parameters", "params", "attributes"}
ARGUMENTS |= {"keyword args", "keyword arguments", "other parameters"}
RESULTS = {"returns", "return"}
SECTIONS = ARGUMENTS | RESULTS | {"see also", "todo", "references", "methods", "warning", "warnings", "warns"}
SECTIONS |= {"raises", "yields", "yield", "receives", "example", "examples", "note", "notes"}
_GOOGLE_ENTRY = re.compile(r"\*{0,2}(\w+)\s*(?:\([^\n]*?\)\s*)?:(?:\s+|$)(.*)", re.DOTALL)
_NUMPY_NAMES = re.compile(r"(\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?")
_FIELD = re.compile(r":(\w+)((?:\s+[^:\s]+)*)\s*:(?:\s+|$)(.*)", re.DOTALL)
_FIELDS_OF_ARGUMENTS = frozenset({"param", "parameter", "arg", "argument", "key", "keyword", "ivar", "var", "cvar"})
_FIELDS = _FIELDS_OF_ARGUMENTS | {"return", "returns", "raises", "raise", "except", "type", "rtype", "yield", "yields"}


class Documentation(NamedTuple):
    text: str
    arguments: dict[str, str]
    result: str


def read(docstring: str) -> Documentation:
    """Read a docstring without indentation, as `ast.get_docstring` returns it."""
    lines = docstring[:MAX_CHARS].split("\n")
    text: list[str] = []  # before the first section or field
    is_text = True
    arguments: dict[str, str] = {}
    result = ""
    at = 0
    while at < len(lines):
        end = at + 1
        title, start = _section_at(lines, at)
        is_field = not title and _field_at(lines, at)
        is_text = is_text and not title and not is_field
        if title:
            is_numpy = start == at + 2
            outer = (each for each in range(start, len(lines)) if lines[each][:1] not in ("", " "))
            ends = (each for each in outer if not is_numpy or _section_at(lines, each)[0] or _field_at(lines, each))
            end = next(ends, len(lines))
            block = lines[start:end]
            if title in ARGUMENTS:
                arguments.update(_arguments(block, is_numpy=is_numpy))
            elif title in RESULTS and not result:
                result = _result(block, is_numpy=is_numpy)
        elif is_field:
            while end < len(lines) and not _field_at(lines, end) and (lines[end][:1] == " " or not lines[end].strip()):
                end += 1
            match = _FIELD.match("\n".join([lines[at][:MAX_LINE_CHARS], *lines[at + 1 : end]]))
            if match and match[1] in _FIELDS_OF_ARGUMENTS and match[2].split():
                arguments[match[2].split()[-1].lstrip("*")] = _joined([match[3]])
            elif match and match[1] in ("return", "returns"):
                result = _joined([match[3]])
        elif is_text:
            text.append(lines[at].rstrip())
        at = end
    return Documentation("\n".join(text).strip(), arguments, result)


def _section_at(lines: list[str], at: int) -> tuple[str, int]:
    """Return the title of a section that begins at this line, if any, and the first line of its content."""
    line = lines[at]
    if not line or line[0] == " " or len(line) > 40:
        return "", at
    following = lines[at + 1] if at + 1 < len(lines) else ""
    title = line.strip().lower()
    if title in SECTIONS and len(following) >= 3 and not following.strip("-"):
        return title, at + 2
    if title.endswith(":") and title[:-1] in SECTIONS:
        inner = next((lines[below] for below in range(at + 1, len(lines)) if lines[below].strip()), "")
        if inner[:1] == " ":
            return title[:-1], at + 1
    return "", at


def _field_at(lines: list[str], at: int) -> bool:
    line = lines[at]
    if line[:1] != ":":
        return False
    match = _FIELD.match(line[:MAX_LINE_CHARS])
    return match is not None and match[1] in _FIELDS


def _arguments(block: list[str], *, is_numpy: bool) -> dict[str, str]:
    found: dict[str, str] = {}
    for first, more in _entries(block):
        if match := (_NUMPY_NAMES if is_numpy else _GOOGLE_ENTRY).fullmatch(first[:MAX_LINE_CHARS]):
            text = _joined(more if is_numpy else [match[2], *more])
            found.update((name.strip().lstrip("*"), text) for name in match[1].split(","))
    return found


def _entries(block: list[str]) -> list[tuple[str, list[str]]]:
    """Return the lines at the margin of a section, each with the deeper lines below it."""
    margin = min((len(line) - len(line.lstrip()) for line in block if line.strip()), default=0)
    found: list[tuple[str, list[str]]] = []
    for line in block:
        if line.strip() and line[margin] != " ":
            found.append((line[margin:], []))
        elif found:
            found[-1][1].append(line)
    return found


def _result(block: list[str], *, is_numpy: bool) -> str:
    if is_numpy:  # a type, and what it is on the lines below
        return _joined([line for _, more in _entries(block)[:1] for line in more])
    text = _joined(block)
    kind, colon, rest = text.partition(": ")
    return rest if colon and re.fullmatch(r"[\w.\[\], |]+", kind) and " " not in kind.replace(", ", ",") else text


def _joined(lines: list[str]) -> str:
    return " ".join(" ".join(lines).split())
