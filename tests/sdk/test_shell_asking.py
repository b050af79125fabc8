"""Questions of shell tools. The bench plays the server: it reads them from the pipe and writes into the FIFO."""

from __future__ import annotations

import json
import os
import stat
from typing import Any

import pytest

from .conftest import Bench, Run

ACCEPTED = {"action": "accept", "content": {"value": "blue"}}
CAPABLE = {"MCP_ELICIT_SUPPORTED": "1", "MCP_ELICIT_MODES": "form url", "MCP_SAMPLING_SUPPORTED": "1"}
DESK = {"MCP_ASK_REPLY": ""}
SPOKEN = {"role": "assistant", "content": {"type": "text", "text": "42"}, "model": "m"}


def answered(result: Any) -> dict[str, Any]:
    return {"status": "answered", "result": result}


@pytest.fixture
def asking(full: Bench) -> Bench:
    """A host whose client can be asked everything, and says what the test puts into `answer`."""
    full.env.update(CAPABLE, MCP_ASK_REPLY=str(full.directory / "reply"))
    return full


def ask(bench: Bench, body: str, reply: dict[str, Any] | None = None, **env: str) -> Run:
    """Run a script; each key that it asks for gets this reply."""

    def answer(message: Any) -> str:
        return json.dumps({key: reply or answered(ACCEPTED) for key in message["ask"]}) + "\n"

    bench.answer = answer
    return bench.shell(body, **env)


def params_of(run: Run) -> Any:
    [line] = run.lines
    return params_in(line)


def params_in(line: Any) -> Any:
    [request] = line["ask"].values()
    return request["params"]


def test_a_form_is_sent_and_its_answer_printed(asking: Bench) -> None:
    schema = {"type": "object", "properties": {"value": {"type": "string"}}}
    run = ask(asking, 'mcp_elicit "Which \\"colour\\"?" "$SCHEMA"', SCHEMA=json.dumps(schema, indent=1))
    assert (run.exit_code, run.result) == (0, ACCEPTED)
    [line] = run.lines
    [request] = line["ask"].values()
    assert request == {
        "method": "elicitation/create",
        "params": {"mode": "form", "message": 'Which "colour"?', "requestedSchema": schema},
    }
    assert "timeoutSecs" not in line


def test_an_address_is_sent_as_such(asking: Bench) -> None:
    run = ask(asking, "mcp_elicit_url 'Sign in' https://example.com/?a=1 7", answered({"action": "accept"}))
    assert run.result == {"action": "accept", "content": None}
    assert params_of(run) == {"mode": "url", "message": "Sign in", "url": "https://example.com/?a=1"}
    assert run.lines[0]["timeoutSecs"] == 7


@pytest.mark.parametrize(
    ("argument", "configured", "seconds"),
    [("5", "9", 5), ("", "9", 9), ("soon", "2.5", 2.5), ("0", "", None), ("007", "", 7), ("0.5", "", 0.5)],
)
def test_the_time_is_the_argument_then_the_setting_then_the_servers(
    asking: Bench, argument: str, configured: str, seconds: float | None
) -> None:
    run = ask(asking, f"mcp_elicit m '{{}}' '{argument}'", MCPBASH_ELICITATION_TIMEOUT=configured)
    assert run.lines[0].get("timeoutSecs") == seconds


def test_the_reply_goes_through_a_private_fifo_that_does_not_stay(asking: Bench) -> None:
    modes = []

    def answer(message: Any) -> str:
        modes.append(os.stat(message["reply"]).st_mode)
        return json.dumps({"question": answered(ACCEPTED)})  # without a line break at its end

    asking.answer = answer
    assert asking.shell("mcp_elicit_string m; mcp_elicit_string m").exit_code == 0
    assert [(stat.S_ISFIFO(mode), stat.S_IMODE(mode)) for mode in modes] == [(True, 0o600)] * 2
    assert list(asking.directory.glob("reply*")) == []


def test_two_subshells_may_ask_at_the_same_time(asking: Bench) -> None:
    body = """for n in 1 2 3; do mcp_elicit_string "$n" >"answer$n" & done; wait; cat answer1 answer2 answer3"""
    asking.answer = lambda message: json.dumps(
        {"question": answered({"action": "accept", "content": {"value": params_in(message)["message"]}})}
    )
    run = asking.shell(body)
    assert [json.loads(line)["content"]["value"] for line in run.stdout.splitlines()] == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("call", "name", "schema"),
    [
        ("mcp_elicit_string m", "value", {"type": "string"}),
        ("mcp_elicit_string m 'my \"field\"'", 'my "field"', {"type": "string"}),
        ("mcp_elicit_confirm m", "confirmed", {"type": "boolean"}),
        ("mcp_elicit_choice m a 'b c'", "choice", {"type": "string", "enum": ["a", "b c"]}),
        (
            "mcp_elicit_titled_choice m a:Alpha b 'c:C: last'",
            "choice",
            {
                "type": "string",
                "oneOf": [
                    {"const": "a", "title": "Alpha"},
                    {"const": "b", "title": "b"},
                    {"const": "c", "title": "C: last"},
                ],
            },
        ),
        (
            "mcp_elicit_multi_choice m a b",
            "choices",
            {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
        ),
        (
            "mcp_elicit_titled_multi_choice m a:Alpha",
            "choices",
            {"type": "array", "items": {"anyOf": [{"const": "a", "title": "Alpha"}]}},
        ),
    ],
)
def test_ready_made_questions_have_one_required_field(
    asking: Bench, call: str, name: str, schema: dict[str, Any]
) -> None:
    run = ask(asking, call)
    assert run.result["action"] == "accept"
    assert params_of(run) == {
        "mode": "form",
        "message": "m",
        "requestedSchema": {"type": "object", "properties": {name: schema}, "required": [name]},
    }


@pytest.mark.parametrize("call", ["choice", "titled_choice", "multi_choice", "titled_multi_choice"])
def test_a_choice_without_choices_is_not_asked(asking: Bench, call: str) -> None:
    run = ask(asking, f"mcp_elicit_{call} m || echo status $?")
    assert (run.lines, run.stdout.endswith("status 1\n")) == ([], True)
    assert json.loads(run.stdout.splitlines()[0])["reason"] == "invalid"


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_what_the_user_decides_is_an_answer(asking: Bench, action: str) -> None:
    run = ask(asking, "mcp_elicit_confirm m", answered({"action": action}))
    assert (run.exit_code, run.result, run.stderr) == (0, {"action": action, "content": None}, "")


@pytest.mark.parametrize(
    ("reply", "action", "reason", "message"),
    [
        ({"status": "unsupported"}, "decline", "unsupported", "This client cannot show a form to the user"),
        ({"status": "timeout", "message": "30 s"}, "error", "timeout", "30 s"),
        ({"status": "timeout"}, "error", "timeout", "There was no answer in time"),
        ({"status": "cancelled"}, "cancel", "cancelled", "The call was cancelled"),
        ({"status": "error", "message": "a\nb"}, "error", "error", "a\nb"),
        ({"status": "error"}, "error", "error", "The question failed"),
        ({"odd": 1}, "error", "error", "The question failed"),
        ({"status": "invalid", "message": "no sense"}, "error", "invalid", "no sense"),
    ],
)
def test_a_question_without_an_answer_says_why(
    asking: Bench, reply: dict[str, Any], action: str, reason: str, message: str
) -> None:
    run = ask(asking, "mcp_elicit_confirm m || echo $? >&2", reply)
    assert run.result == {"action": action, "content": None, "reason": reason, "message": message}
    assert run.stderr == f"mcp_elicit: {message}\n1\n"


@pytest.mark.parametrize(
    ("env", "call", "action", "reason"),
    [
        ({**DESK, "MCP_ELICIT_SUPPORTED": "0"}, "mcp_elicit m {}", "decline", "unsupported"),
        ({**DESK, "MCP_ELICIT_SUPPORTED": ""}, "mcp_elicit m {}", "decline", "unsupported"),
        ({**DESK, "MCP_ELICIT_MODES": "form"}, "mcp_elicit_url m https://x", "decline", "unsupported"),
        ({**DESK, "MCP_ELICIT_MODES": "url"}, "mcp_elicit m {}", "decline", "unsupported"),
        (DESK, "mcp_elicit m {}", "error", "not_configured"),
        ({"MCP_ASK_REPLY": "/nonexistent/x"}, "mcp_elicit m {}", "error", "error"),
        ({}, "mcp_elicit m '{x'", "error", "invalid"),
        ({}, "mcp_elicit m '[]'", "error", "invalid"),
        ({}, "mcp_elicit m {} 5 loud", "error", "invalid"),
        ({"BIG": "yes"}, "mcp_elicit \"$(printf '%01100000d' 0)\" {}", "error", "invalid"),
        ({"MCP_LOG_STREAM": "", "MCP_PROGRESS_STREAM": ""}, "mcp_elicit m {}", "decline", "unsupported"),
    ],
)
def test_what_cannot_be_asked_is_told_at_once(
    asking: Bench, env: dict[str, str], call: str, action: str, reason: str
) -> None:
    run = ask(asking, f"{call} || echo $? >&2", **env)
    assert (run.result["action"], run.result["content"], run.result["reason"]) == (action, None, reason)
    assert run.stderr.startswith("mcp_elicit: ")
    assert run.stderr.endswith("\n1\n")
    assert (run.lines, list(asking.directory.glob("reply*"))) == ([], [])


def test_the_server_hears_also_what_the_client_cannot_be_asked(asking: Bench) -> None:
    asking.env.update(MCP_ELICIT_SUPPORTED="0", MCP_ELICIT_MODES="", MCP_SAMPLING_SUPPORTED="0")
    run = ask(asking, "mcp_elicit_confirm m || mcp_sample '\"x\"' 5 || echo $?", {"status": "unsupported"})
    assert [request["method"] for line in run.lines for request in line["ask"].values()] == [
        "elicitation/create",
        "sampling/createMessage",
    ]
    assert run.stdout.endswith("\n1\n")


def test_a_call_that_is_cancelled_already_asks_nothing(asking: Bench) -> None:
    asking.cancel_file.touch()
    run = ask(asking, "mcp_elicit m {} || :; mcp_sample '\"x\"' 5 || echo $?")
    assert run.lines == []
    first, last = run.stdout.splitlines()
    assert (json.loads(first)["action"], last) == ("cancel", "4")


def test_without_a_json_tool_nothing_can_be_asked(minimal: Bench) -> None:
    minimal.env.update(CAPABLE, MCP_ASK_REPLY=str(minimal.directory / "reply"))
    run = minimal.shell("mcp_elicit_confirm m || echo $?; mcp_sample '\"x\"' 5 || echo $?; mcp_ask '{}' || echo $?")
    first, *statuses = run.stdout.splitlines()
    assert (json.loads(first)["reason"], statuses, run.lines) == ("no_json_tool", ["1", "2", "2"], [])


def test_the_model_is_asked_with_messages_and_options(asking: Bench) -> None:
    messages = [{"role": "user", "content": {"type": "text", "text": "6 * 7?"}}]
    run = ask(
        asking,
        """mcp_sample "$MESSAGES" 100 '{"systemPrompt": "Be brief", "maxTokens": 1}' 20""",
        answered(SPOKEN),
        MESSAGES=json.dumps(messages),
    )
    assert (run.exit_code, run.result) == (0, SPOKEN)
    assert run.lines[0]["ask"]["question"] == {
        "method": "sampling/createMessage",
        "params": {"systemPrompt": "Be brief", "messages": messages, "maxTokens": 100},
    }
    assert run.lines[0]["timeoutSecs"] == 20


@pytest.mark.parametrize(
    ("status", "code"), [("unsupported", 1), ("timeout", 3), ("cancelled", 4), ("error", 5), ("odd", 5), ("invalid", 2)]
)
def test_the_status_of_sample_tells_what_went_wrong(asking: Bench, status: str, code: int) -> None:
    run = ask(asking, "mcp_sample '\"x\"' 5 || echo $?", {"status": status, "message": "why"})
    assert (run.stdout, run.stderr) == (f"{code}\n", f"mcp_sample: {status}: why\n")


@pytest.mark.parametrize(
    ("call", "env", "code"),
    [
        ("mcp_sample '[]' 5", {}, 2),
        ("mcp_sample '{x' 5", {}, 2),
        ("mcp_sample '5' 5", {}, 2),
        ("mcp_sample '\"x\"' 0", {}, 2),
        ("mcp_sample '\"x\"'", {}, 2),
        ("mcp_sample '\"x\"' 5 '[]'", {}, 2),
        ("mcp_sample '\"x\"' 5", DESK, 1),
    ],
)
def test_a_model_that_cannot_be_asked_is_told_at_once(asking: Bench, call: str, env: dict[str, str], code: int) -> None:
    run = ask(asking, f"{call} || echo $?", **env)
    assert (run.stdout, run.lines) == (f"{code}\n", [])
    assert run.stderr.startswith("mcp_sample: ")


SEVERAL = {
    "name": {"method": "elicitation/create", "params": {"mode": "form", "message": "Name?", "requestedSchema": {}}},
    "sum": {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 5}},
    "roots": {"method": "roots/list"},
}


def test_several_questions_go_out_in_one_round(asking: Bench) -> None:
    run = ask(asking, 'mcp_ask "$REQUESTS" 9', REQUESTS=json.dumps(SEVERAL))
    assert (run.exit_code, run.result) == (0, dict.fromkeys(SEVERAL, ACCEPTED))
    [line] = run.lines
    assert line["ask"] == {**SEVERAL, "roots": {"method": "roots/list", "params": {}}}
    assert line["timeoutSecs"] == 9


def test_answers_and_reasons_stand_side_by_side(asking: Bench) -> None:
    asking.answer = lambda _: json.dumps({"name": answered(ACCEPTED), "sum": {"status": "timeout", "message": "9 s"}})
    run = asking.shell('mcp_ask "$REQUESTS" || echo $? >&2', REQUESTS=json.dumps(SEVERAL))
    assert run.result == {
        "name": ACCEPTED,
        "sum": {"status": "timeout", "message": "9 s"},
        "roots": {"status": "error", "message": "The server did not answer this question"},
    }
    assert run.stderr == "1\n"


@pytest.mark.parametrize("requests", ["", "{x", "{}", "[1]", '{"a":1}', '{"a":{"method":"tools/list"}}'])
def test_a_map_that_makes_no_sense_is_not_sent(asking: Bench, requests: str) -> None:
    run = ask(asking, 'mcp_ask "$REQUESTS" || echo $?', REQUESTS=requests)
    assert (run.stdout, run.lines) == ("2\n", [])
    assert run.stderr.startswith("mcp_ask: ")


def test_a_map_that_makes_no_sense_to_the_server_is_told_from_one_without_answers(asking: Bench) -> None:
    replies = {key: {"status": "invalid", "message": "no\nsense"} for key in SEVERAL}
    asking.answer = lambda _: json.dumps(replies)
    run = asking.shell('mcp_ask "$REQUESTS" || echo $? >&2', REQUESTS=json.dumps(SEVERAL))
    assert run.result == replies
    assert run.stderr == "mcp_ask: no sense\n2\n"


def test_an_unheeded_failure_to_ask_ends_a_strict_script(asking: Bench) -> None:
    run = ask(asking, "answer=$(mcp_elicit_confirm m)\necho went on", {"status": "unsupported"})
    assert (run.exit_code, run.stdout) == (1, "")
    assert run.stderr == "mcp_elicit: This client cannot show a form to the user\n"
