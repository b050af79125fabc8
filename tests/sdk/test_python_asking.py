"""The Python SDK asks: every kind of question, and everything that may come of one."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.asking import Say, Talk, answered, talk, unanswered

from .conftest import SDK

HEAD = f"import os, sys\nsys.path.insert(0, {str(SDK)!r})\nimport mcp_tool\n"
FORM = "{'type': 'object', 'properties': {'name': {'type': 'string'}}}"


def run(directory: Path, body: str, say: Say, **env: str) -> Talk:
    script = directory / "tool.py"
    script.write_text(f"{HEAD}{body}\n", encoding="utf-8")
    return talk([sys.executable, "-B", "-W", "error", str(script)], say, env=env, cwd=directory)


def value_of(directory: Path, expression: str, say: Say, **env: str) -> Any:
    ended = run(directory, f"mcp_tool.emit_json({expression})", say, **env)
    assert ended.exit_code == 0, ended.stderr
    return json.loads(ended.stdout)


def form(content: Any = None, *, action: str = "accept") -> Say:
    """An answer to the one question of a helper."""
    return answered(question={"action": action, **({} if content is None else {"content": content})})


def schema_of(ended: Talk) -> Any:
    [question] = ended.questions
    return question["ask"]["question"]["params"]["requestedSchema"]


def test_a_form_is_asked_in_the_words_of_the_newest_revision(tmp_path: Path) -> None:
    ended = run(tmp_path, f"print(mcp_tool.elicit('Who?', {FORM}, 7.5))", form({"name": "Ada"}))

    assert ended.stdout == "Answer(action='accept', content={'name': 'Ada'})\n"
    [question] = ended.questions
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    params = {"mode": "form", "message": "Who?", "requestedSchema": schema}
    assert question["ask"] == {"question": {"method": "elicitation/create", "params": params}}
    assert question["timeoutSecs"] == 7.5
    assert question["reply"].startswith(str(tmp_path / "replies" / "call."))


def test_the_server_decides_how_long_to_wait_unless_it_is_told(tmp_path: Path) -> None:
    ended = run(tmp_path, f"mcp_tool.elicit('Who?', {FORM})", form({}))

    assert "timeoutSecs" not in ended.questions[0]


def test_each_question_has_a_place_of_its_own_for_the_reply(tmp_path: Path) -> None:
    ended = run(tmp_path, "for _ in 'ab': mcp_tool.confirm('Go?')", form({"confirmed": True}))

    first, second = (question["reply"] for question in ended.questions)
    assert first != second


def test_a_long_reply_arrives_whole(tmp_path: Path) -> None:
    long = "ü" * 300_000

    assert value_of(tmp_path, "len(mcp_tool.ask_string('Say'))", form({"value": long})) == len(long)


def test_a_url_is_asked_without_content(tmp_path: Path) -> None:
    ended = run(tmp_path, "print(mcp_tool.elicit_url('Sign in', 'https://example.com/'))", form({"stray": 1}))

    assert ended.questions[0]["ask"]["question"] == {
        "method": "elicitation/create",
        "params": {"mode": "url", "message": "Sign in", "url": "https://example.com/"},
    }
    assert ended.stdout == "Answer(action='accept', content=None)\n"


@pytest.mark.parametrize("action", ["accept", "decline", "cancel"])
def test_elicit_tells_what_the_person_did(tmp_path: Path, action: str) -> None:
    expression = f"[*(answer := mcp_tool.elicit('Who?', {FORM})), answer.is_accepted]"
    answer = value_of(tmp_path, expression, form({"name": "Ada"}, action=action))

    assert answer == [action, {"name": "Ada"} if action == "accept" else None, action == "accept"]


HELPERS = [
    ("ask_string('Say')", {"value": "x"}, "x", {"value": {"type": "string"}}),
    ("ask_string('Say', 'name', minLength=2)", {"name": "xy"}, "xy", {"name": {"type": "string", "minLength": 2}}),
    ("confirm('Go?')", {"confirmed": False}, False, {"confirmed": {"type": "boolean"}}),
    ("choice('Which?', ['a', 'b'])", {"choice": "b"}, "b", {"choice": {"type": "string", "enum": ["a", "b"]}}),
    (
        "titled_choice('Which?', {'a': 'First', 'b': 'Second'})",
        {"choice": "a"},
        "a",
        {
            "choice": {
                "type": "string",
                "oneOf": [{"const": "a", "title": "First"}, {"const": "b", "title": "Second"}],
            }
        },
    ),
    (
        "multi_choice('Which?', ('a', 'b'), minItems=1)",
        {"choices": ["b", "a"]},
        ["b", "a"],
        {"choices": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "minItems": 1}},
    ),
    (
        "titled_multi_choice('Which?', [('a', 'First')])",
        {"choices": []},
        [],
        {"choices": {"type": "array", "items": {"anyOf": [{"const": "a", "title": "First"}]}}},
    ),
]


@pytest.mark.parametrize(("call", "content", "value", "properties"), HELPERS, ids=[row[0] for row in HELPERS])
def test_a_helper_asks_for_one_field_and_gives_its_value(
    tmp_path: Path, call: str, content: Any, value: Any, properties: Any
) -> None:
    ended = run(tmp_path, f"mcp_tool.emit_json(mcp_tool.{call})", form(content))

    assert json.loads(ended.stdout) == value
    assert schema_of(ended) == {"type": "object", "properties": properties, "required": list(properties)}


def replied(said: str) -> Say:
    """A reply to one question, byte by byte."""
    return lambda _: said.encode()


MISFIT = "AskFailed: The client accepted the form, but its"
NO_OBJECT = "AskFailed: The server's reply is not a JSON object."
LACKING = "AskFailed: The server's reply does not include this question."
ODD_ACTION = '{"question":{"status":"answered","result":{"action":"shrug"}}}'
CONFIRM, SAMPLE, ELICIT = "confirm('Go?')", "sample('Hi', 5)", f"elicit('Who?', {FORM})"
OUTCOMES: list[tuple[str, Say, str]] = [
    ("ask_string('Say')", form({"value": 5}), MISFIT),
    (CONFIRM, form({"confirmed": "yes"}), MISFIT),
    (CONFIRM, form({}), MISFIT),
    ("choice('Which?', ['a'])", form({"choice": "z"}), MISFIT),
    ("choice('Which?', ['a'])", form({"choice": ["a"]}), MISFIT),
    ("titled_choice('Which?', {'a': 'First'})", form({"choice": "First"}), MISFIT),
    ("multi_choice('Which?', ['a'])", form({"choices": "a"}), MISFIT),
    ("multi_choice('Which?', ['a'])", form({"choices": ["a", "z"]}), MISFIT),
    ("titled_multi_choice('Which?', {'a': 'First'})", form({"choices": [{}]}), MISFIT),
    *[(call, form(action="decline"), "Declined: ") for call, *_ in HELPERS],
    *[(call, form(action="cancel"), "Dismissed: ") for call, *_ in HELPERS],
    *[(call, unanswered("unsupported", "So it is."), "Unsupported: So it is.") for call in (ELICIT, SAMPLE, CONFIRM)],
    (CONFIRM, unanswered("timeout"), "AskTimeout: There was no answer in time."),
    (ELICIT, unanswered("timeout", "So it is."), "AskTimeout: So it is."),
    ("elicit_url('Go', 'https://x.example')", unanswered("cancelled", "So it is."), "CallCancelled: So it is."),
    (SAMPLE, unanswered("error", "So it is."), "AskFailed: So it is."),
    (SAMPLE, unanswered("novel", "So it is."), "AskFailed: So it is."),
    (SAMPLE, answered(question={"model": "m"}), "AskFailed: The model's answer has no content."),
    (ELICIT, unanswered("invalid", "It makes no sense."), "ValueError: It makes no sense."),
    ("ask({'k': mcp_tool.roots_request()})", unanswered("invalid", "It makes no sense."), "ValueError: It makes no"),
    (CONFIRM, replied("rubbish"), NO_OBJECT),
    (CONFIRM, replied("[]"), NO_OBJECT),
    (CONFIRM, replied("{}"), LACKING),
    (CONFIRM, replied('{"question":5}'), LACKING),
    (CONFIRM, replied('{"question":{"status":"answered","result":5}}'), "AskFailed: The answer is not an object."),
    (CONFIRM, replied(ODD_ACTION), "AskFailed: The client answered without accepting, declining or cancelling."),
]


def outcome(directory: Path, call: str, say: Say, prepare: str = "", **env: str) -> str:
    """The exception that a question ends with."""
    raised = "except (mcp_tool.NotAnswered, ValueError) as error: print(f'{type(error).__name__}: {error}')"
    return run(directory, f"{prepare}\ntry: mcp_tool.{call}\n{raised}", say, **env).stdout


@pytest.mark.parametrize(("call", "say", "problem"), OUTCOMES, ids=lambda part: str(part)[:40])
def test_without_a_usable_answer_a_question_raises_what_happened(
    tmp_path: Path, call: str, say: Say, problem: str
) -> None:
    assert outcome(tmp_path, call, say).startswith(problem)


def test_an_outcome_that_nobody_catches_ends_with_a_telling_line(tmp_path: Path) -> None:
    ended = run(tmp_path, "mcp_tool.confirm('Go?')", form(action="decline"))

    assert ended.exit_code == 1
    assert ended.stderr.splitlines()[-1] == "mcp_tool.Declined: The user declined to answer."


def test_several_questions_are_asked_in_one_round(tmp_path: Path) -> None:
    body = """
replies = mcp_tool.ask({
    "who": mcp_tool.form_request("Who?", {"properties": {"name": {"type": "string"}}}),
    "page": mcp_tool.url_request("Look", "https://example.com/"),
    "poem": mcp_tool.sampling_request("A poem", 50, temperature=0.5),
    "roots": mcp_tool.roots_request(),
}, timeout=9)
mcp_tool.emit_json([
    replies["who"].answer(), replies["page"].status, replies["poem"].result_or_raise()["model"],
    replies["roots"].result,
])"""

    def say(line: Any) -> Any:
        assert [each["method"] for each in line["ask"].values()] == [
            "elicitation/create",
            "elicitation/create",
            "sampling/createMessage",
            "roots/list",
        ]
        return {
            "who": {"status": "answered", "result": {"action": "decline"}},
            "page": {"status": "unsupported", "message": "no"},
            "poem": {"status": "answered", "result": {"model": "m"}},
            "roots": {"status": "answered", "result": {"roots": []}},
        }

    ended = run(tmp_path, body, say)
    assert json.loads(ended.stdout) == [["decline", None], "unsupported", "m", {"roots": []}]
    assert [question["timeoutSecs"] for question in ended.questions] == [9]


def test_the_model_is_asked_with_its_options(tmp_path: Path) -> None:
    said = {"role": "assistant", "content": {"type": "text", "text": "Hello"}, "model": "m", "stopReason": "endTurn"}
    body = "mcp_tool.emit_json(mcp_tool.sample('Hi', 20, system_prompt='Be brief', stop_sequences=['.']))"
    ended = run(tmp_path, body, answered(question=said))

    assert json.loads(ended.stdout) == ["Hello", [said["content"]], "m", "endTurn"]
    assert ended.questions[0]["ask"]["question"] == {
        "method": "sampling/createMessage",
        "params": {
            "messages": [{"role": "user", "content": {"type": "text", "text": "Hi"}}],
            "maxTokens": 20,
            "systemPrompt": "Be brief",
            "stopSequences": ["."],
        },
    }


def test_messages_may_be_a_whole_conversation_and_the_answer_several_blocks(tmp_path: Path) -> None:
    blocks = [{"type": "text", "text": "a"}, {"type": "image", "data": "", "mimeType": "image/png"}, {"text": "b"}]
    said = {"role": "assistant", "content": blocks, "model": "m"}
    turns = [{"role": "user", "content": {"type": "text", "text": "x"}}]
    ended = run(tmp_path, f"print(mcp_tool.sample({turns!r}, 5).text)", answered(question=said))

    assert ended.stdout == "ab\n"
    assert ended.questions[0]["ask"]["question"]["params"]["messages"] == turns


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        ("ask({})", "ValueError: ask: at least one question"),
        ("confirm('Go?', timeout=0)", "ValueError: ask: timeout must be a positive"),
        ("ask_string('x' * 1100000)", "ValueError: ask: the questions are"),
        ("elicit('Who?', {})", "ValueError: a form needs a schema with properties"),
        ("elicit('Who?', None)", "ValueError: a form needs a schema with properties"),
        ("choice('Which?', [])", "ValueError: a choice needs at least one option"),
        ("titled_choice('Which?', {})", "ValueError: a choice needs at least one option"),
        ("multi_choice('Which?', [])", "ValueError: a choice needs at least one option"),
        ("titled_multi_choice('Which?', [])", "ValueError: a choice needs at least one option"),
        ("sample('Hi', 5, tempo=1)", "TypeError: unknown option 'tempo'; use system_prompt"),
    ],
)
def test_a_question_that_makes_no_sense_is_not_asked(tmp_path: Path, call: str, problem: str) -> None:
    ended = run(tmp_path, f"mcp_tool.{call}", form())

    assert problem in ended.stderr
    assert ended.questions == []


@pytest.mark.parametrize("configured", [("7.5", 7.5), ("0", None), ("soon", None), ("", None)])
def test_forms_wait_as_long_as_is_configured(tmp_path: Path, configured: tuple[str, float | None]) -> None:
    setting = f"os.environ['MCPBASH_ELICITATION_TIMEOUT'] = {configured[0]!r}\n"
    calls = "mcp_tool.confirm('?'); mcp_tool.confirm('?', 3); mcp_tool.ask({'question': mcp_tool.roots_request()})"
    ended = run(tmp_path, setting + calls, form({"confirmed": True}))

    assert [line.get("timeoutSecs") for line in ended.questions] == [configured[1], 3, None]


@pytest.mark.parametrize("missing", ["MCP_ASK_REPLY", "MCP_LOG_STREAM"])
def test_where_nobody_can_be_asked_every_question_is_unsupported(tmp_path: Path, missing: str) -> None:
    ended = outcome(tmp_path, CONFIRM, form({"confirmed": True}), f"del os.environ['{missing}']")

    assert ended == "Unsupported: There is no client to ask.\n"


def test_a_server_that_is_gone_is_a_failure(tmp_path: Path) -> None:
    ended = outcome(tmp_path, CONFIRM, form(), "os.close(97)")

    assert ended == "AskFailed: The question cannot be sent to the server: Bad file descriptor.\n"


def test_a_cancelled_call_does_not_wait_for_its_reply(tmp_path: Path) -> None:
    cancelled = tmp_path / "cancelled"

    def say(_: Any) -> None:
        cancelled.touch()

    ended = outcome(tmp_path, CONFIRM, say, MCP_CANCEL_FILE=str(cancelled))
    assert ended == "CallCancelled: The call was cancelled.\n"


def test_threads_may_ask_at_the_same_time(tmp_path: Path) -> None:
    """No reply comes before both questions are there."""
    asked: list[str] = []

    def say(line: Any) -> None:
        asked.append(line["reply"])
        if len(asked) == 2:
            from tests.support.asking import reply

            for path in asked:
                accepted = {"status": "answered", "result": {"action": "accept", "content": {"confirmed": True}}}
                reply(path, json.dumps({"question": accepted}).encode())

    body = """
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(2) as pool:
    print(list(pool.map(mcp_tool.confirm, ["One?", "Two?"])))"""
    assert run(tmp_path, body, say).stdout == "[True, True]\n"


@pytest.mark.parametrize(
    ("env", "form_and_url"),
    [
        ({"MCP_ELICIT_MODES": "form url"}, [True, True]),
        ({"MCP_ELICIT_MODES": "url"}, [False, True]),
        ({"MCP_ELICIT_MODES": ""}, [False, False]),
        ({"MCP_ELICIT_SUPPORTED": "1"}, [True, False]),
        ({"MCP_ELICIT_SUPPORTED": "0"}, [False, False]),
        ({}, [False, False]),
    ],
)
def test_a_tool_sees_how_people_can_be_asked(tmp_path: Path, env: dict[str, str], form_and_url: list[bool]) -> None:
    assert value_of(tmp_path, "[mcp_tool.can_elicit(), mcp_tool.can_elicit('url')]", form(), **env) == form_and_url


@pytest.mark.parametrize(("value", "can"), [("1", True), ("0", False), ("", False)])
def test_a_tool_sees_whether_the_model_can_be_asked(tmp_path: Path, value: str, can: bool) -> None:
    assert value_of(tmp_path, "mcp_tool.can_sample()", form(), MCP_SAMPLING_SUPPORTED=value) is can


STATELESS = """
responses = mcp_tool.input_responses()
if "who" in responses:
    mcp_tool.emit_json([responses["who"], mcp_tool.request_state()])
else:
    mcp_tool.input_required({"who": mcp_tool.form_request("Who?", {"properties": {}})}, state="step 2")
"""


def test_a_stateless_tool_says_what_it_needs(tmp_path: Path) -> None:
    params = {"mode": "form", "message": "Who?", "requestedSchema": {"type": "object", "properties": {}}}

    assert json.loads(run(tmp_path, STATELESS, form()).stdout) == {
        "resultType": "input_required",
        "inputRequests": {"who": {"method": "elicitation/create", "params": params}},
        "requestState": "step 2",
    }


@pytest.mark.parametrize("is_spilled", [False, True])
def test_a_stateless_tool_goes_on_with_what_it_was_told(tmp_path: Path, is_spilled: bool) -> None:
    responses = json.dumps({"who": {"action": "cancel"}})
    spilled = tmp_path / "responses.json"
    spilled.write_text(responses, encoding="utf-8")
    env = {"MCP_INPUT_RESPONSES_FILE": str(spilled)} if is_spilled else {"MCP_INPUT_RESPONSES_JSON": responses}
    ended = run(tmp_path, STATELESS, form(), MCP_REQUEST_STATE="step 2", **env)

    assert json.loads(ended.stdout) == [{"action": "cancel"}, "step 2"]


TESTED = """
from mcp_tool import Declined, Dismissed, Unsupported, ask, can_elicit, confirm, elicit, sample, testing
form = {"properties": {"a": {"type": "string"}, "b": {"type": "integer"}}}
with testing.answers(True, {"a": "x", "b": 2}, "Hi", Declined, Dismissed, Unsupported, {"roots": []}) as questions:
    assert can_elicit() and confirm("Sure?") is True
    assert elicit("Fill in", form).content == {"a": "x", "b": 2}
    assert sample("Say hi", 10).text == "Hi"
    assert [elicit("Go?", form).action for _ in "ab"] == ["decline", "cancel"]
    replies = ask({"u": mcp_tool.url_request("See", "https://a"), "r": mcp_tool.roots_request()})
    assert (replies["u"].status, replies["r"].result) == ("unsupported", {"roots": []})
assert [each["params"].get("message") for each in questions[:2]] == ["Sure?", "Fill in"]
assert not can_elicit()
for answers in ((), (True, False), ("no",)):
    try:
        with testing.answers(*answers):
            confirm("Sure?")
    except (AssertionError, mcp_tool.AskFailed) as problem:
        print(problem)
"""


def test_a_test_answers_in_place_of_a_client(tmp_path: Path) -> None:
    ended = run(tmp_path, TESTED, unanswered("unsupported"), MCP_ASK_REPLY="", MCP_LOG_STREAM="")

    assert ended.exit_code == 0, ended.stderr
    missing, left, misfit = ended.stdout.splitlines()
    assert missing.startswith("no answer is left for") and "Sure?" in missing
    assert left == "these answers were not used: (False,)"
    assert "does not match the question" in misfit
