"""Find the gross faults of a JSON schema while reading a project, without jsonschema.

A tool with such a fault must never be listed, but the full check costs a millisecond a schema and the library ten
megabytes; it is made at the first call (`schemas`). So here: dialects that nobody knows, types that do not exist,
patterns that do not compile, and references that lead to the network or nowhere. No finding proves nothing.
"""

from __future__ import annotations

import re
import sys
from typing import Any

from mcpgreen.protocol.schemas import quick
from mcpgreen.text.json_pointers import pointed_at

if sys.version_info >= (3, 11):
    from re import _constants as sre_constants
    from re import _parser as sre_parse
else:
    import sre_constants
    import sre_parse

# Below these there are values or plain names, not schemas.
NOT_SCHEMAS = frozenset({"const", "default", "enum", "examples", "required", "dependentRequired"})
# With these a reference may mean something else than a path from the root; jsonschema will tell.
SCOPES = frozenset({"$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor"})
MANY = 16  # repeats up to so many times do no harm
REPEATS = (sre_constants.MAX_REPEAT, sre_constants.MIN_REPEAT)


def fault_of(schema: Any) -> str | None:
    """The first fault, as the end of a sentence about the schema; None when nothing is obvious."""
    if not isinstance(schema, dict) or quick.is_simple(schema):
        return None
    if quick.dialect_of(schema) is None:
        return f"names a dialect that is not known here: {schema.get('$schema')!r:.80}"
    parts = list(_parts(schema))
    has_scopes = any(SCOPES & part.keys() for part in parts)
    for part in parts:
        fault = _fault_of_part(part, schema, has_scopes=has_scopes)
        if fault:
            return fault
    return None


def _parts(schema: Any) -> list[dict[str, Any]]:
    """Every object in it that may be a schema. A property called "type" is met as part of a map and does no harm."""
    found: list[dict[str, Any]] = []
    pending: list[Any] = [schema]
    while pending:
        current = pending.pop()
        if isinstance(current, dict):
            found.append(current)
            pending.extend(value for key, value in current.items() if key not in NOT_SCHEMAS)
        elif isinstance(current, list):
            pending.extend(current)
    return found


def _patterns_of(part: dict[str, Any]) -> list[str]:
    patterns = [part["pattern"]] if isinstance(part.get("pattern"), str) else []
    if isinstance(part.get("patternProperties"), dict):
        patterns.extend(part["patternProperties"])
    return patterns


def _fault_of_part(part: dict[str, Any], root: dict[str, Any], *, has_scopes: bool) -> str | None:
    kinds = part.get("type")
    for kind in kinds if isinstance(kinds, list) else [kinds]:
        if isinstance(kind, str) and kind not in quick.TYPES:
            return f"has a type that does not exist: {kind!r}"
    for pattern in _patterns_of(part):
        try:
            re.compile(pattern)
        except re.error as error:
            return f"has a pattern that is not a regular expression: {pattern!r:.80} ({error})"
    reference = part.get("$ref")
    if isinstance(reference, str) and not has_scopes:
        return _fault_of_reference(reference, root)
    return None


def _fault_of_reference(reference: str, root: dict[str, Any]) -> str | None:
    base, _, pointer = reference.partition("#")
    if base:
        is_known = quick.dialect_of({"$schema": base}) is not None
        return None if is_known else f"refers to another document, and nothing is fetched: {reference!r:.80}"
    try:
        pointed_at(root, f"#{pointer}")
    except LookupError:
        return f"refers to a place that does not exist: {reference!r:.80}"
    return None


def slow_patterns_in(schema: Any) -> list[str]:
    """Its patterns that repeat something which is itself repeated: they may take a regular expression engine for ever.

    `^([a-z]+[._-]?)+@` looks harmless, and takes twice as long for each further letter of a text without an at sign:
    the repeats inside each other can share the letters out in any number of ways. Such a pattern is not wrong, and many
    values meet it quickly, so this is for a warning, and never a reason to refuse a schema.
    """
    patterns = (pattern for part in _parts(schema) for pattern in _patterns_of(part))
    return [pattern for pattern in dict.fromkeys(patterns) if _is_slow(pattern)]


def _is_slow(pattern: str) -> bool:
    try:
        return _repeats_repeats(sre_parse.parse(pattern), is_repeated=False)
    except (re.error, RecursionError, OverflowError):
        return False


def _repeats_repeats(part: Any, *, is_repeated: bool) -> bool:
    """Whether a part of a parsed pattern holds a repeat of its own while it is repeated."""
    if isinstance(part, sre_parse.SubPattern):
        part = part.data
    if isinstance(part, list):
        return any(_repeats_repeats(each, is_repeated=is_repeated) for each in part)
    if not isinstance(part, tuple):
        return False
    if part and part[0] in REPEATS:
        _, most, repeated = part[1]
        is_many = most is sre_constants.MAXREPEAT or most > MANY
        return (is_many and is_repeated) or _repeats_repeats(repeated, is_repeated=is_repeated or is_many)
    return any(_repeats_repeats(each, is_repeated=is_repeated) for each in part)
