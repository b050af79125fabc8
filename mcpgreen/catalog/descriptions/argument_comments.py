"""Read the `@arg` comments of a shell script, which say what arguments a tool takes.

    # Greet somebody.
    # @arg name!                   Who is greeted
    # @arg times=1 int             How often
    # @arg tone[warm|cool]=warm    In which tone

`# @arg NAME[!][[a|b]][=default] [TYPE]  TEXT`, in the comments before the first command. `!` is required, the type is
one of `TYPES` or `SYNONYMS`, and a comment line that is indented deeper goes on with the text. The comment above the
first of them describes the tool. `sdk/arguments.sh` reads the same lines when the script runs: what is changed here is
changed there.

Rule: a line that cannot be understood costs that line, or the part of it, and a complaint that says where it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from mcpgreen.catalog.descriptions.comments import Inline
from mcpgreen.text import jsontext

TYPES: dict[str, dict[str, Any]] = {
    "string": {"type": "string"},
    "int": {"type": "integer"},
    "number": {"type": "number"},
    "bool": {"type": "boolean"},
    "list": {"type": "array", "items": {"type": "string"}},
    "json": {},
}
SYNONYMS = {"integer": "int", "boolean": "bool"}  # as JSON Schema calls them
# What people write who know other languages; in the text of an argument it would be lost.
LIKELY_TYPES = {
    **dict.fromkeys(("Integer", "Int", "uint", "long"), "int"),
    **dict.fromkeys(("float", "double", "Number", "decimal"), "number"),
    **dict.fromkeys(("Boolean", "Bool", "flag"), "bool"),
    **dict.fromkeys(("str", "String", "text"), "string"),
    **dict.fromkeys(("array", "Array", "List"), "list"),
    **dict.fromkeys(("object", "Object", "JSON", "dict"), "json"),
}
_LINE = re.compile(r"(\s*#+\s*)@arg(?=\s|$)(.*)")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_ARGUMENT = re.compile(
    rf"\s+(?P<name>{_NAME.pattern})(?P<required>!?)(?:\[(?P<choices>[^\[\]]*)\])?"
    r"""(?:=(?P<default>"[^"]*"(?!\S)|'[^']*'(?!\S)|[^\s"']\S*|(?!\S)))?"""
    rf"(?:\s+(?P<type>{'|'.join((*TYPES, *SYNONYMS))})(?!\S))?(?P<text>(?:\s.*)?)"
)
_OF_SHDOC = re.compile(r"\s+\$")  # `@arg $1 string ...` documents a function
# Some of these words begin a sentence as well; they count if they stand apart from the text.
_LIKELY_TYPE = re.compile(rf"\s+(?:(str|float|double|uint)(?!\S)|({'|'.join(LIKELY_TYPES)})(?:\s\s|\s*$))")
_NO_WORDS = re.compile(r"shellcheck |-\*-|vim?:|SPDX-|@")
_INTEGER = re.compile(r"-?(0|[1-9]\d{0,29})", re.ASCII)
_NUMBER = re.compile(r"-?(0|[1-9]\d{0,29})(\.\d{1,30})?([eE][-+]?\d{1,2})?", re.ASCII)
# Variables by which shells and programs are steered are in capitals, apart from these.
_RESERVED = re.compile(r"[A-Z0-9_]+|_.*|(?:BASH|LD_|DYLD_|MCP).*|auto_resume|histchars|.*_proxy")
PREFIX = "arg_"


class Place(NamedTuple):
    line: int
    column: int

    def __str__(self) -> str:
        return f"(line {self.line}, column {self.column})"


class Arguments(NamedTuple):
    """What the comments say: of the tool, the schema of its arguments, where each stands, and what is wrong."""

    description: str
    schema: dict[str, Any]
    places: dict[str, Place]
    complaints: list[str]
    hints: list[str]


class _Argument(NamedTuple):
    name: str
    schema: dict[str, Any]
    is_required: bool


def variable_of(name: str) -> str:
    """The variable that `mcp_args_parse` sets."""
    variable = name.replace("-", "_")
    return PREFIX + variable if _RESERVED.fullmatch(variable) else variable


def arguments_in(head: bytes, inline: Inline | None) -> Arguments | None:
    """What the leading comments say; None if there is no `@arg` among them. `inline` is the `mcp:` comment."""
    rows = list(_leading_comments(head))
    skipped = range(inline.line, inline.end_line + 1) if inline else range(0)
    found = _Found()
    for number, row in enumerate(rows, 1):
        if number not in skipped and not (number == 1 and row.startswith("#!")):
            found.take(row, number)
    return found.arguments() if found.properties or found.complaints else None


def _leading_comments(head: bytes) -> Iterator[str]:
    for row in head.decode("utf-8", "replace").split("\n"):
        if row.strip() and not row.lstrip().startswith("#"):
            return
        yield row.rstrip()


class _Found:
    """Collects what the comments say, line by line."""

    def __init__(self) -> None:
        self.properties: dict[str, dict[str, Any]] = {}
        self.complaints: list[str] = []
        self._required: list[str] = []
        self._names: dict[str, str] = {}  # by the variable that each sets
        self._places: dict[str, Place] = {}
        self._hints: list[str] = []
        self._paragraph: list[str] = []  # of the comment that is being read, and of the last one with words
        self._words: list[str] = []
        self._open: tuple[dict[str, Any], int] | None = None  # whose text goes on in deeper lines than this
        self._has_begun = False

    def take(self, row: str, number: int) -> None:
        line = _LINE.match(row)
        if line is not None:
            self._has_begun = True
            self._open = None
            place = Place(number, len(line[1]) + 1)
            if not _OF_SHDOC.match(line[2]):
                self._argument(line[2], place)
            return
        text = row.lstrip().lstrip("#")
        indent = len(row) - len(text.lstrip())
        if self._open is not None and text.strip() and indent > self._open[1]:
            schema = self._open[0]
            schema["description"] = f"{schema.get('description', '')} {text.strip()}".strip()
            return
        self._open = None
        if not self._has_begun:
            self._above(row, text)

    def arguments(self) -> Arguments:
        schema: dict[str, Any] = {"type": "object", "properties": self.properties}
        if self._required:
            schema["required"] = self._required
        schema["additionalProperties"] = False
        words = self._paragraph if any(self._paragraph) else self._words
        description = "\n".join(words).strip()
        return Arguments(description, schema, self._places, self.complaints, self._hints)

    def _above(self, row: str, text: str) -> None:
        if not row.strip():  # a comment of its own, as a licence, does not describe the tool if another one follows
            self._words = self._paragraph if any(self._paragraph) else self._words
            self._paragraph = []
        elif not _NO_WORDS.match(text.strip()):
            self._paragraph.append(text.removeprefix(" "))

    def _argument(self, rest: str, place: Place) -> None:
        match = _ARGUMENT.fullmatch(rest)
        if match is None:
            word = rest.split()[0] if rest.split() else ""
            what = f"{word[:60]} is not understood" if _NAME.match(word) else "has no name that can be used"
            self.complaints.append(f"@arg {what} {place}")
            return
        argument = self._read(match, place)
        name = argument.name
        other = self._names.setdefault(variable_of(name), name)
        if name in self.properties or other != name:
            trouble = "is there twice" if other == name else f"sets the same variable as {other}"
            self.complaints.append(f"@arg {name} {trouble}, and only the first counts {place}")
            return
        self.properties[name] = argument.schema
        self._places[name] = place
        self._open = (argument.schema, place.column)
        if argument.is_required:
            self._required.append(name)
        if variable_of(name) != name.replace("-", "_"):
            self._hints.append(
                f"@arg {name} sets {variable_of(name)}, as {name} may mean something to the shell {place}"
            )

    def _read(self, match: re.Match[str], place: Place) -> _Argument:
        name, kind = match["name"], SYNONYMS.get(match["type"], match["type"]) or "string"
        about = f"@arg {name}"
        schema = {key: dict(value) if isinstance(value, dict) else value for key, value in TYPES[kind].items()}
        if text := match["text"].strip():
            schema["description"] = text
        if match["type"] is None and (likely := _LIKELY_TYPE.match(match["text"])):
            word = likely[1] or likely[2]
            self.complaints.append(f"{about} has the type string: {word} is none; write {LIKELY_TYPES[word]} {place}")
        self._add_choices(schema, match["choices"], kind, f"{about} {{}} {place}")
        is_required = bool(match["required"])
        if match["default"] is not None:
            if is_required:
                self.complaints.append(f"{about} is required, so its default is left out {place}")
            else:
                self._add_default(schema, match["default"], kind, f"{about} {{}} {place}")
        return _Argument(name, schema, is_required)

    def _add_choices(self, schema: dict[str, Any], text: str | None, kind: str, complaint: str) -> None:
        if text is None:
            return
        try:
            if kind in ("bool", "json"):
                raise ValueError
            values = [_value(word.strip(), "string" if kind == "list" else kind) for word in text.split("|")]
        except ValueError:
            self.complaints.append(complaint.format(f"has choices that are no {kind}; they are left out"))
            return
        (schema["items"] if kind == "list" else schema)["enum"] = list(dict.fromkeys(values))

    def _add_default(self, schema: dict[str, Any], text: str, kind: str, complaint: str) -> None:
        if text[:1] in ("'", '"'):
            text = text[1:-1]
        try:
            default = _value(text, kind)
        except ValueError:
            self.complaints.append(complaint.format(f"has a default that is no {kind}; it is left out"))
            return
        choices = schema.get("items", schema).get("enum")
        if choices is not None and not set(choices).issuperset(default if kind == "list" else [default]):
            self.complaints.append(complaint.format("has a default that is none of its choices; it is left out"))
            return
        schema["default"] = default


def _value(text: str, kind: str) -> Any:
    """A word of the comment as the value that it stands for. Raises ValueError."""
    if kind == "string":
        return text
    if kind == "list":
        values = jsontext.loads(text.encode()) if text.startswith("[") else text.split(",") if text else []
        if not isinstance(values, list) or not all(isinstance(each, str) for each in values):
            raise ValueError
        return values
    if kind == "json":
        return jsontext.loads(text.encode())
    wanted = {"int": _INTEGER, "number": _NUMBER}.get(kind)
    if text not in ("true", "false") if wanted is None else not wanted.fullmatch(text):
        raise ValueError
    return jsontext.loads(text.encode())
