"""Find faults of a JSON schema while a project is read, without jsonschema.

A tool with a gross fault must never be listed, but the full check (`validator`) takes a millisecond a schema and its
library ten megabytes, so it is made at the first call. Found here: unknown dialects and types, patterns that do not
compile, references that lead to the network or nowhere. A schema without a finding may still be wrong.
"""

from __future__ import annotations

import re
import sys

from mcpgreen.protocol.schemas import quick
from mcpgreen.text.json_pointers import pointed_at
from mcpgreen.text.json_types import Json

if sys.version_info >= (3, 11):
    from re import _constants as sre_constants
    from re import _parser as sre_parse
else:
    import sre_constants
    import sre_parse

# Below these keywords there are values or plain names, not schemas.
NOT_SCHEMAS = frozenset({"const", "default", "enum", "examples", "required", "dependentRequired"})
# Below these keywords there are names that the author chose, each with a schema.
MAPS = ("properties", "patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions")
# With these a reference may mean something else than a path from the root, so it is left to jsonschema.
SCOPES = frozenset({"$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor"})

REPEATS = (sre_constants.MAX_REPEAT, sre_constants.MIN_REPEAT)
MANY = 16  # a pattern that repeats fewer times does no harm


def fault_of(schema: object) -> str | None:
    """The first fault, as the end of a sentence about the schema."""
    if not isinstance(schema, dict) or quick.is_simple(schema):
        return None
    if quick.dialect_of(schema) is None:
        return f"names a dialect that is not known here: {schema.get('$schema')!r:.80}"
    parts = parts_of(schema)
    has_scopes = any(SCOPES & part.keys() for part in parts)
    for part in parts:
        fault = _fault_of_part(part, schema, has_scopes=has_scopes)
        if fault:
            return fault
    return None


def slow_patterns_in(schema: object) -> list[str]:
    """The patterns that repeat something which is itself repeated. They may take a regular expression engine forever.

    `^([a-z]+[._-]?)+@` takes twice as long for each further letter of a text without an at sign, because the two
    repeats can share the letters in any number of ways. Such a pattern is not wrong, and many values match it quickly,
    so this is for a warning and never a reason to refuse a schema.
    """
    patterns = (pattern for part in parts_of(schema) for pattern in patterns_of(part))
    return [pattern for pattern in dict.fromkeys(patterns) if _is_slow(pattern)]


def parts_of(schema: object) -> list[Json]:
    """Every object in the schema that may be a schema itself."""
    found: list[Json] = []
    pending = [schema]
    while pending:
        current = pending.pop()
        if isinstance(current, dict):
            found.append(current)
            for key, value in current.items():
                if key in MAPS and isinstance(value, dict):
                    pending.extend(value.values())
                elif key not in NOT_SCHEMAS:
                    pending.append(value)
        elif isinstance(current, list):
            pending.extend(current)
    return found


def patterns_of(part: Json) -> list[str]:
    patterns = [part["pattern"]] if isinstance(part.get("pattern"), str) else []
    if isinstance(part.get("patternProperties"), dict):
        patterns.extend(part["patternProperties"])
    return patterns


def schema_pattern(text: str) -> str:
    r"""Translate a regular expression of a JSON schema for Python.

    In ECMA-262, `$` is the end and nothing else. In Python it also matches before a final newline, so that `^[a-z]+$`
    would accept "a\n".
    """
    parts = r"(?s)\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\$"  # an escape, a class, or a `$` outside of both
    return re.sub(parts, lambda part: r"\Z" if part[0] == "$" else part[0], text)


def _fault_of_part(part: Json, root: Json, *, has_scopes: bool) -> str | None:
    kinds = part.get("type")
    for kind in kinds if isinstance(kinds, list) else [kinds]:
        if isinstance(kind, str) and kind not in quick.TYPES:
            return f"has a type that does not exist: {kind!r}"
    for pattern in patterns_of(part):
        try:
            re.compile(schema_pattern(pattern))
        except re.error as error:
            return f"has a pattern that is not a regular expression: {pattern!r:.80} ({error})"
    reference = part.get("$ref")
    if isinstance(reference, str) and not has_scopes:
        return _fault_of_reference(reference, root)
    return None


def _fault_of_reference(reference: str, root: Json) -> str | None:
    base, _, pointer = reference.partition("#")
    if base:
        is_known = quick.dialect_of({"$schema": base}) is not None
        return None if is_known else f"refers to another document, and nothing is fetched: {reference!r:.80}"
    try:
        pointed_at(root, f"#{pointer}")
    except LookupError:
        return f"refers to a place that does not exist: {reference!r:.80}"
    return None


def _is_slow(pattern: str) -> bool:
    try:
        return _has_nested_repeat(sre_parse.parse(pattern), is_repeated=False)
    except (re.error, RecursionError, OverflowError):
        return False


def _has_nested_repeat(part: object, *, is_repeated: bool) -> bool:
    """Whether a part of a parsed pattern contains a repeat inside a repeat."""
    if isinstance(part, sre_parse.SubPattern):
        part = part.data
    if isinstance(part, list):
        return any(_has_nested_repeat(each, is_repeated=is_repeated) for each in part)
    if not isinstance(part, tuple):
        return False
    if part and part[0] in REPEATS:
        _, most, repeated = part[1]
        is_many = most is sre_constants.MAXREPEAT or most > MANY
        return (is_many and is_repeated) or _has_nested_repeat(repeated, is_repeated=is_repeated or is_many)
    return any(_has_nested_repeat(each, is_repeated=is_repeated) for each in part)
