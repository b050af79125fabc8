"""Find out cheaply that a value is certainly valid, for the schemas that most tools have.

Loading jsonschema takes 90 ms and 10 MB, and a server with valid calls and plain schemas never needs it. `is_simple`
says whether a schema uses only keywords that we understand, in a form that every draft from 4 to 2020-12 reads the same
way. `matches` says whether a value certainly satisfies such a schema. False means "don't know", and then `validator`
asks jsonschema.

Rule: True must be right. Everything unusual (1.0 as an integer, a boolean schema, a keyword that is new here) gets
False. `tests/protocol/test_schemas.py` compares the answers with those of jsonschema.
"""

from __future__ import annotations

from typing import Any

from mcpgreen.text.json_types import Json

# The known dialects, without scheme and trailing "#", and the class of jsonschema for each.
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
TYPE_NAMES: dict[type, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    dict: "object",
    list: "array",
    type(None): "null",
}
TYPES = frozenset(TYPE_NAMES.values())


def dialect_of(schema: Json) -> str | None:
    """The dialect of the schema, one of `DIALECTS`; None for an unknown one."""
    named = schema.get("$schema", DEFAULT_DIALECT)
    if not isinstance(named, str):
        return None
    bare = named.removeprefix("https://").removeprefix("http://").removesuffix("#")
    return bare if bare in DIALECTS else None


def is_simple(schema: object) -> bool:
    """Whether the whole schema is well-formed and within what `matches` understands."""
    if not isinstance(schema, dict):
        return False
    if "$schema" in schema:
        # Draft 4 rejects forms that later drafts allow, such as an empty `required`.
        if dialect_of(schema) in (None, "json-schema.org/draft-04/schema"):
            return False
        schema = {keyword: given for keyword, given in schema.items() if keyword != "$schema"}
    return _is_simple_part(schema, MAX_DEPTH)


def matches(schema: Json, value: Any) -> bool:
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


def _is_simple_part(schema: object, depth: int) -> bool:
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


def _matches_object(schema: Json, value: Json) -> bool:
    if not all(name in value for name in schema.get("required", ())):
        return False
    properties = schema.get("properties", {})
    others = schema.get("additionalProperties", True)
    for name, member in value.items():
        part = properties.get(name, others)
        if part is False or (part is not True and not matches(part, member)):
            return False
    return True


def _has_type(expected: str | list[str], value: object) -> bool:
    name = TYPE_NAMES.get(type(value))  # of 1.0 that is number; whether it is also an integer depends on the draft
    allowed = [expected] if isinstance(expected, str) else expected
    return name in allowed or (name == "integer" and "number" in allowed)


def _is_same(left: object, right: object) -> bool:
    return type(left) is type(right) and bool(left == right)  # True is not 1, and 1.0 is left to jsonschema


def _is_within(number: float, schema: Json, low: str, high: str) -> bool:
    return (low not in schema or number >= schema[low]) and (high not in schema or number <= schema[high])


def _is_set(given: object) -> bool:
    """Whether this is a list of one or more different scalars. 1, 1.0 and True count as equal, which is safe."""
    return (
        isinstance(given, list)
        and bool(given)
        and all(_is_scalar(each) for each in given)
        and len(set(given)) == len(given)
    )


def _is_scalar(given: object) -> bool:
    return given is None or isinstance(given, (str, int, float))


def _is_number(given: object) -> bool:
    return isinstance(given, (int, float)) and not isinstance(given, bool)
