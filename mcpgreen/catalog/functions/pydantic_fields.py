"""What pydantic adds to annotations: its own types, `Field` with its constraints, and model configuration."""

from __future__ import annotations

import ast
from typing import NamedTuple

from mcpgreen.catalog.functions.module import Module, Unreadable
from mcpgreen.text.json_types import Json

_URL: Json = {"type": "string", "format": "uri", "minLength": 1}
_LIMITS = {"Positive": "exclusiveMinimum", "NonNegative": "minimum", "Negative": "exclusiveMaximum"}
_NUMBERS = (("Int", "integer"), ("Float", "number"))
TYPES: dict[str, Json] = {
    "pydantic.EmailStr": {"type": "string", "format": "email"},
    "pydantic.AnyUrl": _URL,
    "pydantic.HttpUrl": {**_URL, "maxLength": 2083},
    "pydantic.SecretStr": {"type": "string", "format": "password", "writeOnly": True},
    **{f"pydantic.{sign}{name}": {"type": kind, key: 0} for sign, key in _LIMITS.items() for name, kind in _NUMBERS},
}
REMARKS = ("title", "description", "examples", "deprecated")
_OF_NUMBERS = {"gt": "exclusiveMinimum", "ge": "minimum", "lt": "exclusiveMaximum"}
_OF_NUMBERS |= {"le": "maximum", "multiple_of": "multipleOf"}
# The keyword of JSON Schema for each constraint, by the type of the value.
_RULES: dict[str, dict[str, str]] = {
    "string": {"min_length": "minLength", "max_length": "maxLength", "pattern": "pattern"},
    "array": {"min_length": "minItems", "max_length": "maxItems"},
    "object": {"min_length": "minProperties", "max_length": "maxProperties"},
    "integer": _OF_NUMBERS,
    "number": _OF_NUMBERS,
}
_READ = (*REMARKS, *_RULES["string"], *_OF_NUMBERS)
_FIELDS = ("pydantic.Field", "pydantic.fields.Field", "pydantic.StringConstraints")


class Field(NamedTuple):
    """What a call of `Field` says. A default that a factory makes is not known."""

    keywords: Json = {}
    default: ast.expr | None = None
    is_required: bool = True
    alias: str = ""
    is_excluded: bool = False  # from results


def field_in(module: Module, *nodes: ast.expr | None) -> Field | None:
    """Return what the `Field(…)` among these expressions say together; None if there is none. Raises Unreadable."""
    found = None
    for node in nodes:
        if not isinstance(node, ast.Call) or module.dotted(node.func) not in _FIELDS:
            continue
        given = {keyword.arg or "": keyword.value for keyword in node.keywords}
        default = node.args[0] if node.args else given.get("default")
        if isinstance(default, ast.Constant) and default.value is Ellipsis:
            default = None
        alias = given.get("validation_alias", given.get("alias"))
        whole = found or Field()
        found = Field(
            whole.keywords | {name: _value(module, name, given[name]) for name in _READ if name in given},
            default or whole.default,
            whole.is_required and default is None and "default_factory" not in given,
            str(module.value_of(alias)) if alias is not None else whole.alias,
            whole.is_excluded or getattr(given.get("exclude"), "value", None) is True,
        )
    return found


def _value(module: Module, name: str, node: ast.expr) -> object:
    try:
        return module.value_of(node)
    except Unreadable as error:
        raise Unreadable(f"{name} of Field cannot be read: {error}") from None


def restrict(schema: Json, keywords: Json) -> None:
    """Add the keywords of a `Field` to the schema of its type; of several types, to each that they restrict."""
    schema.update((name, keywords[name]) for name in REMARKS if keywords.get(name) is not None)
    for branch in schema.get("anyOf", [schema]):
        rules = _RULES.get(branch.get("type", ""), {})
        branch.update((rules[name], keywords[name]) for name in rules if keywords.get(name) is not None)


def extra_of(module: Module, node: ast.ClassDef) -> str | None:
    """Return what a model says about unknown members, if anything: forbid, allow or ignore. Raises Unreadable."""
    options = list(node.keywords)
    for each in node.body:
        if isinstance(each, ast.Assign) and isinstance(each.value, ast.Call):
            options += each.value.keywords if getattr(each.targets[0], "id", "") == "model_config" else []
    given = {keyword.arg: keyword.value for keyword in options}
    if "alias_generator" in given:
        raise Unreadable(f"{node.name} uses alias_generator, which changes the field names")
    return str(module.value_of(given["extra"])) if "extra" in given else None


def writes_itself(module: Module, node: ast.ClassDef) -> bool:
    marks = (mark for each in node.body for mark in getattr(each, "decorator_list", ()))
    return any(module.decorator_name(mark).endswith("_serializer") for mark in marks)
