"""Where in a file a description says something: line and column of a member, or of what cannot be parsed.

The catalogue reads descriptions as values and forgets where they stood. Whoever has found something wrong looks here,
once, by the names that lead to it. Also inside an `mcp:` comment, of which the place in the script is given.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from mcpgreen.catalog.descriptions import comments, metadata, yaml_text
from mcpgreen.catalog.descriptions.in_script import arguments_of
from mcpgreen.cli.checking.findings import Position
from mcpgreen.project.unmarked import META_SUFFIXES

Keys = tuple[str | int, ...]

MAX_BYTES = 4 << 20  # a registration may be longer than a description
MOST_DOUBLES = 20
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"?|[{}\[\]:,]|[^\s{}\[\]:,"]+', re.DOTALL)
_YAML_PLACE = re.compile(r"line (\d+), column (\d+)")
_YAML_OFFSET = re.compile(r"at position (\d+)")


class Description(NamedTuple):
    """A text that describes something, and where in its file it begins."""

    text: str
    start: Position = Position(1, 1)
    is_yaml: bool = False
    outside: Mapping[Keys, Position] = {}  # members that are said elsewhere in the same file

    def position_at(self, offset: int) -> Position:
        before = self.text[:offset]
        line = before.count("\n")
        column = len(before) - before.rfind("\n")
        if line == 0:
            column += (self.start.column or 1) - 1
        return Position(self.start.line + line, column)

    def position_of(self, *keys: str | int) -> Position | None:
        """Of a member, or of the nearest around it that is there; None for the whole."""
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

    def position_of_word(self, word: str, *, after: Position | None) -> Position | None:
        """Of a value as it is written, from the line of `after` on."""
        first = after.line - self.start.line if after else 0
        for number, line in enumerate(self.text.split("\n")):
            at = line.find(word) if number >= first else -1
            if at >= 0:
                shift = (self.start.column or 1) if number == 0 else 1
                return Position(self.start.line + number, at + shift)
        return after

    def doubles(self) -> list[tuple[Keys, Position]]:
        """The members that are there a second time: only the last of them counts."""
        if self.is_yaml:
            found = yaml_text.doubles_in(self.text.encode("utf-8"))
            return [(keys, Position(*mark)) for keys, mark in found[:MOST_DOUBLES]]
        return [(keys, self.position_at(offset)) for keys, offset in offsets_in(self.text)[1][:MOST_DOUBLES]]

    def fault(self) -> Position | None:
        """Where it cannot be parsed."""
        if self.is_yaml:
            return self._yaml_fault()
        try:
            json.loads(self.text, strict=False)
        except json.JSONDecodeError as error:
            return self.position_at(error.pos)
        except (ValueError, RecursionError):
            pass
        return None

    def _yaml_fault(self) -> Position | None:
        try:
            yaml_text.value_of(self.text.encode("utf-8"))
        except ValueError as error:
            if places := _YAML_PLACE.findall(str(error)):
                return Position(*map(int, places[-1]))
            if offset := _YAML_OFFSET.search(str(error)):
                return self.position_at(int(offset[1]))
        return None


def description_beside(path: str) -> str | None:
    """The file that describes this one: itself, or one beside it; None if there is none."""
    directory, name = os.path.split(path)
    if metadata.is_description(name) or name.endswith(".json"):
        return path
    try:
        described = metadata.meta_file_for(name, os.listdir(directory))
    except OSError:
        return None
    return os.path.join(directory, described) if described else None


def description_in(path: str) -> Description | None:
    """The description that a file is, or has in a comment."""
    try:
        raw = metadata.read_start(path, MAX_BYTES)
    except OSError:
        return None
    if path.endswith((".json", *META_SUFFIXES)):
        mark = b"\xef\xbb\xbf"
        text = raw.removeprefix(mark).decode("utf-8", "replace")
        return Description(text, is_yaml=not path.endswith(".json"))
    head = raw[: comments.HEAD_BYTES]
    found, arguments = comments.inline_in(head), arguments_of(path, head)
    places = arguments.places if arguments else {}
    outside: dict[Keys, Position] = {
        ("inputSchema", "properties", name): Position(*place) for name, place in places.items()
    }
    if found is None:
        return Description("", outside=outside) if arguments else None
    if found.is_yaml:
        return Description(found.text.decode("utf-8", "replace"), is_yaml=True, outside=outside)
    before = raw[: found.start].decode("utf-8", "replace")
    start = Position(before.count("\n") + 1, len(before) - before.rfind("\n"))
    return Description(found.text.decode("utf-8", "replace"), start, outside=outside)


def bad_byte_in(path: str) -> Position | None:
    """Where a text stops being UTF-8."""
    try:
        raw = metadata.read_start(path, MAX_BYTES)
        raw.decode("utf-8")
    except UnicodeDecodeError as error:
        before = raw[: error.start].decode("utf-8", "replace")
        return Position(before.count("\n") + 1, len(before) - before.rfind("\n"))
    except OSError:
        pass
    return None


def offsets_in(text: str) -> tuple[dict[Keys, int], list[tuple[Keys, int]]]:
    """Where the name of each member of a JSON text stands, and each item; and those members that are there again."""
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
        name: Any = json.loads(word, strict=False)
    except ValueError:
        return word
    return str(name)
