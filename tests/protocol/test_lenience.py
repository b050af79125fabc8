"""What arguments may have been meant to be."""

from __future__ import annotations

from typing import Any

import pytest

from mcpgreen.protocol.schemas.lenience import Lenience

Json = dict[str, Any]


def meant(schema: Any, value: Any) -> Any:
    """Of one property, which may also be left out."""
    whole = {"type": "object", "properties": {"a": schema}}
    return Lenience(whole).meant({"a": value}).get("a", ...)


@pytest.mark.parametrize(
    ("type_name", "text", "value"),
    [
        ("integer", "5", 5),
        ("integer", "-12", -12),
        ("integer", "0", 0),
        ("integer", "9" * 30, int("9" * 30)),
        ("number", "5", 5),
        ("number", "5.0", 5.0),
        ("number", "19.90", 19.9),
        ("number", "-1e3", -1000.0),
        ("number", "0.0", 0.0),
        ("boolean", "true", True),
        ("boolean", "false", False),
        ("null", "null", None),
        ("array", '["a", 1]', ["a", 1]),
        ("object", '{"a": {}}', {"a": {}}),
    ],
)
def test_text_counts_as_what_it_is_in_json(type_name: str, text: str, value: Any) -> None:
    found = meant({"type": type_name}, text)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("type_name", "text"),
    [
        *(
            ("integer", text)
            for text in ("", " 5", "5 ", "+5", "05", "5.0", "1e3", "0x5", "\u0665", "-0", "-", "five", "1_000")
        ),
        *(("integer", text) for text in ("true", "null", "[5]", "9" * 2000)),
        *(("number", text) for text in ("", ".5", "5.", "1e", "NaN", "Infinity", "1e999", "1e-999", "1,5", "1/2")),
        ("number", "0.12345678901234567890"),  # more digits than a double keeps
        *(("boolean", text) for text in ("True", "yes", "on", "1", "0", "", "null")),
        *(("array", text) for text in ("", "[", "[1", "1,2", "[1e999]", "{}", "[" * 200 + "]" * 200)),
        *(("object", text) for text in ("{", "{]", "[]", "{'a': 1}", "null")),
        ("null", ""),
    ],
)
def test_other_text_stays_as_it_is(type_name: str, text: str) -> None:
    assert meant({"type": type_name}, text) == text


@pytest.mark.parametrize(
    "schema",
    [
        {},
        True,
        {"type": "string"},
        {"type": ["integer", "string"]},
        {"anyOf": [{"type": "integer"}, {"type": "string"}]},
        {"oneOf": [{"type": "integer"}, {"$ref": "#/properties/a/oneOf/2"}, {"type": "string"}]},
        {"enum": ["5", 5]},
        {"const": "6"},
        {"$ref": "https://elsewhere.example/integer"},
        {"$dynamicRef": "#integer"},
        {"not": {"type": "string"}},
    ],
    ids=str,
)
def test_text_that_may_be_meant_as_text_is_never_changed(schema: Any) -> None:
    assert meant(schema, "5") == "5"


@pytest.mark.parametrize(
    "schema",
    [
        {"enum": [5, 6]},
        {"const": 5},
        {"type": ["integer", "null"]},
        {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        {"allOf": [{"type": ["string", "integer"]}, {"type": "integer"}]},
        {"anyOf": [{"type": "string"}, {"type": "integer"}], "type": "integer"},
    ],
    ids=str,
)
def test_the_type_is_found_wherever_the_schema_says_it(schema: Any) -> None:
    assert meant(schema, "5") == 5


@pytest.mark.parametrize(("dialect", "value"), [("draft/2020-12", "5"), ("draft-07", 5)])
def test_a_reference_is_followed_and_hides_its_neighbours_in_old_drafts(dialect: str, value: Any) -> None:
    schema: Json = {"$defs": {"a/b": {"type": "integer"}}, "properties": {"a": {"$ref": "#/$defs/a~1b"}}}
    assert Lenience(schema).meant({"a": "5"}) == {"a": 5}

    schema["$schema"] = f"https://json-schema.org/{dialect}/schema"
    schema["properties"]["a"] |= {"type": "object"}
    assert Lenience(schema).meant({"a": "5"}) == {"a": value}


def test_a_tree_of_references_is_read_to_its_leaves() -> None:
    node = {
        "type": "object",
        "properties": {"size": {"type": "integer"}, "children": {"type": "array", "items": {"$ref": "#"}}},
    }
    value = {"size": "1", "children": [{"size": 2}, {"size": "3", "children": [{"size": None}]}]}
    assert Lenience(node).meant(value) == {"size": 1, "children": [{"size": 2}, {"size": 3, "children": [{}]}]}


def test_members_and_items_are_read_by_their_own_schemas() -> None:
    schema = {
        "type": "object",
        "properties": {
            "list": {"type": "array", "items": {"type": "integer"}},
            "pair": {"type": "array", "prefixItems": [{"type": "boolean"}], "items": {"type": "integer"}},
            "model": {"anyOf": [{"type": "object", "properties": {"n": {"type": "number"}}}, {"type": "null"}]},
            "either": {"anyOf": [{"type": "object"}, {"type": "object", "properties": {"n": {"type": "number"}}}]},
            "__proto__": {"type": "integer"},
            "constructor": {"type": "integer"},
        },
        "additionalProperties": {"type": "boolean"},
    }
    value = {
        "list": ["1", 2, "x", None],
        "pair": ["true", "7"],
        "model": '{"n": "0.5"}',
        "either": {"n": "0.5"},
        "__proto__": "1",
        "constructor": "2",
        "toString": "true",
    }
    assert Lenience(schema).meant(value) == {
        "list": [1, 2, "x", None],
        "pair": [True, 7],
        "model": {"n": 0.5},
        "either": {"n": "0.5"},  # which of the two was meant, nobody knows
        "__proto__": 1,
        "constructor": 2,
        "toString": True,
    }


def test_null_counts_as_absent_where_it_is_not_admitted() -> None:
    schema = {
        "type": "object",
        "properties": {
            "optional": {"type": "string"},
            "needed": {"type": "string"},
            "admitted": {"type": ["string", "null"]},
            "listed": {"enum": ["a", None]},
            "anything": {},
            "inner": {"type": "object", "properties": {"optional": {"type": "integer"}}},
        },
        "allOf": [{"required": ["needed"]}],
        "additionalProperties": {"type": "string"},
    }
    value = {name: None for name in schema["properties"] if name != "inner"}  # type: ignore[attr-defined]
    found = Lenience(schema).meant({**value, "unknown": None, "inner": {"optional": None}})
    kept = dict.fromkeys(("needed", "admitted", "listed", "anything", "unknown"))
    assert found == {**kept, "inner": {}}


def test_an_unbounded_descent_changes_nothing() -> None:
    value: Any = {"size": "5"}
    for _ in range(2000):
        value = {"next": value}
    schema = {"type": "object", "properties": {"next": {"$ref": "#"}, "size": {"type": "integer"}}}
    assert Lenience(schema).meant(value) is value
