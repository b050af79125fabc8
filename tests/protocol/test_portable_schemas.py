"""Schemas as lists have them: what they look like, and that they accept the same values as those of the author."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from mcpgreen.protocol.schemas.portable import kept_references, portable

Json = dict[str, Any]

STRING, NULL = {"type": "string"}, {"type": "null"}
OLD = "http://json-schema.org/draft-07/schema#"
TREE = {"type": "object", "properties": {"inner": {"type": "array", "items": {"$ref": "#/$defs/tree"}}}}


def of(**properties: Any) -> Json:
    return {"type": "object", "properties": properties}


WRITTEN: list[tuple[Any, Any]] = [
    # References.
    ({**of(a={"$ref": "#/$defs/s"}), "$defs": {"s": STRING}}, of(a=STRING)),
    ({**of(a={"$ref": "#/definitions/s"}), "definitions": {"s": STRING}}, of(a=STRING)),
    ({**of(a=STRING), "$defs": {"unused": STRING}}, of(a=STRING)),
    ({**of(a={"$ref": "#/properties/b"}, b=STRING)}, of(a=STRING, b=STRING)),
    ({**of(a={"$ref": "#/$defs/a~1b~0c%20d"}), "$defs": {"a/b~c d": STRING}}, of(a=STRING)),
    (
        {**of(a={"$ref": "#/$defs/x"}), "$defs": {"x": of(b={"$ref": "#/$defs/y"}), "y": STRING}},
        of(a=of(b=STRING)),
    ),
    ({**of(a={"items": [{"$ref": "#/$defs/s"}]}), "$defs": {"s": STRING}}, of(a={"items": [STRING]})),
    ({**of(a={"$ref": "#/$defs/yes"}, b={"$ref": "#/$defs/no"}), "$defs": {"yes": True, "no": False}},
     of(a={}, b={"not": {}})),
    # What stands beside a reference.
    (
        {**of(a={"$ref": "#/$defs/s", "description": "mine"}), "$defs": {"s": {**STRING, "description": "theirs"}}},
        of(a={**STRING, "description": "mine"}),
    ),
    ({**of(a={"$ref": "#/$defs/s", "type": "string"}), "$defs": {"s": STRING}}, of(a=STRING)),
    (
        {**of(a={"$ref": "#/$defs/s", "minLength": 2}), "$defs": {"s": STRING}},
        of(a={"minLength": 2, "allOf": [STRING]}),
    ),
    (
        {**of(a={"$ref": "#/$defs/s", "allOf": [{"maxLength": 2}]}), "$defs": {"s": STRING}},
        of(a={"allOf": [{"maxLength": 2}, STRING]}),
    ),
    (
        {"$schema": OLD, **of(a={"$ref": "#/$defs/s", "minLength": 2, "title": "T"}), "$defs": {"s": STRING}},
        {"$schema": OLD, **of(a={**STRING, "title": "T"})},
    ),
    # At the top, where the type and empty properties are ours.
    ({**of(), "$ref": "#/$defs/all", "$defs": {"all": of(a=STRING)}}, of(a=STRING)),
    # Places that are no schemas, and names that look like keywords.
    (of(a={"type": ["string"], "default": {"$ref": "#/x"}}), of(a={**STRING, "default": {"$ref": "#/x"}})),
    (
        {**of(**{"default": {"$ref": "#/$defs/s"}, "$ref": STRING, "id": STRING}), "$defs": {"s": STRING}},
        of(**{"default": STRING, "$ref": STRING, "id": STRING}),
    ),
    (of(a={"type": ["string"], "x-own": {"type": ["a", "b"]}}), of(a={**STRING, "x-own": {"type": ["a", "b"]}})),
    # Lists of types.
    (of(a={"type": ["string", "null"]}), of(a={"anyOf": [STRING, NULL]})),
    (of(a={"type": ["integer", "number"], "minimum": 1}), of(a={"type": "number", "minimum": 1})),
    (
        of(a={"type": ["string", "integer"], "minLength": 1, "minimum": 2, "title": "T", "default": "x"}),
        of(
            a={
                "title": "T",
                "default": "x",
                "anyOf": [{"type": "string", "minLength": 1}, {"type": "integer", "minimum": 2}],
            }
        ),
    ),
    (
        of(a={**of(b=STRING), "type": ["object", "null"], "required": ["b"]}),
        of(a={"anyOf": [{**of(b=STRING), "required": ["b"]}, NULL]}),
    ),
    (
        of(a={"type": ["string", "null"], "enum": ["a", "b", None], "description": "d"}),
        of(a={"description": "d", "anyOf": [{"type": "string", "enum": ["a", "b"]}, NULL]}),
    ),
    (of(a={"type": ["string", "null"], "enum": ["a"]}), of(a={"type": "string", "enum": ["a"]})),
    (of(a={"type": ["string", "null"], "const": "a"}), of(a={"type": "string", "const": "a"})),
    (of(a={"type": ["boolean", "integer"], "enum": [True, 1]}),
     of(a={"anyOf": [{"type": "boolean", "enum": [True]}, {"type": "integer", "enum": [1]}]})),
    (
        of(a={"type": ["string", "null"], "anyOf": [{"minLength": 1}]}),
        of(a={"anyOf": [{"minLength": 1}], "allOf": [{"anyOf": [STRING, NULL]}]}),
    ),
    ({**of(a={"$ref": "#/$defs/s"}), "$defs": {"s": {"type": ["string", "null"]}}}, of(a={"anyOf": [STRING, NULL]})),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "listed"), WRITTEN)
def test_references_and_lists_of_types_are_written_out(schema: Json, listed: Json) -> None:
    before = repr(schema)

    assert portable(schema) == listed
    assert repr(schema) == before


OPTIONAL: Json = {"type": ["string", "null"]}
KEPT: list[Json] = [
    of(a=STRING),
    {**of(a={"$ref": "#/$defs/tree"}), "$defs": {"tree": TREE}},
    of(a={"$ref": "#"}),
    of(a={"items": {"$ref": "#/properties/a"}}),
    of(a={"$ref": "http://json-schema.org/draft-07/schema#"}),
    {**of(a={"$ref": "#named"}), "$defs": {"s": {"$anchor": "named", **STRING}}},
    {**of(a={"$ref": "#/$defs/s"}), "$defs": {"s": {"$id": "https://example.com/s", **STRING}}},
    {**of(a={"$dynamicRef": "#n"}, b=OPTIONAL), "$defs": {"s": {"$dynamicAnchor": "n", **STRING}}},
    {**of(a={"$recursiveRef": "#"}), "$recursiveAnchor": True, "definitions": {"s": STRING}},
    {"$id": "https://x.example/s", **of(a={"$ref": "https://x.example/s#/$defs/s"}), "$defs": {"s": STRING}},
    {**of(a={"$ref": "s.json"}, b={"$ref": "#/$defs/b"}), "$defs": {"s": {"$id": "s.json", **STRING}, "b": STRING}},
    {**of(a={"$ref": "s.json#/properties/b/type"}, b=OPTIONAL), "$id": "s.json"},
    of(a={"$ref": "#/nowhere"}),
    of(a={"type": []}),
    of(a={"type": ["string", "thing"]}),
    of(a={"type": ["string", "null"], "enum": [5]}),
    {**of(a={"type": ["array", "null"], "items": {"$ref": "#/properties/a/items/anyOf/0"}})},
]


@pytest.mark.parametrize("schema", KEPT)
def test_what_has_no_plainer_form_stays_as_it_is(schema: Json) -> None:
    assert portable(schema) == schema


def test_the_schema_of_the_conformance_suite_keeps_its_definitions() -> None:
    """The suite asks for `$schema`, `$defs` and `$anchor` as they were written."""
    path = Path(__file__).parent.parent / "conformance/project/tools/json_schema_2020_12_tool.meta.json"
    schema = json.loads(path.read_text(encoding="utf-8"))["inputSchema"]

    assert portable(schema) == schema


def test_around_a_reference_that_recurses_the_others_are_written_out() -> None:
    tree = of(label={"$ref": "#/$defs/label"}, inner={"$ref": "#/$defs/trees"})
    schema = {
        **of(a={"$ref": "#/$defs/wrapper"}),
        "$defs": {
            "label": STRING,
            "tree": tree,
            "trees": {"type": "array", "items": {"$ref": "#/$defs/tree"}},
            "wrapper": of(tree={"$ref": "#/$defs/tree"}),
            "unused": STRING,
        },
    }
    listed = portable(schema)

    assert set(kept_references(schema)) == {"#/$defs/tree", "#/$defs/trees"}
    assert listed["properties"] == {"a": of(tree={"$ref": "#/$defs/tree"})}
    assert listed["$defs"]["tree"]["properties"]["label"] == STRING
    assert listed["$defs"].keys() == {"tree", "trees"}


def test_a_schema_that_would_explode_keeps_its_references() -> None:
    levels = {f"d{n}": of(a={"$ref": f"#/$defs/d{n + 1}"}, b={"$ref": f"#/$defs/d{n + 1}"}) for n in range(60)}
    schema = {**of(a={"$ref": "#/$defs/d0"}, b={"type": ["string", "null"]}), "$defs": {**levels, "d60": STRING}}
    listed = portable(schema)

    assert listed["$defs"] == schema["$defs"]
    assert listed["properties"] == {"a": {"$ref": "#/$defs/d0"}, "b": {"anyOf": [STRING, NULL]}}


def test_no_nonsense_in_a_schema_is_a_fault() -> None:
    """A list of a hundred tools must not fail because of one of them."""
    dice = random.Random(6)
    keys = [
        "$ref",
        "type",
        "$defs",
        "definitions",
        "properties",
        "allOf",
        "anyOf",
        "enum",
        "const",
        "items",
        "required",
    ]
    scalars = [None, True, 5, "string", "#/$defs/0", "#/$defs/type", "#/properties/a", "#", "#/allOf/0", "a"]

    def nonsense(depth: int) -> Any:
        kind = dice.randrange(3) if depth else 0
        if kind == 0:
            return dice.choice(scalars)
        if kind == 1:
            return [nonsense(depth - 1) for _ in range(dice.randrange(4))]
        return {dice.choice([*keys, "a"]): nonsense(depth - 1) for _ in range(dice.randrange(5))}

    for _ in range(3000):
        portable({"type": "object", **{dice.choice(keys): nonsense(3) for _ in range(4)}})


@pytest.mark.parametrize("depth", [400, 20_000])
def test_a_schema_of_any_depth_is_no_fault(depth: int) -> None:
    chain = {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(depth)}
    portable({**of(a={"$ref": "#/$defs/d0"}), "$defs": {**chain, f"d{depth}": STRING}})


DEFS: Json = {
    "s": {"type": ["string", "integer"], "maxLength": 2, "minimum": 1},
    "o": {"type": "object", "properties": {"a": {"$ref": "#/$defs/s"}}, "additionalProperties": False},
    "n": {"type": ["object", "null"], "properties": {"a": {"$ref": "#/$defs/n"}, "b": {"$ref": "#/$defs/e"}}},
    "e": {"type": ["string", "null", "number"], "enum": ["a", None, 1, 2.5, True]},
    "l": {"type": ["array", "boolean"], "items": {"$ref": "#/$defs/e"}, "minItems": 1},
    "no": False,
}


def random_schema(dice: random.Random, depth: int = 3) -> Any:
    kind = dice.randrange(8 if depth else 3)
    if kind < 3:
        part: Json = {"$ref": f"#/$defs/{dice.choice(list(DEFS))}"}
        for key, value in (("minLength", 1), ("properties", {"a": STRING}), ("additionalProperties", False)):
            if not dice.randrange(4):
                part[key] = value
        return part
    kinds = dice.sample(["string", "integer", "number", "boolean", "object", "array", "null"], dice.randint(1, 4))
    part = {"type": kinds}
    for key, make in (
        ("minLength", lambda: 1),
        ("multipleOf", lambda: 2),
        ("items", lambda: random_schema(dice, depth - 1)),
        ("properties", lambda: {"a": random_schema(dice, depth - 1)}),
        ("required", lambda: ["a"]),
        ("unevaluatedProperties", lambda: False),
        ("anyOf", lambda: [random_schema(dice, depth - 1), STRING]),
        ("not", lambda: random_schema(dice, depth - 1)),
        ("enum", lambda: [1, "a", None, {"a": 1}]),
    ):
        if not dice.randrange(3):
            part[key] = make()
    return part


def random_value(dice: random.Random, depth: int = 3) -> Any:
    kind = dice.randrange(9 if depth else 7)
    if kind == 7:
        return [random_value(dice, depth - 1) for _ in range(dice.randrange(3))]
    if kind == 8:
        return {dice.choice("abc"): random_value(dice, depth - 1) for _ in range(dice.randrange(3))}
    return [None, True, "a", "long", 1, 2.5, ""][kind]


@pytest.mark.parametrize("dialect", [None, OLD])
def test_both_forms_accept_the_same_values(dialect: str | None) -> None:
    dice = random.Random(5)
    seen = set()
    for _ in range(200):
        schema = {**({"$schema": dialect} if dialect else {}), "allOf": [random_schema(dice)], "$defs": DEFS}
        listed = portable(schema)
        judges = [jsonschema.validators.validator_for(schema)(each) for each in (schema, listed)]
        for _ in range(20):
            value = random_value(dice)
            verdicts = [judge.is_valid(value) for judge in judges]
            seen.add(verdicts[0])
            assert verdicts[0] == verdicts[1], (schema, listed, value)
    assert seen == {True, False}
