"""Rewrite a schema so that most clients understand it: no references, and one type in each part.

Many frameworks do not follow `$ref`, and some providers refuse lists of types. So a local reference is replaced by the
part that it names, and `["string", "null"]` by an `anyOf`. Arguments and results are still checked by the author's
schema, which accepts the same values.

Rule: a reference stays if it is recursive or would make the schema much larger. If any is not a path
from the root (a name, a document, a dynamic reference), all stay: it may lead to any part.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mcpgreen.protocol.schemas import quick
from mcpgreen.protocol.schemas.quick import MAPS, NOT_SCHEMAS, NUMBERS, OLD_DIALECTS, SCOPES, parts_of
from mcpgreen.text import jsontext
from mcpgreen.text.json_pointers import pointed_at, steps_of
from mcpgreen.text.json_types import Json

MAX_GROWTH = 2000  # values; a longer schema would fill the context of a model
CHARS_A_VALUE = 50

DEFINITIONS = ("$defs", "definitions")
# Keywords that restrict no value, so they can move from a reference to the part that it names.
REMARKS = frozenset(
    {"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment", "$schema", "$id"}
)
_OF_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
# The keywords that restrict values of one type only.
KEYWORDS_OF: dict[str, tuple[str, ...]] = {
    "string": ("minLength", "maxLength", "pattern", "format", "contentEncoding", "contentMediaType", "contentSchema"),
    "integer": _OF_NUMBERS,
    "number": _OF_NUMBERS,
    "array": (
        *("items", "prefixItems", "additionalItems", "contains", "minContains", "maxContains"),
        *("minItems", "maxItems", "uniqueItems"),
    ),
    "object": (
        *("properties", "patternProperties", "additionalProperties", "propertyNames", "required", "minProperties"),
        *("maxProperties", "dependentRequired", "dependentSchemas", "dependencies"),
    ),
}
# A schema without any of these in its text needs no change. This search is five times faster than a walk.
_MARKS = (b'"$ref":', b'"type":[', b'"$defs":', b'"definitions":')


class _Unsuitable(Exception):
    """The references of this schema cannot be replaced."""


def portable(schema: Json) -> Json:
    """Return the rewritten schema; the same object if there is nothing to change."""
    text = jsontext.dumps(schema)
    if not any(mark in text for mark in _MARKS):
        return schema
    try:
        try:
            return _Writer(schema, follows=True).whole()
        except _Unsuitable:
            return _Writer(schema, follows=False).whole()
    except (_Unsuitable, RecursionError):
        return schema


def kept_references(schema: Json) -> Iterator[str]:
    """Yield the references that clients still get."""
    for part in parts_of(portable(schema)):
        if isinstance(part.get("$ref"), str):
            yield part["$ref"]


class _Writer:
    """Rewrites one schema. Without `follows`, references and definitions stay."""

    def __init__(self, root: Json, *, follows: bool) -> None:
        self._root = root
        self._follows = follows
        self._hides_siblings = quick.dialect_of(root) in OLD_DIALECTS
        self._open: list[str] = []  # the references that are being replaced
        self._recursive: set[str] = set()
        self._known: Json = {}  # rewritten parts by their references
        self._room = _size(root, {}) + MAX_GROWTH

    def whole(self) -> Json:
        """Return the rewritten schema. Raises _Unsuitable."""
        plain: Json = self._bounded(self._root)
        pending = list(_local_references(plain))
        checked: set[str] = set()
        while pending:
            reference = pending.pop()
            if reference in checked:
                continue
            checked.add(reference)
            _require(self._root, reference)
            steps = steps_of(reference)
            is_definition = len(steps) > 1 and steps[0] in DEFINITIONS and isinstance(self._root[steps[0]], dict)
            if self._follows and is_definition:
                definition = self._bounded(self._root[steps[0]][steps[1]])
                plain.setdefault(steps[0], {})[steps[1]] = definition
                pending.extend(_local_references(definition))
        for reference in checked:
            _require(plain, reference)
        return plain

    def _bounded(self, value: object) -> Any:
        """Rewrite a part. Raises _Unsuitable if it is too large, because one object may occur in many places."""
        written = self._part(value)
        self._room -= _size(written, {})
        if self._room < 0:
            raise _Unsuitable
        return written

    def _part(self, value: object) -> object:
        if isinstance(value, list):
            return [self._part(each) for each in value]
        if not isinstance(value, dict):
            return value
        if self._follows and value is not self._root and any(isinstance(value.get(key), str) for key in SCOPES):
            raise _Unsuitable  # references in here may have another base
        written: Json = {}
        for key, each in value.items():
            if key in NOT_SCHEMAS or key.startswith("x-"):
                written[key] = each
            elif key in MAPS and isinstance(each, dict):
                if key not in DEFINITIONS or not self._follows:
                    written[key] = {name: self._part(inner) for name, inner in each.items()}
            else:
                written[key] = self._part(each)
        if self._follows and isinstance(written.get("$ref"), str):
            written = self._without_reference(written)
        return _with_single_types(written) if isinstance(written.get("type"), list) else written

    def _without_reference(self, part: Json) -> Json:
        reference = part["$ref"]
        if not reference.startswith("#"):
            return part
        if reference not in self._known and reference not in self._recursive:
            self._follow(reference)
        if reference in self._recursive:
            return part
        others = {key: value for key, value in part.items() if key != "$ref"}
        if self._hides_siblings:
            others = {key: value for key, value in others.items() if key in REMARKS}
        return _joined(self._known[reference], others)

    def _follow(self, reference: str) -> None:
        if reference in self._open:
            self._recursive.update(self._open[self._open.index(reference) :])
            return
        self._open.append(reference)
        found = self._part(_require(self._root, reference))
        self._open.pop()
        if reference not in self._recursive:
            self._known[reference] = found


def _require(document: Json, reference: str) -> object:
    """Return the part that a local reference names. Raises _Unsuitable."""
    try:
        return pointed_at(document, reference)
    except LookupError:
        raise _Unsuitable from None


def _local_references(schema: object) -> Iterator[str]:
    """Yield the paths from the root in a rewritten part. Raises _Unsuitable for references of any other kind."""
    for part in parts_of(schema):
        reference = part.get("$ref")
        if isinstance(reference, str):
            if not (reference == "#" or reference.startswith("#/")):
                raise _Unsuitable
            yield reference
        if any(isinstance(part.get(key), str) for key in ("$dynamicRef", "$recursiveRef")):
            raise _Unsuitable


def _joined(target: object, others: Json) -> Json:
    """Combine the part that a reference names with the keywords next to the reference."""
    if isinstance(target, bool):
        target = {} if target else {"not": {}}
    if not isinstance(target, dict):
        raise _Unsuitable
    if others.get("properties") == {}:
        others = {key: value for key, value in others.items() if key != "properties"}
    if all(key in REMARKS or key.startswith("x-") or (key, target.get(key)) == ("type", others[key]) for key in others):
        return {**target, **others}
    # Keywords such as additionalProperties depend on their neighbours, so the two must not be mixed.
    return _with_another(others, target)


def _with_another(part: Json, further: Json) -> Json:
    """Return a schema that requires both. Raises _Unsuitable."""
    others = part.get("allOf", [])
    if not isinstance(others, list):
        raise _Unsuitable
    return {**part, "allOf": [*others, further]}


def _with_single_types(part: Json) -> Json:
    kinds = list(dict.fromkeys(kind for kind in part["type"] if isinstance(kind, str) and kind in quick.TYPES))
    if not kinds or len(kinds) < len(part["type"]):
        return part
    if "number" in kinds and "integer" in kinds:
        kinds.remove("integer")
    choices = [part["const"]] if "const" in part else part.get("enum")
    if isinstance(choices, list):
        kinds = [kind for kind in kinds if _of_type(kind, choices)]
    branches = [_branch(kind, part) for kind in kinds]
    moved = {"type", "enum"}.union(*branches)
    rest = {key: value for key, value in part.items() if key not in moved}
    if not branches:
        return part
    if len(branches) == 1:
        return {**rest, **branches[0]}
    if "anyOf" in rest:
        return _with_another(rest, {"anyOf": branches})
    return {**rest, "anyOf": branches}


def _branch(kind: str, part: Json) -> Json:
    """Return the part for values of one of its types."""
    branch: Json = {"type": kind, **{key: part[key] for key in KEYWORDS_OF.get(kind, ()) if key in part}}
    if isinstance(part.get("enum"), list) and kind != "null":
        branch["enum"] = _of_type(kind, part["enum"])
    return branch


def _of_type(kind: str, values: list[Any]) -> list[Any]:
    if kind == "integer":
        return [value for value in _of_type("number", values) if value % 1 == 0]
    kinds = NUMBERS if kind == "number" else (kind,)
    return [value for value in values if quick.TYPE_NAMES.get(type(value)) in kinds]


def _size(value: object, known: dict[int, int]) -> int:
    """Return the number of values in the written text. An object that occurs twice counts twice."""
    if isinstance(value, str):
        return 1 + len(value) // CHARS_A_VALUE
    if not isinstance(value, (dict, list)):
        return 1
    if id(value) not in known:
        inner = value.values() if isinstance(value, dict) else value
        known[id(value)] = 1 + sum(_size(each, known) for each in inner)
    return known[id(value)]
