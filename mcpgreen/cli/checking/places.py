"""Find the line and column of a member of a description, or of a syntax error in it.

The catalogue reads descriptions as values, without places. A check that finds something wrong looks up its place here,
by the keys that lead to it, also inside an `mcp:` comment of a script.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

from mcpgreen.catalog.descriptions import HEAD_BYTES, comments, metadata, yaml_text
from mcpgreen.catalog.descriptions.in_script import arguments_of, read_script
from mcpgreen.catalog.manual.registration import Registration
from mcpgreen.catalog.prompts import Prompt
from mcpgreen.catalog.resources import Resource, ResourceTemplate
from mcpgreen.catalog.tools import Tool
from mcpgreen.cli.checking.findings import Position, Problem
from mcpgreen.errors import ProjectError
from mcpgreen.project.project import Project
from mcpgreen.project.unmarked import META_SUFFIXES
from mcpgreen.text.json_offsets import Keys, offsets_in
from mcpgreen.text.json_types import Json

Item = Tool | Prompt | Resource | ResourceTemplate

MAX_BYTES = 4 << 20  # a registration may be longer than a description
MOST_DOUBLES = 20
_YAML_PLACE = re.compile(r"line (\d+), column (\d+)")
_YAML_OFFSET = re.compile(r"at position (\d+)")


class Description(NamedTuple):
    """The text of a description, and where it begins in its file."""

    text: str
    start: Position = Position(1, 1)
    is_yaml: bool = False
    outside: Mapping[Keys, Position] = {}  # members elsewhere in the same file

    def position_at(self, offset: int) -> Position:
        line, column = _end_of(self.text[:offset])
        if line == 1:
            column += (self.start.column or 1) - 1
        return Position(self.start.line + line - 1, column)

    def position_of(self, *keys: str | int) -> Position | None:
        """Return the place of a member, or of the nearest one around it; None for the whole."""
        marks = yaml_text.marks_in(self.text.encode("utf-8")) if self.is_yaml else {}
        offsets = {} if self.is_yaml else offsets_in(self.text)[0]
        while keys:
            if keys in self.outside:
                return self.outside[keys]
            if keys in marks:
                return Position(*marks[keys])
            if keys in offsets:
                return self.position_at(offsets[keys])
            keys = keys[:-1]
        return None

    def position_of_word(self, word: str, *, after: Position) -> Position:
        """Return the place of a word, from the line of `after` on."""
        before = self.text.split("\n")[: after.line - self.start.line]
        at = self.text.find(word, sum(len(line) + 1 for line in before))
        return self.position_at(at) if at >= 0 else after

    def doubles(self) -> list[tuple[Keys, Position]]:
        """Members that occur twice; only the last one counts."""
        if self.is_yaml:
            found = yaml_text.duplicates_in(self.text.encode("utf-8"))
            return [(keys, Position(*mark)) for keys, mark in found[:MOST_DOUBLES]]
        return [(keys, self.position_at(offset)) for keys, offset in offsets_in(self.text)[1][:MOST_DOUBLES]]

    def fault(self) -> Position | None:
        """Return the place of a syntax error."""
        try:
            yaml_text.value_of(self.text.encode("utf-8")) if self.is_yaml else json.loads(self.text, strict=False)
        except json.JSONDecodeError as error:
            return self.position_at(error.pos)
        except (ValueError, RecursionError) as error:
            if places := _YAML_PLACE.findall(str(error)):
                return Position(*map(int, places[-1]))
            if offset := _YAML_OFFSET.search(str(error)):
                return self.position_at(int(offset[1]))
        return None


def description_beside(path: str) -> str | None:
    """Find the description of a file: the file itself, or one next to it, or None."""
    directory, name = os.path.split(path)
    if metadata.is_description(name) or name.endswith(".json"):
        return path
    try:
        described = metadata.meta_file_for(name, os.listdir(directory))
    except OSError:
        return None
    return os.path.join(directory, described) if described else None


def description_in(path: str) -> Description | None:
    """Return the description that a file consists of, or has in a comment."""
    try:
        raw = metadata.read_start(path, MAX_BYTES)
    except OSError:
        return None
    if path.endswith((".json", *META_SUFFIXES)):
        return Description(raw.decode("utf-8-sig", "replace"), is_yaml=not path.endswith(".json"))
    head = raw[:HEAD_BYTES]
    found, arguments = comments.inline_in(head), arguments_of(path, head)
    places = arguments.places.items() if arguments else ()
    outside: dict[Keys, Position] = {("inputSchema", "properties", name): Position(*place) for name, place in places}
    if found is None:
        return Description("", outside=outside) if arguments else None
    start = Position(1, 1) if found.is_yaml else Position(*_end_of(raw[: found.start].decode("utf-8", "replace")))
    return Description(found.text.decode("utf-8", "replace"), start, found.is_yaml, outside)


def bad_byte_in(path: str) -> Position | None:
    """Return the place of the first byte that is not UTF-8."""
    with suppress(OSError):
        raw = metadata.read_start(path, MAX_BYTES)
        try:
            raw.decode("utf-8")
        except UnicodeDecodeError as error:
            return Position(*_end_of(raw[: error.start].decode("utf-8", "replace")))
    return None


def position_in_file(path: str, *texts: str) -> Position | None:
    """Find the first of these strings in a file."""
    with suppress(OSError):
        content = metadata.read_start(path, metadata.MAX_META_BYTES).decode("utf-8", "replace")
        found = (content.find(text) for text in texts)
        return next((Position(*_end_of(content[:at])) for at in found if at >= 0), None)
    return None


def _end_of(text: str) -> tuple[int, int]:
    """Return the line and column after a text."""
    return text.count("\n") + 1, len(text) - text.rfind("\n")


class Source(NamedTuple):
    """Where an item is described. `base` leads to the item if the file describes several."""

    path: str | None
    fields: Json
    description: Description | None
    base: Keys = ()
    is_registered: bool = False

    def position(self, *keys: str | int) -> Position | None:
        if self.description is None or not (keys or self.base):
            return None
        if keys and keys[0] == "inputSchema" and "inputSchema" not in self.fields:
            keys = ("arguments", *keys[1:])
        return self.description.position_of(*self.base, *keys)

    def error(self, code: str, sentence: str, fix: str, *keys: str | int) -> Problem:
        return Problem("error", code, sentence, fix, self.path, self.position(*keys))

    def warning(self, code: str, sentence: str, fix: str, *keys: str | int) -> Problem:
        return Problem("warning", code, sentence, fix, self.path, self.position(*keys))


def source_of(project: Project, registration: Registration | None, kind: str, item: Item) -> Source:
    """Return the source of an item that was found or registered."""
    for index, entry in enumerate(registration.items.get(kind) or () if registration else ()):
        if registration and entry.get("name") == item.name:
            place = os.path.join(project.root, registration.source)
            description = description_in(place) if place.endswith(".json") else None  # a script says it in its own way
            return Source(place, entry, description, (kind, index), is_registered=True)
    path = _path_of(project, kind, item)
    if path is None:
        return Source(None, {}, None)
    described = description_beside(path)
    place = described or path
    try:
        if described or kind != "tools":
            fields = metadata.read_meta_file(place) if described else metadata.read_inline_of(place)
        else:
            found = read_script(place, metadata.head_of(place) or b"")
            fields = found.fields if found else None
    except (ProjectError, OSError):
        fields = {}
    return Source(place, fields or {}, description_in(place) if fields is not None else None)


def _path_of(project: Project, kind: str, item: Item) -> str | None:
    if getattr(item, "path", None):
        return str(item.path)
    relative = getattr(item, "relative_path", "")
    for base in (project.prompts_dir if kind == "prompts" else project.resources_dir, project.root):
        path = os.path.join(base, relative)
        if relative and os.path.isfile(path):
            return path
    return None
