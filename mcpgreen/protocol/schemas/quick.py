"""Check schemas and values as far as possible without jsonschema, which takes 90 ms and 10 MB to load.

`fault_of` finds gross faults while a project is read, because a tool with one must never be listed: unknown dialects
and types, patterns that do not compile, references that lead to the network or nowhere. A schema without a finding may
still be wrong; the full check (`validator`) takes a millisecond a schema, so it is made at the first call.

A server with valid calls and plain schemas never needs jsonschema. `is_simple` says whether a schema uses only keywords
that we understand, in a form that every draft from 4 to 2020-12 reads the same way. `matches` says whether a value
certainly satisfies such a schema. False means "don't know", and then `validator` asks jsonschema.

Rule: True must be right. Everything unusual (1.0 as an integer, a boolean schema, a keyword that is new here) gets
False. `tests/protocol/test_schemas.py` compares the answers with those of jsonschema.
"""

from __future__ import annotations

import re
from typing import Any

from mcpgreen.text.json_pointers import pointed_at
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
# In these, keywords next to a reference have no effect.
OLD_DIALECTS = tuple(f"json-schema.org/draft-0{number}/schema" for number in (4, 6, 7))

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
NUMBERS = frozenset({"integer", "number"})

# Below these keywords there are values or plain names, not schemas.
NOT_SCHEMAS = frozenset({"const", "default", "enum", "examples", "required", "dependentRequired"})
# Below these keywords there are names that the author chose, each with a schema.
MAPS = ("properties", "patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions")
# With these a reference may mean something else than a path from the root, so it is left to jsonschema.
SCOPES = frozenset({"$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor"})

# An escape, a class, a repeat, or one character.
PATTERN_TOKENS = r"(?s)\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{(?:\d*,)?(?P<most>\d*)\}|."
OF_PYTHON = {"$": r"\Z", ".": r"[^\n\r\u2028\u2029]"}
MANY = 16  # a pattern that repeats fewer times does no harm


def dialect_of(schema: Json) -> str | None:
    """Return the dialect of the schema, one of `DIALECTS`; None for an unknown one."""
    named = schema.get("$schema", DEFAULT_DIALECT)
    if not isinstance(named, str):
        return None
    bare = named.removeprefix("https://").removeprefix("http://").removesuffix("#")
    return bare if bare in DIALECTS else None


def is_simple(schema: object) -> bool:
    """Tell whether the whole schema is well-formed and within what `matches` understands."""
    if not isinstance(schema, dict):
        return False
    if "$schema" in schema:
        # Draft 4 rejects forms that later drafts allow, such as an empty `required`.
        if dialect_of(schema) in (None, "json-schema.org/draft-04/schema"):
            return False
        schema = {keyword: given for keyword, given in schema.items() if keyword != "$schema"}
    return _is_simple_part(schema, MAX_DEPTH)


def matches(schema: Json, value: Any) -> bool:
    """Tell whether the value certainly satisfies a schema for which `is_simple` is true."""
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
    """Tell whether this is a list of one or more different scalars. 1, 1.0 and True count as equal, which is safe."""
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


def fault_of(schema: object) -> str | None:
    """Return the first fault, as the end of a sentence about the schema."""
    if not isinstance(schema, dict) or is_simple(schema):
        return None
    if dialect_of(schema) is None:
        return f"names a dialect that is not supported: {schema.get('$schema')!r:.80}"
    parts = parts_of(schema)
    has_scopes = any(SCOPES & part.keys() for part in parts)
    for part in parts:
        fault = _fault_of_part(part, schema, has_scopes=has_scopes)
        if fault:
            return fault
    return None


def slow_patterns_in(schema: object) -> list[str]:
    """Return the patterns with a repeat inside a repeat. They may take a regular expression engine forever.

    `^([a-z]+[._-]?)+@` takes twice as long for each further letter of a string without an at sign, because the two
    repeats can share the letters in any number of ways. Such a pattern is not wrong, and many values match it quickly,
    so this is for a warning and never a reason to refuse a schema.
    """
    patterns = (pattern for part in parts_of(schema) for pattern in patterns_of(part))
    return [pattern for pattern in dict.fromkeys(patterns) if _is_slow(pattern)]


def parts_of(schema: object) -> list[Json]:
    """Return every object in the schema that may be a schema itself."""
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

    In ECMA-262, `$` is the end and nothing else: in Python it also matches before a final newline, so that `^[a-z]+$`
    would accept "a\n". `\d`, `\w` and `\b` are about ASCII alone, and `.` is no end of a line of any kind.
    """
    parts = r"(?s)\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\$|\."  # an escape, a class, or one of these outside of both
    return re.sub(parts, _python_part, text)


def _python_part(match: re.Match[str]) -> str:
    escapes = {each[1] for each in re.findall(r"(?s)\\.", match[0])}
    is_ascii = not escapes.isdisjoint("dDwWbB") and escapes.isdisjoint("sS")  # white space is that of Unicode
    return f"(?a:{match[0]})" if is_ascii else OF_PYTHON.get(match[0], match[0])


def _fault_of_part(part: Json, root: Json, *, has_scopes: bool) -> str | None:
    kinds = part.get("type")
    for kind in kinds if isinstance(kinds, list) else [kinds]:
        if isinstance(kind, str) and kind not in TYPES:
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
        is_known = dialect_of({"$schema": base}) is not None
        return None if is_known else f"refers to another document, which is not fetched: {reference!r:.80}"
    try:
        pointed_at(root, f"#{pointer}")
    except LookupError:
        return f"refers to a place that does not exist: {reference!r:.80}"
    return None


def _is_slow(pattern: str) -> bool:
    """Tell whether a group that contains a repeat is repeated itself."""
    open_groups = [False]  # for each: whether it contains a repeat so far
    is_repeat_in_last = False  # whether the group that has just ended contains one
    for token in re.finditer(PATTERN_TOKENS, pattern):
        if token[0] == "(":
            open_groups.append(False)
        elif token[0] == ")" and len(open_groups) > 1:
            is_repeat_in_last = open_groups.pop()
            open_groups[-1] |= is_repeat_in_last
            continue
        elif _is_many(token):
            if is_repeat_in_last:
                return True
            open_groups[-1] = True
        is_repeat_in_last = False
    return False


def _is_many(token: re.Match[str]) -> bool:
    most = token["most"]
    return token[0] in ("*", "+") or most == "" or (most is not None and (len(most) > 4 or int(most) > MANY))
