"""Where in a script stands what a sentence about its description complains of. Asked only when something is wrong."""

from __future__ import annotations

import re

from mcpgreen.catalog.descriptions import metadata, yaml_text
from mcpgreen.catalog.descriptions.comments import inline_in
from mcpgreen.errors import ProjectError

_UNKNOWN = re.compile(r'unknown key "([^"]{1,80})"')
_FIELD = re.compile(r"[A-Za-z_][\w-]*(?:\.[\w$-]+|\[\d+\])*")
_LINE = re.compile(r"\bline \d+")


def reason_with_place(error: ProjectError) -> str:
    """What is wrong, and at which line of the script if YAML in a comment is meant and the reason does not say it."""
    if metadata.is_description(error.path) or _LINE.search(error.reason):
        return error.reason
    try:
        found = inline_in(metadata.head_of(error.path) or b"")
    except OSError:
        return error.reason
    if found is None or not found.is_yaml:
        return error.reason
    marks = yaml_text.marks_in(found.text)
    keys = keys_in(error.reason)
    while keys and keys not in marks:
        keys = keys[:-1]
    line, column = marks.get(keys, (found.line, 1))
    return f"{error.reason} (line {line}, column {column})"


def keys_in(sentence: str) -> tuple[str | int, ...]:
    """The way to the member that a sentence begins with, as in `inputSchema.required must be an array`."""
    if unknown := _UNKNOWN.match(sentence):
        return (unknown[1],)
    field = _FIELD.match(sentence)
    parts = re.findall(r"[^.\[\]]+", field[0]) if field else []
    return tuple(int(part) if part.isdigit() else part for part in parts)
