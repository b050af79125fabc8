"""Read almost-right arguments as the sender meant them, where the schema leaves no doubt.

Models and old helpers send text for other types. Where the schema does not allow a string, text is read as JSON: "5" as
an integer, "true" as a boolean, "[1]" as an array. The text must be what JSON itself would write: " 5" and "0x5" are
not numbers, "5.0" is not an integer. `null` for an optional property that does not allow null counts as absent.

This is not a validator: the caller validates the arguments before, and the result again.

Rule: a doubtful value stays as it is, and a value in which nothing changes is the same object.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from mcpgreen.protocol.schemas import quick
from mcpgreen.protocol.schemas.quick import NUMBERS, OLD_DIALECTS
from mcpgreen.text import jsontext
from mcpgreen.text.json_pointers import pointed_at
from mcpgreen.text.json_types import Json

Types = frozenset[str]

MAX_PARTS = 64  # parts of a schema that apply to one value, by references and allOf
MAX_CHOICES = 8  # levels of anyOf inside anyOf
MAX_EXACT_DIGITS = 15  # a double is exact up to this many digits
MAX_NUMBER_CHARS = 1000
LITERALS = {"true": True, "false": False, "null": None}


class Lenience:
    """Reads values by one schema, which must not change."""

    def __init__(self, schema: Json) -> None:
        self._root = schema
        self._hides_siblings = quick.dialect_of(schema) in OLD_DIALECTS
        self._types: dict[tuple[int, ...], Types] = {}

    def meant(self, value: object) -> Any:
        """Return the value as the sender probably meant it; the same object if there is nothing to change."""
        try:
            return self._read([self._root], value)
        except RecursionError:
            return value

    def _read(self, parts: list[object], value: object) -> object:
        """`parts` are all schemas that apply to this value."""
        if isinstance(value, str):
            types = self._types_of(parts)
            if "string" in types:
                return value
            found = _in_json(value, types)
            return value if found is value else self._read(parts, found)
        if isinstance(value, dict):
            return self._read_object(self._parts_for("object", parts), value)
        if isinstance(value, list):
            return self._read_array(self._parts_for("array", parts), value)
        return value

    def _read_object(self, parts: list[Json], value: Json) -> Json:
        changed: Json = {}
        absent: set[str] = set()
        for name, member in value.items():
            about = [each for part in parts for each in _about_member(part, name)]
            if member is None:
                is_optional = any(name in _object_in(part, "properties") for part in parts) and not any(
                    name in _list_in(part, "required") for part in parts
                )
                if is_optional and "null" not in self._types_of(about):
                    absent.add(name)
            elif about and (found := self._read(about, member)) is not member:
                changed[name] = found
        if not changed and not absent:
            return value
        return {name: changed.get(name, member) for name, member in value.items() if name not in absent}

    def _read_array(self, parts: list[Json], value: list[object]) -> list[object]:
        found = []
        for index, item in enumerate(value):
            about = [each for part in parts for each in _about_item(part, index)]
            found.append(self._read(about, item) if about else item)
        return value if all(new is old for new, old in zip(found, value, strict=True)) else found

    def _parts_for(self, type_name: str, parts: list[object], choices: int = MAX_CHOICES) -> list[Json]:
        """Return all parts that apply to a value of this type, with an alternative if it is the only possible one."""
        found: list[Json] = []
        for part in self._joined(parts):
            found.append(part)
            for keyword in ("anyOf", "oneOf"):
                fitting = [each for each in _list_in(part, keyword) if type_name in self._types_of([each])]
                if len(fitting) == 1 and choices:
                    found.extend(self._parts_for(type_name, fitting, choices - 1))
        return found

    def _joined(self, parts: list[object]) -> list[Json]:
        """Return the parts, what they refer to, and their `allOf`. An unknown reference restricts nothing."""
        found: dict[int, Json] = {}
        pending = list(parts)
        while pending and len(found) < MAX_PARTS:
            part = pending.pop()
            if not isinstance(part, dict) or id(part) in found:
                continue
            if "$ref" in part:
                if isinstance(part["$ref"], str):
                    with suppress(LookupError):
                        pending.append(pointed_at(self._root, part["$ref"]))
                if self._hides_siblings:
                    continue
            found[id(part)] = part
            pending.extend(_list_in(part, "allOf"))
        return list(found.values())

    def _types_of(self, parts: list[object], choices: int = MAX_CHOICES) -> Types:
        """Return the types that a value can have by these parts; too many rather than too few."""
        key = tuple(map(id, parts))
        known = self._types.get(key)
        if known is None:
            known = quick.TYPES
            for part in self._joined(parts):
                known &= self._types_of_part(part, choices)
            self._types[key] = known
        return known

    def _types_of_part(self, part: Json, choices: int) -> Types:
        types = quick.TYPES
        if "type" in part:
            named = part["type"] if isinstance(part["type"], list) else [part["type"]]
            types = frozenset(each for each in named if isinstance(each, str))
            if "number" in types:
                types |= NUMBERS
        if "const" in part:
            types &= _types_of_values([part["const"]])
        if isinstance(part.get("enum"), list):
            types &= _types_of_values(part["enum"])
        for keyword in ("anyOf", "oneOf"):
            if isinstance(part.get(keyword), list) and choices:
                types &= frozenset[str]().union(*(self._types_of([each], choices - 1) for each in part[keyword]))
        return types


def _in_json(text: str, types: Types) -> object:
    """Return the text read as JSON of one of these types; the text itself if it is not that."""
    first, last = text[:1], text[-1:]
    if text in LITERALS:
        return LITERALS[text] if ("null" if text == "null" else "boolean") in types else text
    if first == "-" or first.isdecimal():
        number = _number_in(text) if types & NUMBERS else None
        return text if number is None or (isinstance(number, float) and "number" not in types) else number
    is_container = (first == "{" and last == "}" and "object" in types) or (
        first == "[" and last == "]" and "array" in types
    )
    if not is_container:
        return text
    try:
        value = jsontext.loads(text)
    except ValueError:
        return text
    return value if jsontext.is_writable(value) else text


def _number_in(text: str) -> int | float | None:
    """Return the number, if JSON writes it like this and no digit is lost."""
    if len(text) > MAX_NUMBER_CHARS:
        return None
    match = re.fullmatch(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?", text)
    if match is None:
        return None
    whole, fraction, exponent = match.groups("")
    if not fraction and not exponent:
        return None if text == "-0" else int(text)
    digits = (whole + fraction[1:]).lstrip("0")
    number = float(text)
    is_kept = len(digits) <= MAX_EXACT_DIGITS and number - number == 0 and bool(number) == bool(digits.strip("0"))
    return number if is_kept else None


def _about_member(part: Json, name: str) -> Iterator[object]:
    properties = _object_in(part, "properties")
    if name in properties:
        yield properties[name]
    elif "patternProperties" not in part and isinstance(part.get("additionalProperties"), dict):
        yield part["additionalProperties"]


def _about_item(part: Json, index: int) -> Iterator[object]:
    first_ones = part.get("prefixItems", part.get("items"))
    if isinstance(first_ones, list) and index < len(first_ones):
        yield first_ones[index]
    elif isinstance(part.get("items"), dict):
        yield part["items"]


def _object_in(part: Json, keyword: str) -> Json:
    given = part.get(keyword)
    return given if isinstance(given, dict) else {}


def _list_in(part: Json, keyword: str) -> list[object]:
    given = part.get(keyword)
    return given if isinstance(given, list) else []


def _types_of_values(values: list[object]) -> Types:
    names = {quick.TYPE_NAMES.get(type(value), "null") for value in values}
    return frozenset(names | NUMBERS if names & NUMBERS else names)
