"""Read how a script describes itself: by its `mcp:` comment, and by the `@arg` comments of a shell script.

Rule: the script is read, never run.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from mcpgreen.catalog.descriptions import metadata, yaml_text
from mcpgreen.catalog.descriptions.argument_comments import Arguments, arguments_in
from mcpgreen.catalog.descriptions.comments import ARGUMENT, inline_in
from mcpgreen.errors import ProjectError
from mcpgreen.running.scripts.shebang import SHELLS, program_of
from mcpgreen.text.json_types import Json

_SCOPES_IN_COMMENT = re.compile(rb"(?im)^[ \t]*(?:#|//|--|;|%|/?\*|<!--).*\bscopes?[\"']?\s*:\s*[\[\"'a-z-]")
_HOW_TO_ANNOTATE = "write `mcp:` and what belongs to it into one comment in the first ten lines"
_SCOPES_TAG = re.compile(rb"(?im)^[ \t]*(?:#|//|--|;|%|\*)+[ \t]*@scopes?\b")
SCHEMAS = ("inputSchema", "arguments")
_UNKNOWN = re.compile(r'unknown key "([^"]{1,80})"')
_FIELD = re.compile(r"[A-Za-z_][\w-]*(?:\.[\w$-]+|\[\d+\])*")
_LINE = re.compile(r"\bline \d+")


class ScriptDescription(NamedTuple):
    """The fields of a description, with complaints about parts that cannot be understood, and hints."""

    fields: Json
    complaints: list[str] = []
    hints: list[str] = []


def read_script(path: str, head: bytes) -> ScriptDescription | None:
    """Read the description in the first bytes of a script; None if it has none. Raises ProjectError."""
    fields = metadata.read_inline(path, head)
    arguments = arguments_of(path, head)
    if arguments is None:
        return ScriptDescription(fields) if fields is not None else None
    complaints = list(arguments.complaints)
    described = {"description": arguments.description} if arguments.description else {}
    rest = dict(fields or {})
    for key in SCHEMAS:
        if rest.pop(key, None) is not None:
            complaints.append(f"{key} is left out: the @arg comments say which arguments there are")
    fields = {**described, **rest, "inputSchema": arguments.schema}
    return ScriptDescription(fields, complaints, arguments.hints)


def arguments_of(path: str, head: bytes) -> Arguments | None:
    """Read the `@arg` comments of a shell script; None for another script, or one without such comments."""
    if ARGUMENT not in head or program_of(path, head) not in SHELLS:
        return None
    return arguments_in(head, inline_in(head))


def scopes_in_comment(path: str, head: bytes) -> Json:
    """The field `scopes` of the annotation in a script, which counts even if the description is in another file. Raises
    ProjectError for scopes that cannot be read."""
    if _SCOPES_TAG.search(head):
        raise ProjectError(path, f"@scopes is not understood in a comment: {_HOW_TO_ANNOTATE}")
    if b"mcp:" not in head or not _SCOPES_IN_COMMENT.search(head):
        return {}
    fields = metadata.read_inline(path, head)
    if fields is None:
        raise ProjectError(path, f"scopes are mentioned in a comment that is not understood: {_HOW_TO_ANNOTATE}")
    metadata.require_known_scopes(path, fields, ("scopes",))
    return {key: value for key, value in fields.items() if key == "scopes"}


def reason_with_place(error: ProjectError) -> str:
    """The reason of an error. If it is about YAML in a comment and does not name the line, add line and column."""
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
    """The keys of the member that a sentence begins with: `inputSchema.required must be an array`."""
    if unknown := _UNKNOWN.match(sentence):
        return (unknown[1],)
    field = _FIELD.match(sentence)
    parts = re.findall(r"[^.\[\]]+", field[0]) if field else []
    return tuple(int(part) if part.isdigit() else part for part in parts)
