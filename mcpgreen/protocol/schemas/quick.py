"""A cheap "certainly valid" for the schemas that most tools have.

Not a validator: loading jsonschema costs 90 ms and 10 MB, and a server whose calls are all valid by plain schemas need
never do it. `is_simple` says whether a schema uses only keywords that we understand, in a form that every draft from 4
to 2020-12 reads the same way; `matches` says whether a value surely satisfies such a schema. False means "don't know":
`schemas` then asks jsonschema.

Rule: True must be right. Whatever is unusual (1.0 as an integer, a boolean schema, a keyword that is new here) gets
False. `tests/protocol/test_schemas.py` compares the answers with those of jsonschema.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# The dialects that we know, without scheme and trailing "#", and the class of jsonschema that reads each.
DIALECTS = {
    "json-schema.org/draft/2020-12/schema": "Draft202012Validator",
    "json-schema.org/draft/2019-09/schema": "Draft201909Validator",
    "json-schema.org/draft-07/schema": "Draft7Validator",
    "json-schema.org/draft-06/schema": "Draft6Validator",
    "json-schema.org/draft-04/schema": "Draft4Validator",
}
DEFAULT_DIALECT = "json-schema.org/draft/2020-12/schema"

MAX_DEPTH = 32

_ANNOTATIONS: dict[str, type] = {
    **dict.fromkeys(("title", "description", "format", "$comment"), str),
    **dict.fromkeys(("deprecated", "readOnly", "writeOnly"), bool),
    "examples": list,
    "default": object,
}
_COUNTS = ("minLength", "maxLength", "minItems", "maxItems")
_BOUNDS = ("minimum", "maximum")
TYPES = frozenset({"string", "integer", "number", "boolean", "object", "array", "null"})
# What a value surely is, by its type here. Whether 1.0 is an integer as well depends on the draft.
_TYPES_OF: dict[type, set[str]] = {
    str: {"string"},
    bool: {"boolean"},
    int: {"integer", "number"},
    float: {"number"},
    dict: {"object"},
    list: {"array"},
    type(None): {"null"},
}


def dialect_of(schema: dict[str, Any]) -> str | None:
    """Which of the `DIALECTS` the schema is written in; None for one that we do not know."""
    named = schema.get("$schema", DEFAULT_DIALECT)
    if not isinstance(named, str):
        return None
    bare = named.removeprefix("https://").removeprefix("http://").removesuffix("#")
    return bare if bare in DIALECTS else None


def is_simple(schema: Any) -> bool:
    """Whether the whole schema is well-formed and within what `matches` understands."""
    if not isinstance(schema, dict):
        return False
    if "$schema" in schema:
        # Draft 4 rejects forms that the later ones allow, an empty `required` for one.
        if dialect_of(schema) in (None, "json-schema.org/draft-04/schema"):
            return False
        schema = {keyword: given for keyword, given in schema.items() if keyword != "$schema"}
    return _is_simple_part(schema, MAX_DEPTH)


def matches(schema: dict[str, Any], value: Any) -> bool:
    """Whether the value certainly satisfies a schema for which `is_simple` is true."""
    if "type" in schema and not _has_type(schema["type"], value):
        return False
    if "enum" in schema and not any(_is_same(value, allowed) for allowed in schema["enum"]):
        return False
    if "const" in schema and not _is_same(value, schema["const"]):
        return False
    if isinstance(value, str):
        return _is_within(len(value), schema, "minLength", "maxLength")
    if isinstance(value, dict):
        return _matches_object(schema, value)
    if isinstance(value, list):
        items = schema.get("items", {})
        return _is_within(len(value), schema, "minItems", "maxItems") and all(matches(items, item) for item in value)
    if _is_number(value):
        return _is_within(value, schema, "minimum", "maximum")
    return value is None or value is True or value is False


def _is_simple_part(schema: Any, depth: int) -> bool:
    return (
        isinstance(schema, dict)
        and depth > 0
        and all(_is_simple_keyword(keyword, given, depth) for keyword, given in schema.items())
    )


def _is_simple_keyword(keyword: str, given: Any, depth: int) -> bool:
    if keyword == "type":
        return given in TYPES if isinstance(given, str) else _is_set(given) and TYPES.issuperset(given)
    if keyword == "properties":
        return isinstance(given, dict) and all(_is_simple_part(part, depth - 1) for part in given.values())
    if keyword == "required":
        return given == [] or (_is_set(given) and all(isinstance(name, str) for name in given))
    if keyword in ("items", "additionalProperties"):
        return _is_simple_part(given, depth - 1) or (keyword != "items" and isinstance(given, bool))
    if keyword == "enum":
        return _is_set(given)
    if keyword == "const":
        return _is_scalar(given)
    if keyword in _COUNTS:
        return type(given) is int and given >= 0
    if keyword in _BOUNDS:
        return _is_number(given)
    return isinstance(given, _ANNOTATIONS.get(keyword, ()))


def _matches_object(schema: dict[str, Any], value: dict[str, Any]) -> bool:
    if not all(name in value for name in schema.get("required", ())):
        return False
    properties = schema.get("properties", {})
    others = schema.get("additionalProperties", True)
    for name, member in value.items():
        part = properties.get(name, others)
        if part is False or (part is not True and not matches(part, member)):
            return False
    return True


def _has_type(expected: str | list[str], value: Any) -> bool:
    names = _TYPES_OF.get(type(value), set())
    return expected in names if isinstance(expected, str) else any(name in names for name in expected)


def _is_same(left: Any, right: Any) -> bool:
    return type(left) is type(right) and bool(left == right)  # True is not 1, and 1.0 is left to jsonschema


def _is_within(number: float, schema: dict[str, Any], low: str, high: str) -> bool:
    return (low not in schema or number >= schema[low]) and (high not in schema or number <= schema[high])


def _is_set(given: Any) -> bool:
    """A list of one or more different scalars. 1, 1.0 and True count as equal here, which errs on the safe side."""
    return (
        isinstance(given, list)
        and bool(given)
        and all(_is_scalar(each) for each in given)
        and len(set(given)) == len(given)
    )


def _is_scalar(given: Any) -> bool:
    return given is None or isinstance(given, (str, int, float))


def _is_number(given: Any) -> bool:
    return isinstance(given, (int, float)) and not isinstance(given, bool)
