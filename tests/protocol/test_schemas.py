"""Values against schemas: the answers are right, the sentences helpful, and nothing hostile gets through."""

from __future__ import annotations

import datetime
import random
import socket
from typing import Any

import jsonschema
import pytest

from mcpgreen.protocol.schemas.quick import is_simple, matches
from mcpgreen.protocol.schemas.validator import BadSchema, compile_schema

DRAFTS = {
    "http://json-schema.org/draft-04/schema#": jsonschema.Draft4Validator,
    "http://json-schema.org/draft-06/schema#": jsonschema.Draft6Validator,
    "http://json-schema.org/draft-07/schema#": jsonschema.Draft7Validator,
    "https://json-schema.org/draft/2019-09/schema": jsonschema.Draft201909Validator,
    "https://json-schema.org/draft/2020-12/schema": jsonschema.Draft202012Validator,
}


def problems(schema: dict[str, Any], value: Any) -> list[str]:
    return compile_schema(schema).problems(value)


def of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


class TestSentences:
    """What a model reads when its arguments are refused."""

    @pytest.mark.parametrize(
        ("schema", "value", "sentences"),
        [
            (of(a={"type": "string", "pattern": "^x"}), {"a": "xy"}, []),
            ({"required": list("abc")}, {"a": 1}, ["missing required argument 'b'", "missing required argument 'c'"]),
            (
                of(items={"items": {"required": ["name"]}}),
                {"items": [{"name": 1}, {}]},
                ["missing required argument 'name' in items[1]"],
            ),
            (of(b={"type": "integer"}), {"b": "x"}, ['b must be integer, got string "x"']),
            (of(b={"type": ["integer", "null"]}), {"b": "x"}, ['b must be integer or null, got string "x"']),
            (
                of(b={"anyOf": [{"type": "integer"}, {"type": "null"}]}),
                {"b": "x"},
                ['b must be integer or null, got string "x"'],
            ),
            (
                of(shape={"anyOf": [{"type": "string"}, {"required": ["a", "b"]}, of(radius={"type": "number"})]}),
                {"shape": {"radius": "big"}},
                ['shape matches none of the 3 allowed forms; closest: shape.radius must be number, got string "big"'],
            ),
            (
                of(b={"oneOf": [{"type": "integer"}, {"minimum": 1}]}),
                {"b": 5},
                ["b must match exactly one of the allowed forms, but matches several, got integer 5"],
            ),
            (of(c={"enum": ["red", 3]}), {"c": "blue"}, ['c must be one of "red", 3, got string "blue"']),
            (
                {**of(name={}, size={}), "additionalProperties": False},
                {"nmae": 1},
                ["unexpected argument 'nmae' (did you mean 'name'?); known arguments: 'name', 'size'"],
            ),
            (
                {"patternProperties": {"^x-": {}}, "additionalProperties": False},
                {"x-a": 1, "y": 1},
                ["unexpected argument 'y'; no arguments are allowed here"],
            ),
            (
                {
                    "$schema": "http://json-schema.org/draft-04/schema#",
                    **of(b={"minimum": 1, "exclusiveMinimum": True}),
                },
                {"b": 1},
                ["b must be more than 1, got 1"],
            ),
            (of(b=False), {"b": 1}, ["b is not allowed here, got integer 1"]),
            ({"type": "object"}, [1], ["the value must be object, got array [1]"]),
            ({"allOf": [{"required": ["a"]}, {"required": ["a"]}]}, {}, ["missing required argument 'a'"]),
        ],
    )
    def test_a_problem_is_named_with_its_place(self, schema: Any, value: Any, sentences: list[str]) -> None:
        assert problems(schema, value) == sentences

    @pytest.mark.parametrize(
        ("keyword", "value", "sentence"),
        [
            ({"minimum": 1}, 0, "b must be at least 1, got 0"),
            ({"maximum": 1}, 2, "b must be at most 1, got 2"),
            ({"exclusiveMinimum": 1}, 1, "b must be more than 1, got 1"),
            ({"exclusiveMaximum": 1}, 1, "b must be less than 1, got 1"),
            ({"multipleOf": 5}, 7, "b must be a multiple of 5, got 7"),
            ({"minLength": 2}, "a", "b must have at least 2 characters, got 1"),
            ({"maxLength": 2}, "abc", "b must have at most 2 characters, got 3"),
            ({"minItems": 2}, [], "b must have at least 2 items, got 0"),
            ({"maxItems": 1}, [1, 2], "b must have at most 1 item, got 2"),
            ({"minProperties": 1}, {}, "b must have at least 1 member, got 0"),
            ({"uniqueItems": True}, [1, 1], "b must not have the same item twice, got array [1,1]"),
            ({"pattern": "^a"}, "b", 'b must match the pattern ^a, got string "b"'),
            ({"const": "a"}, "b", 'b must be "a", got string "b"'),
            ({"not": {"type": "string"}}, "b", 'b has a form that is not allowed, got string "b"'),
            ({"propertyNames": {"maxLength": 1}}, {"ab": 1}, "b has a member with a name that is not allowed: 'ab'"),
        ],
    )
    def test_each_common_keyword_has_its_own_words(self, keyword: Any, value: Any, sentence: str) -> None:
        (found,) = problems(of(b=keyword), {"b": value})

        assert found.startswith(sentence)

    @pytest.mark.parametrize(
        ("value", "place"),
        [
            ({"a": {"b-c": [0, {"d e": "x"}]}}, 'a.b-c[1]["d e"]'),
            ({"": "x"}, '[""]'),
        ],
    )
    def test_a_path_reads_like_code(self, value: Any, place: str) -> None:
        schema: dict[str, Any] = {
            "type": ["object", "array", "integer"],
            "additionalProperties": {"$ref": "#"},
            "items": {"$ref": "#"},
        }

        (found,) = problems(schema, value)

        assert found.startswith(f"{place} must be ")

    def test_what_was_sent_is_shortened(self) -> None:
        huge = {"text": "x" * 1_000_000, "list": list(range(1_000_000))}

        for value in (huge["text"], huge["list"], huge, {"y" * 1_000_000: 1}):
            (found,) = problems(of(b={"const": 1}), {"b": value})
            assert len(found) < 150
            assert found.endswith("…")

    def test_only_the_first_problems_are_told(self) -> None:
        schema = of(**{f"p{n}": {"type": "string"} for n in range(8)})

        found = problems(schema, {f"p{n}": n for n in range(8)})

        assert len(found) == 6
        assert found[-1] == "and 3 more"

    def test_problems_without_number_are_not_counted_to_the_end(self) -> None:
        found = problems({"type": "array", "items": {"type": "string"}}, [0] * 100_000)

        assert found[-1] == "and many more"

    def test_members_of_a_result_are_not_called_arguments(self) -> None:
        checker = compile_schema({"type": "object", "required": ["a"]}, noun="property")

        assert checker.problems({}) == ["missing required property 'a'"]


class TestDialects:
    @pytest.mark.parametrize("dialect", [*DRAFTS, "https://json-schema.org/draft-07/schema"])
    def test_every_known_dialect_is_checked(self, dialect: str) -> None:
        checker = compile_schema({"$schema": dialect, **of(a={"type": "integer", "multipleOf": 2})})

        assert checker.problems({"a": 2}) == []
        assert checker.problems({"a": "x"}) == ['a must be integer, got string "x"']

    def test_without_a_dialect_the_newest_is_meant(self) -> None:
        assert problems({"prefixItems": [{"type": "string"}]}, [1]) == ["[0] must be string, got integer 1"]

    def test_an_older_dialect_does_not_know_newer_keywords(self) -> None:
        schema = {"$schema": "http://json-schema.org/draft-07/schema#", "prefixItems": [{"type": "string"}]}

        assert problems(schema, [1]) == []

    @pytest.mark.parametrize("dialect", ["http://json-schema.org/draft-03/schema#", "urn:mine", "", 5, None, []])
    def test_an_unknown_dialect_is_refused_with_the_known_ones(self, dialect: Any) -> None:
        with pytest.raises(BadSchema, match=r"dialect that is not supported; supported: .*2020-12"):
            compile_schema({"$schema": dialect, "type": "object"})

    def test_a_format_is_an_annotation(self) -> None:
        schema = of(a={"type": "string", "format": "email"}, b={"format": "date", "pattern": ""})

        assert problems(schema, {"a": "nobody", "b": "never"}) == []


class TestPatterns:
    """ECMA-262 says what a pattern means. In Python, `$` also stands before a final newline."""

    @pytest.mark.parametrize(
        ("pattern", "fitting", "other"),
        [
            ("^[a-z]+$", "ab", "ab\n"),
            ("^(a|b$)", "b", "b\n"),
            ("^a(?=$)", "a", "a\n"),
            (r"^a\$$", "a$", "a$\n"),
            (r"^\\$", "\\", "\\\n"),
            (r"^[\]$]$", "$", "$\n"),
            ("^[]$]$", "$", "$\n"),
            ("^[^]$]$", "a", "a\n"),
            ("^[$]$", "$", "\n"),
        ],
    )
    @pytest.mark.parametrize("dialect", DRAFTS)
    def test_a_dollar_is_the_end(self, dialect: str, pattern: str, fitting: str, other: str) -> None:
        named = {"$schema": dialect, "patternProperties": {pattern: {}}, "additionalProperties": False}
        for text, is_fitting in ((fitting, True), (other, False)):
            assert (problems({"$schema": dialect, "pattern": pattern}, text) == []) is is_fitting
            assert (problems(named, {text: 1}) == []) is is_fitting

    @pytest.mark.parametrize(
        ("pattern", "fitting", "others"),
        [
            (r"^\d+$", "123", ["١٢٣", "1٢"]),
            (r"^\D$", "\u0661", ["1"]),
            (r"^\w+$", "a_1", ["ſé", "é"]),
            (r"^\W$", "é", ["a"]),
            (r"^[\w-]+$", "a-b", ["é-b"]),
            (r"^[^\d]$", "٣", ["3"]),
            (r"é\b.", "éa", ["é-"]),
            (r"^.+$", "a\t\x85", ["a\rb", "\u2028", "a\u2029", "a\nb"]),
            (r"^[.]\.$", "..", ["a.", "\r."]),
            (r"^\s$", "\u00a0", ["a"]),
            (r"^[\w\s]$", "\u00a0", ["-"]),
            (r"^\\d$", "\\d", ["\\1"]),
            (r"(?<=\d)x", "1x", ["\u0661x"]),
        ],
    )
    def test_digits_and_letters_are_those_of_ascii_and_a_dot_ends_no_line(
        self, pattern: str, fitting: str, others: list[str]
    ) -> None:
        assert problems({"pattern": pattern}, fitting) == []
        assert all(problems({"pattern": pattern}, other) for other in others)
        named = {"patternProperties": {pattern: {}}, "additionalProperties": False}
        assert [bool(problems(named, {text: 1})) for text in (fitting, *others)] == [False] + [True] * len(others)

    def test_names_with_a_final_newline_are_members_that_were_not_expected(self) -> None:
        named = {"patternProperties": {"^a$": {"type": "integer"}}}
        for schema in (
            {**named, "additionalProperties": False},
            {**named, "unevaluatedProperties": False},
            {"allOf": [named], "unevaluatedProperties": False},
            {"$ref": "#/$defs/a", "unevaluatedProperties": False, "$defs": {"a": named}},
            {"properties": {"default": {**named, "additionalProperties": False}}},
            {"propertyNames": {"pattern": "^(a|default)$"}},
        ):
            for name in ("a", "a\n"):
                value = {"default": {name: 1}} if "properties" in schema else {name: 1}
                assert bool(problems(schema, value)) == (name != "a"), schema

    def test_a_reference_leads_to_a_pattern_of_names(self) -> None:
        schema = {"patternProperties": {"^a$": {"type": "integer"}}, "$ref": "#/$defs/b"}
        schema["$defs"] = {"b": {"properties": {"b": {"$ref": "#/patternProperties/%5Ea$"}}}}
        assert problems(schema, {"b": 1, "a": 1}) == []
        assert problems(schema, {"b": "x"}) == ['b must be integer, got string "x"']


class TestBadSchemas:
    @pytest.mark.parametrize(
        ("schema", "reason"),
        [
            ([], "must be an object, not list"),
            (None, "must be an object"),
            (True, "must be an object"),
            ({"type": "strnig"}, 'type .* got string "strnig"'),
            ({"properties": {"a": {"minLength": -1}}}, r"properties\.a\.minLength must be at least 0"),
            ({"required": "a"}, "required must be array"),
            ({"properties": []}, "properties must be object"),
            ({"pattern": "("}, "pattern .*regex"),
            ({"patternProperties": {"(": {}}}, "patternProperties"),
            ({"$ref": "https://example.com/s.json"}, "refers to 'https://example.com/s.json'"),
            ({"$ref": "file:///etc/passwd"}, "refers to 'file:///etc/passwd'"),
            ({"properties": {"a": {"$ref": "other.json"}}}, "refers to 'other.json'"),
            ({"properties": {"a": {"$ref": "#/$defs/none"}}}, "refers to '#/[$]defs/none'"),
            ({"$defs": {"a": {"items": {"$ref": "#none"}}}}, "refers to '#none'"),
            ({"$dynamicRef": "#none"}, "refers to '#none'"),
            ({"$id": "http://[", "$ref": "a"}, "not a URI"),
            ({"$id": "http://a/", "not": {"$id": "http://[", "not": {"$id": "b"}}}, "not a URI"),
            ({"default": datetime.date(2020, 1, 1)}, "cannot be written as JSON"),
            ({"default": float("nan")}, "cannot be written as JSON"),
            ({"description": "x" * 2_000_000}, "larger than 1048576 bytes"),
            ({"enum": list(range(200_000))}, "more than 100000 parts"),
        ],
    )
    def test_a_schema_that_cannot_be_used_is_refused_with_the_reason(self, schema: Any, reason: str) -> None:
        with pytest.raises(BadSchema, match=reason):
            compile_schema(schema)

    def test_a_schema_nested_too_deeply_is_refused(self) -> None:
        schema: dict[str, Any] = {}
        for _ in range(70):
            schema = {"items": schema}

        with pytest.raises(BadSchema, match="deeper than 64"):
            compile_schema(schema)

    def test_a_schema_that_contains_itself_is_refused(self) -> None:
        """YAML aliases can build this."""
        schema: dict[str, Any] = {}
        schema["items"] = schema

        with pytest.raises(BadSchema, match="deeper than 64"):
            compile_schema(schema)

    def test_a_schema_that_multiplies_by_aliases_is_refused_in_time(self) -> None:
        """Nobody would live to see all its parts."""
        schema: dict[str, Any] = {"a": 1}
        for _ in range(60):
            schema = {"x": schema, "y": schema}

        with pytest.raises(BadSchema, match="more than 100000 parts"):
            compile_schema(schema)

    @pytest.mark.parametrize(
        "schema",
        [
            {"$ref": "#"},
            {"allOf": [{"$ref": "#"}]},
            {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
        ],
    )
    def test_a_schema_that_runs_in_circles_is_refused(self, schema: dict[str, Any]) -> None:
        """Left to itself, jsonschema ends such a call with a panic that would take the server along."""
        with pytest.raises(BadSchema, match="refers to itself endlessly"):
            compile_schema(schema)

    def test_a_long_chain_of_references_is_refused(self) -> None:
        parts: dict[str, Any] = {f"p{n}": {"$ref": f"#/$defs/p{n + 1}"} for n in range(500)}

        with pytest.raises(BadSchema, match="more than 64 references"):
            compile_schema({"$defs": {**parts, "p500": {}}, "$ref": "#/$defs/p0"})

    def test_what_stands_beside_a_reference_does_not_count_in_old_drafts(self) -> None:
        schema = {"definitions": {"a": {"$ref": "#/definitions/b", "not": {"$ref": "#/definitions/a"}}, "b": {}}}

        compile_schema({"$schema": "http://json-schema.org/draft-07/schema#", **schema})
        with pytest.raises(BadSchema, match="refers to itself endlessly"):
            compile_schema({"properties": {"a": {"$ref": "#/definitions/a"}}, **schema})

    def test_a_reference_inside_an_unknown_keyword_is_followed_too(self) -> None:
        schema = {"$ref": "#/parts/a", "parts": {"a": {"$ref": "http://example.com/x"}}}

        with pytest.raises(BadSchema, match=r"refers to 'http://example\.com/x'"):
            compile_schema(schema)

    def test_a_part_cannot_be_written_in_another_dialect(self) -> None:
        inner = {"$schema": "http://json-schema.org/draft-07/schema#", "pattern": "a"}

        with pytest.raises(BadSchema, match="a different dialect; use one"):
            compile_schema({"not": inner})

    def test_a_pattern_that_the_draft_did_not_check_is_found_in_use(self) -> None:
        schema = {"$schema": "http://json-schema.org/draft-04/schema#", "patternProperties": {"(": {}}}

        with pytest.raises(BadSchema, match="pattern that cannot be used"):
            problems(schema, {"a": 1})

    def test_nothing_is_fetched(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(*_: Any, **__: Any) -> None:
            raise AssertionError("somebody opened a socket")

        monkeypatch.setattr(socket, "socket", refuse)
        monkeypatch.setattr(socket, "create_connection", refuse)

        with pytest.raises(BadSchema):
            compile_schema({"$ref": "http://127.0.0.1:9/schema.json"})

    def test_data_that_looks_like_a_reference_is_left_alone(self) -> None:
        schema = {
            "properties": {"$ref": {"type": "string"}, "a": {"default": {"$ref": "http://example.com"}}},
            "examples": [{"$ref": "#/nowhere"}],
            "const": {"$ref": "http://example.com"},
        }

        assert problems(schema, {"$ref": "http://example.com"}) == []

    def test_references_within_the_schema_and_to_the_meta_schema_work(self) -> None:
        schema = {
            "$id": "https://example.com/root.json",
            "$defs": {"id": {"$anchor": "id", "type": "integer"}, "far": {"$id": "far.json", "type": "string"}},
            "properties": {
                "a": {"$ref": "#/$defs/id"},
                "b": {"$ref": "#id"},
                "c": {"$ref": "far.json"},
                "d": {"$ref": "https://json-schema.org/draft/2020-12/schema"},
            },
        }

        assert problems(schema, {"a": 1, "b": 2, "c": "x", "d": {"type": "string"}}) == []
        assert len(problems(schema, {"a": "x", "b": "x", "c": 1, "d": {"type": 1}})) == 4

    def test_a_later_change_of_the_original_changes_nothing(self) -> None:
        schema = of(a={"type": "string"})
        checker = compile_schema(schema)
        schema["properties"]["a"]["type"] = "integer"

        assert checker.problems({"a": "x"}) == []


class TestHostileValues:
    def test_a_value_nested_too_deeply_is_a_problem_and_not_a_crash(self) -> None:
        schema = {"$defs": {"n": {"allOf": [{"anyOf": [{"items": {"$ref": "#/$defs/n"}}]}]}}, "$ref": "#/$defs/n"}
        value: list[Any] = []
        for _ in range(2000):
            value = [value]

        assert problems(schema, value) == ["the value is nested too deeply to be checked"]

    def test_a_value_too_deep_for_a_meta_schema_is_a_problem_and_not_a_crash(self) -> None:
        value: dict[str, Any] = {}
        for _ in range(120):
            value = {"not": value}

        schema = {"$ref": "https://json-schema.org/draft/2020-12/schema"}

        assert problems(schema, value) == ["the value is nested too deeply to be checked"]

    def test_a_recursive_schema_takes_a_value_as_deep_as_the_wire_allows(self) -> None:
        value: dict[str, Any] = {}
        for _ in range(100):
            value = {"next": value}

        assert problems(of(next={"$ref": "#"}), value) == []

    def test_a_number_beyond_floats_is_a_problem_and_not_a_crash(self) -> None:
        (found,) = problems({"multipleOf": 0.5}, 10**400)

        assert "too large to be checked" in found

    def test_text_that_is_too_long_for_a_pattern_is_refused_unread(self) -> None:
        """Quadratic patterns are common, and one of these would hold up every other call."""
        (found,) = problems(of(a={"pattern": r"(\s*)*,$|\s*$x"}), {"a": " " * 20_000})

        assert found.startswith("a has more than 10000 characters")

    def test_the_bound_also_holds_behind_a_reference_to_the_root(self) -> None:
        schema = {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "pattern": "a",
            "properties": {"next": {"$ref": "#"}},
        }

        (found,) = problems(schema, {"next": "a" * 20_000})

        assert found.startswith("next has more than 10000 characters")

    def test_any_schema_and_value_give_the_answer_of_jsonschema_or_a_bad_schema(self) -> None:
        dice = random.Random(20)
        for _ in range(700):
            schema, value = any_schema(dice, 3), any_value(dice, 3)
            try:
                found = compile_schema(schema).problems(value)
            except BadSchema as error:
                assert str(error).endswith("."), schema
            else:
                assert all(isinstance(each, str) and len(each) < 3000 for each in found)
                stock = DRAFTS[schema.get("$schema", "https://json-schema.org/draft/2020-12/schema")]
                assert (found == []) == stock(schema).is_valid(value), (schema, value)


class TestQuickAnswers:
    """The shortcut: silent when in doubt, never wrong."""

    def test_whatever_is_accepted_is_valid_in_every_draft(self) -> None:
        dice = random.Random(7)
        accepted = 0
        for _ in range(12_000):
            schema, value = plain_schema(dice, 3), any_value(dice, 3)
            if dice.random() < 0.5:
                value = fitting_value(dice, schema)
            if not (is_simple(schema) and matches(schema, value)):
                continue
            accepted += 1
            for dialect, validator in DRAFTS.items():
                assert validator(schema).is_valid(value), (dialect, schema, value)
            if accepted % 5 == 0:  # the strictest meta-schema of those that the shortcut answers for; slow
                jsonschema.Draft6Validator.check_schema(schema)
        assert accepted > 2000

    @pytest.mark.parametrize(
        ("schema", "value"),
        [
            ({"type": "integer"}, True),
            ({"type": "number"}, True),
            ({"type": "integer"}, 1.0),
            ({"enum": [1]}, True),
            ({"enum": [True]}, 1),
            ({"enum": [1]}, 1.0),
            ({"const": 0}, False),
            ({"enum": [1, True]}, 1),
            ({"enum": [[]]}, []),
            ({"enum": []}, 1),
            ({"minimum": float("nan")}, 1),
            ({"minimum": 1}, float("nan")),
            ({"minimum": True}, 1),
            ({"minLength": 1.0}, "a"),
            ({"minLength": True}, "a"),
            ({"maxLength": -1}, ""),
            ({"type": "any"}, 1),
            ({"type": []}, 1),
            ({"type": ["string", "string"]}, "a"),
            ({"type": {"type": "string"}}, "a"),
            ({"required": True}, {}),
            ({"required": ["a", "a"]}, {"a": 1}),
            ({"required": [1]}, {}),
            ({"properties": {"a": True}}, {}),
            ({"properties": {"a": {"type": "strnig"}}}, {}),
            ({"properties": []}, {}),
            ({"items": [{}]}, []),
            ({"items": True}, []),
            ({"title": 1}, 1),
            ({"examples": 1}, 1),
            ({"deprecated": "yes"}, 1),
            ({"pattern": "a"}, "a"),
            ({"$ref": "#"}, 1),
            ({"minimum": 1, "exclusiveMinimum": True}, 1),
            ({"unknown": 1}, 1),
            ({"$schema": "http://json-schema.org/draft-04/schema#", "required": []}, {}),
            ({"$schema": "urn:mine"}, 1),
            ({"properties": {"a": {"$schema": "urn:mine"}}}, {}),
            ({"type": "object"}, (1, 2)),
            ({}, (1, 2)),
            (True, 1),
            (None, 1),
        ],
    )
    def test_whatever_is_doubtful_is_not_accepted(self, schema: Any, value: Any) -> None:
        assert not (is_simple(schema) and matches(schema, value))


SCALARS = (None, True, False, 0, 1, 1.0, -1, 2, 2.5, 10**30, "", "a", "ab", "é", "😀😀", "1")
NAMES = ("a", "b", "c", "é")
TYPES = ("string", "integer", "number", "boolean", "object", "array", "null")
PATTERNS = ("^a", "b$", "[", ".*", r"\p{L}")


def any_value(dice: random.Random, depth: int) -> Any:
    kind = dice.random()
    if depth and kind < 0.25:
        return {dice.choice(NAMES): any_value(dice, depth - 1) for _ in range(dice.randrange(4))}
    if depth and kind < 0.4:
        return [any_value(dice, depth - 1) for _ in range(dice.randrange(4))]
    return dice.choice(SCALARS)


def fitting_value(dice: random.Random, schema: Any) -> Any:
    """A value that has a fair chance of being valid, or the comparison would mostly see refusals."""
    if not isinstance(schema, dict):
        return dice.choice(SCALARS)
    if isinstance(schema.get("enum"), list) and schema["enum"]:
        return dice.choice(schema["enum"])
    if "const" in schema:
        return schema["const"]
    kind = schema.get("type", dice.choice(TYPES))
    if isinstance(kind, list):
        kind = dice.choice(kind) if kind else "null"
    if kind == "object":
        properties = schema.get("properties")
        members = properties if isinstance(properties, dict) else {}
        return {name: fitting_value(dice, part) for name, part in members.items() if dice.random() < 0.9}
    if kind == "array":
        return [fitting_value(dice, schema.get("items", {})) for _ in range(dice.randrange(4))]
    examples: dict[Any, tuple[Any, ...]] = {
        "string": ("", "a", "ab", "😀😀", "abc"),
        "integer": (0, 1, 2, 1.0, True),
        "number": (0, 1.5, 2, True),
        "boolean": (True, False, 1),
    }
    return dice.choice(examples.get(kind, (None,))) if isinstance(kind, str) else None


def plain_schema(dice: random.Random, depth: int) -> Any:
    """Mostly the keywords that the shortcut knows, sometimes misused, sometimes others."""
    if dice.random() < 0.02:
        return dice.choice([True, False, [], "x"])
    choices: dict[str, Any] = {
        "type": lambda: dice.choice([dice.choice(TYPES), dice.sample(TYPES, 2), dice.choice(TYPES), ["null"]]),
        "enum": lambda: dice.sample(SCALARS, dice.randrange(1, 4)),
        "const": lambda: dice.choice(SCALARS),
        "minimum": lambda: dice.choice([0, 1, -0.5, 1.0]),
        "maximum": lambda: dice.choice([0, 2, 2.5]),
        "minLength": lambda: dice.choice([0, 1, 2]),
        "maxLength": lambda: dice.choice([1, 2, 3]),
        "minItems": lambda: dice.choice([0, 1]),
        "maxItems": lambda: dice.choice([1, 3]),
        "required": lambda: dice.sample(NAMES, dice.randrange(3)),
        "title": lambda: "t",
        "description": lambda: "d",
        "format": lambda: dice.choice(["email", "uri", "ipv4"]),
        "default": lambda: dice.choice(SCALARS),
        "examples": lambda: [1],
        "readOnly": lambda: True,
        "deprecated": lambda: False,
    }
    if depth:
        choices["properties"] = lambda: {
            name: plain_schema(dice, depth - 1) for name in dice.sample(NAMES, dice.randrange(4))
        }
        choices["items"] = lambda: plain_schema(dice, depth - 1)
        choices["additionalProperties"] = lambda: dice.choice([True, False, plain_schema(dice, depth - 1)])
    schema = {keyword: choices[keyword]() for keyword in dice.sample(sorted(choices), dice.randrange(5))}
    if dice.random() < 0.04:
        schema[dice.choice(sorted(choices))] = any_value(dice, 1)
    if dice.random() < 0.03:
        keyword = dice.choice(["pattern", "not", "uniqueItems", "exclusiveMinimum", "minProperties", "x-mine"])
        schema[keyword] = {"pattern": "^a", "not": {}, "uniqueItems": True}.get(keyword, 1)
    return schema


def any_schema(dice: random.Random, depth: int) -> dict[str, Any]:
    """Anything goes: all sorts of keywords with all sorts of values."""
    schema: Any = plain_schema(dice, depth)
    schema = schema if isinstance(schema, dict) else {}
    part = any_schema(dice, depth - 1) if depth else {}
    references = ["#", "#/$defs/a", "#x", "http://example.com/", "a b", "http://[", "#/%zz", ""]
    extras: dict[str, Any] = {
        "$ref": dice.choice(references),
        "$dynamicRef": dice.choice(references),
        "$id": dice.choice(["urn:x", "http://example.com/", "#x", "http://[", ""]),
        "$anchor": "x",
        "$defs": {"a": part},
        "$schema": dice.choice([*DRAFTS, "urn:x"]),
        "anyOf": [part, {"type": "null"}],
        "oneOf": [part, part],
        "allOf": [part],
        "not": part,
        "if": part,
        "then": part,
        "dependentRequired": {"a": ["b"]},
        "dependencies": {"a": dice.choice([part, ["b"]])},
        "pattern": dice.choice(PATTERNS),
        "patternProperties": {dice.choice(PATTERNS): part},
        "propertyNames": dice.choice([part, {"pattern": dice.choice(PATTERNS)}]),
        "unevaluatedProperties": dice.choice([False, part]),
        "unevaluatedItems": False,
        "prefixItems": [part],
        "contains": part,
        "uniqueItems": True,
        "multipleOf": dice.choice([0.1, 2, 1e-300]),
        "minProperties": 1,
        "additionalProperties": dice.choice([False, part]),
        "items": dice.choice([part, [part]]),
    }
    for keyword in dice.sample(sorted(extras), dice.randrange(4)):
        schema[keyword] = extras[keyword]
    return schema
