"""Find the gross faults of a JSON schema while reading a project, without jsonschema.

A tool with such a fault must never be listed, but the full check costs a millisecond a schema and the library ten
megabytes; it is made at the first call (`schemas`). So here: dialects that nobody knows, types that do not exist,
patterns that do not compile, and references that lead to the network or nowhere. No finding proves nothing.
"""

from __future__ import annotations

from mcpgreen.protocol.schemas import quick
from mcpgreen.text.json_pointers import pointed_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Below these there are values or plain names, not schemas.
NOT_SCHEMAS = frozenset({"const", "default", "enum", "examples", "required", "dependentRequired"})
# With these a reference may mean something else than a path from the root; jsonschema will tell.
SCOPES = frozenset({"$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor"})


def fault_of(schema: Any) -> str | None:
    """The first fault, as the end of a sentence about the schema; None when nothing is obvious."""
    if not isinstance(schema, dict) or quick.is_simple(schema):
        return None
    if quick.dialect_of(schema) is None:
        return f"names a dialect that is not known here: {schema.get('$schema')!r:.80}"
    parts = list(parts_of(schema))
    has_scopes = any(SCOPES & part.keys() for part in parts)
    for part in parts:
        fault = _fault_of_part(part, schema, has_scopes=has_scopes)
        if fault:
            return fault
    return None


def parts_of(schema: Any) -> list[dict[str, Any]]:
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


def patterns_of(part: dict[str, Any]) -> list[str]:
    patterns = [part["pattern"]] if isinstance(part.get("pattern"), str) else []
    if isinstance(part.get("patternProperties"), dict):
        patterns.extend(part["patternProperties"])
    return patterns


def _fault_of_part(part: dict[str, Any], root: dict[str, Any], *, has_scopes: bool) -> str | None:
    kinds = part.get("type")
    for kind in kinds if isinstance(kinds, list) else [kinds]:
        if isinstance(kind, str) and kind not in quick.TYPES:
            return f"has a type that does not exist: {kind!r}"
    for pattern in patterns_of(part):
        import re

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
