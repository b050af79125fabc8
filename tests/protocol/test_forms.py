"""Answers to forms, judged without jsonschema, and by jsonschema for comparison."""

from __future__ import annotations

import random
from typing import Any

import pytest

from mcpgreen.protocol.input.requests import problems_with_form, tidy
from mcpgreen.protocol.schemas import validator

Json = dict[str, Any]
CHOICES = ["a", "b", "long choice"]
TITLED = [{"const": each, "title": each.upper()} for each in CHOICES]


def random_field(dice: random.Random) -> Json:
    return dice.choice(
        [
            {"type": "string", "minLength": dice.randrange(3), "maxLength": dice.randrange(3, 6)},
            {"type": "string", "enum": CHOICES},
            {"type": "string", "oneOf": TITLED},
            {"type": "integer", "minimum": dice.randrange(-2, 2), "maximum": dice.randrange(2, 4)},
            {"type": "number", "minimum": 0.5},
            {"type": "boolean"},
            {"type": "array", "items": {"enum": CHOICES}, "minItems": dice.randrange(2), "maxItems": 2},
            {"type": "array", "items": {"anyOf": TITLED}},
        ]
    )


def random_value(dice: random.Random) -> Any:
    return dice.choice(
        ["", "a", "abcdefg", "long choice", 0, 1, 3.0, 2.5, -7, True, False, None, [], ["a"], ["a", "b", "a"], [1], {}]
    )


@pytest.mark.parametrize("seed", range(20))
def test_the_judgement_is_that_of_jsonschema(seed: int) -> None:
    dice = random.Random(seed)
    for _ in range(30):
        fields = {f"f{number}": random_field(dice) for number in range(dice.randrange(1, 4))}
        required = [name for name in fields if dice.random() < 0.5]
        asked = {"message": "?", "requestedSchema": {"type": "object", "properties": fields, "required": required}}
        schema = tidy({"method": "elicitation/create", "params": asked})["params"]["requestedSchema"]
        content = {name: random_value(dice) for name in [*fields, "more"] if dice.random() < 0.8}

        expected = validator.compile_schema(schema).problems(content)
        assert bool(problems_with_form(schema, content)) == bool(expected), (schema, content, expected)


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ({"type": "string", "maxLength": 2}, "abc", "f must have at most 2 characters, got 3"),
        ({"type": "integer", "minimum": 2}, 1, "f must be at least 2, got 1"),
        ({"type": "integer"}, "1", 'f must be integer, got string "1"'),
        ({"type": "string", "enum": CHOICES}, "c", 'f must be one of "a", "b", "long choice", got string "c"'),
        ({"type": "array", "items": {"anyOf": TITLED}, "minItems": 1}, [], "f must have at least 1 item, got 0"),
    ],
)
def test_a_problem_is_a_sentence_that_says_what_to_change(field: Json, value: Any, problem: str) -> None:
    assert problems_with_form({"properties": {"f": field}}, {"f": value}) == [problem]
