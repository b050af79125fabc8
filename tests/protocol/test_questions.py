"""Questions as data: which may be asked of whom, in which shape, and which answers fit."""

from __future__ import annotations

from typing import Any

import pytest

from mcpgreen.errors import MissingClientCapability
from mcpgreen.protocol.input.requests import (
    fault_of,
    fit,
    is_met,
    need_of,
    problem_with,
    problem_with_answer,
    require_met,
    tidy,
)
from mcpgreen.protocol.revisions import BY_NAME
from tests.support.questions import accept, form, sample, url

Json = dict[str, Any]

NEWEST = BY_NAME["2026-07-28"]
BLOCK = {"type": "text", "text": "x"}
AUDIO = {"type": "audio", "data": "AA==", "mimeType": "audio/wav"}
PICTURE = {"type": "image", "data": "AA==", "mimeType": "image/png"}
TITLED = [{"const": "a", "title": "A"}, {"const": "b", "title": "B"}]
FIELDS: dict[str, Json] = {
    "text": {"type": "string", "minLength": 1, "maxLength": 9, "format": "email", "default": "a@b.c", "title": "T"},
    "whole": {"type": "integer", "minimum": 1, "maximum": 9, "default": 5},
    "part": {"type": "number", "minimum": 0.5, "description": "D"},
    "flag": {"type": "boolean", "default": True},
    "one": {"type": "string", "enum": ["a", "b"], "default": "a"},
    "named": {"type": "string", "oneOf": TITLED, "default": "b"},
}
SEVERAL: dict[str, Json] = {
    "some": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "minItems": 1, "default": ["a"]},
    "titled": {"type": "array", "items": {"anyOf": TITLED}, "maxItems": 2},
}


def put(question: Json, revision: str) -> Json:
    """The params as they are sent."""
    return fit(tidy(question), BY_NAME[revision], elicitation_id="id-1")


@pytest.mark.requirement("P-204")
@pytest.mark.parametrize(
    ("declared", "revision", "form_too", "url_too"),
    [
        ({}, "2026-07-28", False, False),
        ({"elicitation": {}}, "2026-07-28", True, False),
        ({"elicitation": {"form": {}}}, "2026-07-28", True, False),
        ({"elicitation": {"url": {}}}, "2026-07-28", False, True),
        ({"elicitation": {"form": {}, "url": {}}}, "2025-11-25", True, True),
        ({"elicitation": {"url": {}}}, "2025-11-25", False, True),
        ({"elicitation": {}}, "2025-06-18", True, False),
        ({"elicitation": {"form": {}, "url": {}}}, "2025-06-18", True, False),
        ({"elicitation": {}}, "2025-03-26", False, False),
        ({"elicitation": {}}, "2024-11-05", False, False),
        ({"elicitation": True}, "2026-07-28", False, False),
        ({"elicitation": None}, "2026-07-28", False, False),
    ],
)
def test_forms_and_addresses_take_what_the_client_declared(
    declared: Json, revision: str, form_too: bool, url_too: bool
) -> None:
    assert is_met("elicitation.form", declared, BY_NAME[revision]) is form_too
    assert is_met("elicitation.url", declared, BY_NAME[revision]) is url_too


@pytest.mark.requirement("P-204")
@pytest.mark.parametrize(
    ("declared", "revision", "plain", "with_tools"),
    [
        ({"sampling": {}}, "2024-11-05", True, False),
        ({"sampling": {"tools": {}}}, "2025-06-18", True, False),
        ({"sampling": {"tools": {}}}, "2025-11-25", True, True),
        ({"sampling": {}}, "2026-07-28", True, False),
        ({"sampling": {"tools": {}}}, "2026-07-28", True, True),
        ({}, "2026-07-28", False, False),
    ],
)
def test_tools_in_a_sample_take_a_client_that_has_them(
    declared: Json, revision: str, plain: bool, with_tools: bool
) -> None:
    assert is_met("sampling", declared, BY_NAME[revision]) is plain
    assert is_met("sampling.tools", declared, BY_NAME[revision]) is with_tools


@pytest.mark.requirement("P-204")
def test_each_question_knows_its_need() -> None:
    tool = {"name": "t", "inputSchema": {"type": "object"}}

    assert need_of(form("?", name={"type": "string"})) == "elicitation.form"
    assert need_of(url("?", "https://example.org")) == "elicitation.url"
    assert need_of(sample("?")) == "sampling"
    assert need_of(sample("?", tools=[tool])) == "sampling.tools"
    assert need_of(sample("?", toolChoice={"mode": "none"})) == "sampling.tools"
    assert need_of({"method": "roots/list"}) == "roots"


@pytest.mark.requirement("P-017", "P-204")
def test_all_that_is_missing_is_named_as_one_object_of_capabilities() -> None:
    needs = ("elicitation.form", "elicitation.url", "roots", "sampling")
    with pytest.raises(MissingClientCapability) as caught:
        require_met(needs, {"roots": {}}, NEWEST)

    assert caught.value.data == {"requiredCapabilities": {"elicitation": {"form": {}, "url": {}}, "sampling": {}}}
    assert "elicitation.form, elicitation.url, sampling" in caught.value.message


@pytest.mark.requirement("P-212")
@pytest.mark.parametrize("name", [*FIELDS, *SEVERAL])
def test_every_kind_of_field_may_be_asked_for(name: str) -> None:
    question = form("?", **{name: {**FIELDS, **SEVERAL}[name]})

    assert problem_with(question) is None
    assert tidy(question) == question


@pytest.mark.requirement("P-212")
@pytest.mark.parametrize(
    "field",
    [
        {"type": "object", "properties": {}},
        {"type": "null"},
        {"type": ["string", "null"]},
        {},
        5,
        {"type": "array"},
        {"type": "array", "items": {"type": "string"}},
        {"type": "array", "items": {"type": "object"}},
        {"type": "array", "items": {"enum": []}},
        {"type": "array", "items": {"anyOf": [{"const": "a"}]}},
        {"type": "string", "enum": [1, 2]},
        {"type": "string", "enum": []},
        {"type": "string", "oneOf": ["a"]},
        {"type": "string", "oneOf": [{"const": "a"}]},
        {"type": "string", "oneOf": [{"const": 1, "title": "one"}]},
        {"type": "string", "enum": ["a"], "enumNames": "A"},
        {"type": "string", "title": 5},
        {"type": "string", "minLength": "2"},
        {"type": "integer", "minimum": None},
        {"type": "array", "items": {"enum": ["a"]}, "minItems": 1.5},
        {"type": "boolean", "default": "yes"},
        {"type": "array", "items": {"enum": ["a"]}, "default": "a"},
    ],
    ids=str,
)
def test_a_field_that_no_form_can_have_is_named(field: Any) -> None:
    problem = problem_with(form("?", odd=field))

    assert problem is not None and problem.startswith("field odd ")


@pytest.mark.requirement("P-212")
@pytest.mark.parametrize(
    "question",
    [
        None,
        [],
        {"method": "tools/call"},
        {"method": "roots/list", "params": []},
        {"method": "elicitation/create"},
        {"method": "elicitation/create", "params": {"message": 5, "requestedSchema": {"properties": {}}}},
        {"method": "elicitation/create", "params": {"message": "?", "requestedSchema": {"type": "array"}}},
        {"method": "elicitation/create", "params": {"message": "?", "requestedSchema": {"properties": []}}},
        {
            "method": "elicitation/create",
            "params": {"message": "?", "requestedSchema": {"properties": {}, "required": ["a"]}},
        },
        {"method": "elicitation/create", "params": {"mode": "smoke", "message": "?"}},
        {"method": "elicitation/create", "params": {"mode": "url", "message": "?"}},
        url("?", "not an address"),
        {"method": "sampling/createMessage", "params": {}},
        sample("?", maxTokens=0),
        sample("?", maxTokens=True),
        sample("?", messages=[]),
        sample("?", messages=[5]),
        sample("?", messages=[{"role": "system", "content": BLOCK}]),
        sample("?", messages=[{"role": "user", "content": "x"}]),
        sample("?", messages=[{"role": "user", "content": []}]),
        sample("?", messages=[{"role": "user", "content": {"type": "resource"}}]),
        sample("?", messages=[{"role": "user", "content": {"type": "image", "data": "x"}}]),
    ],
    ids=lambda question: str(question)[:60],
)
def test_what_makes_no_sense_is_not_asked(question: Any) -> None:
    fault = fault_of({"key": question})

    assert fault is not None and fault.startswith("key: ")


def test_a_round_has_some_questions_and_not_too_many() -> None:
    question = form("?", name={"type": "string"})

    assert fault_of({str(number): question for number in range(32)}) is None
    assert fault_of({str(number): question for number in range(33)})
    assert fault_of({}) and fault_of([question]) and fault_of(None)


def test_a_number_that_cannot_be_sent_is_a_fault() -> None:
    assert fault_of({"key": sample("?", temperature=float("inf"))}) == "a number is out of range"


@pytest.mark.requirement("P-202", "P-212")
def test_what_clients_do_not_know_is_left_out() -> None:
    odd = form("?", name={"type": "string", "pattern": "x", "format": "regex", "minLength": 2})
    odd |= {"id": 5, "jsonrpc": "2.0"}
    odd["params"] |= {"_meta": {}, "elicitationId": "mine"}
    odd["params"]["requestedSchema"]["additionalProperties"] = False

    assert tidy(odd) == form("?", name={"type": "string", "minLength": 2})
    assert tidy(sample("?", task={}, _meta={})) == sample("?")
    assert tidy({"method": "roots/list", "params": {"cursor": "x"}}) == {"method": "roots/list", "params": {}}


@pytest.mark.requirement("P-212")
def test_what_a_form_must_have_is_added() -> None:
    bare = {"message": "?", "requestedSchema": {"properties": {"name": {"type": "string"}}}}

    assert tidy({"method": "elicitation/create", "params": bare})["params"] == {
        "mode": "form",
        "message": "?",
        "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
    }


def test_the_first_clients_with_forms_get_what_forms_were_then() -> None:
    params = put(form("?", **FIELDS), "2025-06-18")

    assert params.keys() == {"message", "requestedSchema"}
    assert params["requestedSchema"]["properties"] == {
        "text": {key: value for key, value in FIELDS["text"].items() if key != "default"},
        "whole": {"type": "integer", "minimum": 1, "maximum": 9},
        "part": FIELDS["part"],
        "flag": FIELDS["flag"],
        "one": {"type": "string", "enum": ["a", "b"]},
        "named": {"type": "string", "enum": ["a", "b"], "enumNames": ["A", "B"]},
    }


@pytest.mark.parametrize("name", SEVERAL)
def test_the_first_clients_with_forms_cannot_choose_several(name: str) -> None:
    with pytest.raises(ValueError, match="multiple choice"):
        put(form("?", **{name: SEVERAL[name]}), "2025-06-18")


@pytest.mark.parametrize("revision", sorted(BY_NAME))
def test_text_and_pictures_are_sampled_from_everybody(revision: str) -> None:
    messages = [{"role": "user", "content": BLOCK}, {"role": "assistant", "content": PICTURE}]
    preferences = {"hints": [{"name": "small"}], "speedPriority": 0.5}
    question = sample("", messages=messages, modelPreferences=preferences, systemPrompt="s", stopSequences=["."])

    assert put(question, revision) == question["params"]


def test_sounds_are_sampled_from_clients_that_know_them() -> None:
    question = sample("", messages=[{"role": "user", "content": AUDIO}])

    assert put(question, "2025-03-26") == question["params"]
    with pytest.raises(ValueError, match="audio"):
        put(question, "2024-11-05")


def test_several_blocks_in_one_message_become_messages_of_older_clients() -> None:
    question = sample("", messages=[{"role": "user", "content": [BLOCK, PICTURE]}])

    assert put(question, "2025-11-25") == question["params"]
    assert put(question, "2025-06-18")["messages"] == [
        {"role": "user", "content": BLOCK},
        {"role": "user", "content": PICTURE},
    ]


def test_older_clients_cannot_be_told_of_uses_of_tools() -> None:
    used = {"type": "tool_use", "id": "1", "name": "t", "input": {}}

    with pytest.raises(ValueError, match="tool_use"):
        put(sample("", messages=[{"role": "assistant", "content": used}]), "2025-06-18")


@pytest.mark.parametrize(
    "answer",
    [
        {"action": "decline"},
        {"action": "cancel"},
        {"action": "decline", "content": {"odd": 1}},
        accept(text="a@b.c", whole=3, part=1.5, flag=False, one="b", named="a", some=["b"], titled=[]),
        accept(text="a@b.c", whole=3, part=2, flag=False, one="b", named="a", some=["a", "b"], titled=["a"], more=1),
    ],
)
def test_answers_that_fit(answer: Json) -> None:
    assert problem_with_answer(form("?", **FIELDS, **SEVERAL), answer) is None


def test_nothing_is_an_answer_to_a_form_that_demands_nothing() -> None:
    question = form("?", name={"type": "string"})
    del question["params"]["requestedSchema"]["required"]

    assert problem_with_answer(question, {"action": "accept"}) is None
    assert problem_with_answer(question, {"action": "accept", "content": None}) is None
    assert problem_with_answer(form("?", name={"type": "string"}), {"action": "accept"})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ({"type": "string", "minLength": 2}, "a"),
        ({"type": "string"}, 5),
        ({"type": "integer"}, 1.5),
        ({"type": "number", "maximum": 5}, 6),
        ({"type": "boolean"}, "yes"),
        (FIELDS["one"], "c"),
        (FIELDS["named"], "A"),
        (SEVERAL["some"], []),
        (SEVERAL["some"], ["c"]),
        (SEVERAL["titled"], "a"),
    ],
)
def test_values_that_do_not_fit_their_field(field: Json, value: Any) -> None:
    problem = problem_with_answer(form("?", field=field), accept(field=value))

    assert problem is not None and "field" in problem


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (form("?"), None),
        (form("?"), []),
        (form("?"), {}),
        (form("?"), {"action": "shrug"}),
        (form("?"), {"action": "accept", "content": []}),
        (url("?", "https://example.org"), {"action": 1}),
        (sample("?"), {"content": BLOCK, "model": "m"}),
        (sample("?"), {"role": "assistant", "content": "x", "model": "m"}),
        (sample("?"), {"role": "assistant", "content": BLOCK}),
        ({"method": "roots/list", "params": {}}, {}),
        ({"method": "roots/list", "params": {}}, {"roots": ["file:///x"]}),
    ],
)
def test_answers_that_make_no_sense(question: Json, answer: Any) -> None:
    assert problem_with_answer(question, answer)
