"""Does what somebody typed fit the form that they were shown?

A form is flat and knows few keywords (`shapes.tidy`), so this takes time in proportion to the answer and no
jsonschema, whose import alone would hold up everybody else.
"""

from __future__ import annotations

from typing import Any

from mcpgreen.protocol.input.shapes import TYPES_OF_A_FIELD
from mcpgreen.protocol.schemas.problems import described, listed, quoted, shown
from mcpgreen.text.json_types import Json


def problems_with(schema: Json, content: Json) -> list[str]:
    """What to change in the answer; empty when it fits. Members that the form does not have do no harm."""
    problems = [f"missing required field {quoted(name)}" for name in schema.get("required", ()) if name not in content]
    for name, field in schema["properties"].items():
        problem = _problem_with_field(field, content[name]) if name in content else None
        if problem:
            problems.append(f"{name} {problem}")
    return problems


def _problem_with_field(field: Json, value: Any) -> str | None:
    kind = field["type"]
    if not _is_of(kind, value):
        return f"must be {kind}, got {described(value)}"
    if kind == "array":
        return _problem_with_choices(field, value)
    choices = _choices(field)
    if choices and value not in choices:
        return f"must be one of {listed(map(shown, choices))}, got {described(value)}"
    if kind == "string":
        return _problem_with_number(len(value), field, "minLength", "maxLength", unit=" characters", verb="have")
    if kind in ("integer", "number"):
        return _problem_with_number(value, field, "minimum", "maximum")
    return None


def _problem_with_choices(field: Json, values: list[Any]) -> str | None:
    choices = set(_choices(field["items"]))
    for index, value in enumerate(values):
        if type(value) is not str or value not in choices:
            return f"[{index}] must be one of {listed(map(shown, sorted(choices)))}, got {described(value)}"
    return _problem_with_number(len(values), field, "minItems", "maxItems", unit=" items", verb="have")


def _problem_with_number(
    number: float, field: Json, low: str, high: str, *, unit: str = "", verb: str = "be"
) -> str | None:
    if low in field and number < field[low]:
        return f"must {verb} at least {shown(field[low])}{unit}, got {shown(number)}"
    if high in field and number > field[high]:
        return f"must {verb} at most {shown(field[high])}{unit}, got {shown(number)}"
    return None


def _choices(field: Json) -> list[str]:
    """What may be chosen, plain or with titles; empty where everything may."""
    titled = field.get("oneOf") or field.get("anyOf")
    return [each["const"] for each in titled] if titled else field.get("enum", [])


def _is_of(kind: str, value: Any) -> bool:
    if kind == "integer" and type(value) is float:
        return value.is_integer()
    return type(value) in TYPES_OF_A_FIELD[kind]
