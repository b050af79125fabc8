"""Keywords of jsonschema in versions of our own: bounded, quicker, or with words that a model understands."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

MAX_PATTERN_CHARS = 10_000
SPARE_FRAMES = 400  # enough for the deepest schema that has no references, and for comparing the deepest values

REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


def our_keywords(stock: Mapping[str, Any]) -> dict[str, Any]:
    """Replacements for keywords that the draft has; those that it lacks must stay without effect."""
    ours: dict[str, Any] = {
        "pattern": _pattern,
        "properties": _properties,
        "propertyNames": _property_names,
        "uniqueItems": _unique_items,
    }
    ours.update((keyword, _guarded(stock[keyword])) for keyword in REFERENCES if keyword in stock)
    return {keyword: function for keyword, function in ours.items() if keyword in stock}


def _guarded(follow: Any) -> Any:
    """Only references allow endless descent, so the stack is looked at there.

    Waiting for RecursionError will not do: raised below jsonschema's maps, which are written in Rust, it comes out as
    a panic that no `except Exception` holds.
    """
    import sys

    def guarded(validator: Any, reference: Any, value: Any, schema: Any) -> Any:
        try:
            sys._getframe(sys.getrecursionlimit() - SPARE_FRAMES)
        except ValueError:  # the stack is not as deep as that
            return follow(validator, reference, value, schema)
        raise RecursionError

    return guarded


def _pattern(validator: Any, pattern: str, value: Any, schema: Any) -> Iterator[Any]:
    import re

    from jsonschema import ValidationError

    if not isinstance(value, str):
        return
    if len(value) > MAX_PATTERN_CHARS:
        yield ValidationError(f"has more than {MAX_PATTERN_CHARS} characters, too many for its pattern {pattern}")
    elif not re.search(pattern, value):
        yield ValidationError(f"must match the pattern {pattern}")


def _properties(validator: Any, properties: dict[str, Any], value: Any, schema: Any) -> Iterator[Any]:
    """As the stock keyword, which forgets the path where the schema of a member is `false`."""
    from jsonschema import ValidationError

    if not isinstance(value, dict):
        return
    for name, part in properties.items():
        if name in value and part is False:
            yield ValidationError("is not allowed here", path=[name], instance=value[name])
        elif name in value:
            yield from validator.descend(value[name], part, path=name, schema_path=name)


def _property_names(validator: Any, names: Any, value: Any, schema: Any) -> Iterator[Any]:
    """As the stock keyword, but the error is about the object: a name has no path of its own."""
    from jsonschema import ValidationError

    if not isinstance(value, dict):
        return
    for name in value:
        if next(validator.descend(name, names), None) is not None:
            yield ValidationError(f"has a member whose name is not allowed: {name!r:.80}")


def _unique_items(validator: Any, is_wanted: Any, value: Any, schema: Any) -> Iterator[Any]:
    """As the stock keyword, which compares every object with every other."""
    from jsonschema import ValidationError

    if not is_wanted or not isinstance(value, list):
        return
    seen: set[Any] = set()
    for item in map(_hashable, value):
        if item in seen:
            yield ValidationError("has the same item twice")
            return
        seen.add(item)


def _hashable(value: Any) -> Any:
    """Equal for equal JSON values and for no others: 1 is 1.0, but not true."""
    if isinstance(value, bool) or value is None:
        return ("literal", value)
    if isinstance(value, list):
        return ("array", *map(_hashable, value))
    if isinstance(value, dict):
        return ("object", frozenset((name, _hashable(member)) for name, member in value.items()))
    return value
