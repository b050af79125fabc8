"""The fixtures that ask, with a server of its own for every round.

In `make conformance` one server answers everything, so what is sealed there never meets another process. Here it does.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.client import Client
from tests.support.wire import MODERN, Wire, text_of

Json = dict[str, Any]

KEY = {"MCPGREEN_STATE_KEY": "a secret that several servers share"}
CAPABILITIES: Json = {"elicitation": {}, "sampling": {}, "roots": {}}
ANSWERS: dict[str, Json] = {
    "elicitation/create": {
        "action": "accept",
        "content": {"name": "Alice", "color": "blue", "ok": True, "context": "a test"},
    },
    "sampling/createMessage": {"role": "assistant", "content": {"type": "text", "text": "Paris."}, "model": "m"},
    "roots/list": {"roots": [{"uri": "file:///test/root"}]},
}


def ask(fixtures: Path, method: str, params: Json, *, env: dict[str, str] = KEY) -> Json:
    """The answer of a server that is started for this request alone."""
    with Wire(fixtures, env=env) as wire:
        return Client(wire, MODERN, capabilities=CAPABILITIES).request(method, params)


def answers_to(result: Json) -> Json:
    return {key: ANSWERS[question["method"]] for key, question in result["inputRequests"].items()}


def through_all_rounds(fixtures: Path, method: str, name: str) -> tuple[int, Json]:
    """How often something was asked, and the result at last."""
    answer = ask(fixtures, method, {"name": name})
    rounds = 0
    while answer["result"]["resultType"] == "input_required":
        rounds += 1
        asked = answer["result"]
        retry = {"name": name, "inputResponses": answers_to(asked), "requestState": asked["requestState"]}
        answer = ask(fixtures, method, retry)
    return rounds, answer["result"]


@pytest.mark.parametrize(
    ("name", "rounds", "text"),
    [
        ("test_input_required_result_elicitation", 1, "Hello, Alice!"),
        ("test_input_required_result_sampling", 1, "Paris."),
        ("test_input_required_result_list_roots", 1, "Roots: file:///test/root"),
        ("test_input_required_result_request_state", 1, "state-ok"),
        ("test_input_required_result_tampered_state", 1, "The state is untouched."),
        ("test_input_required_result_multiple_inputs", 1, "Paris. Alice has 1 roots."),
        ("test_input_required_result_multi_round", 2, "Alice likes blue."),
        ("test_input_required_result_capabilities", 1, "Answered: user_name, greeting"),
    ],
)
def test_a_tool_that_asks_goes_on_in_another_process(fixtures: Path, name: str, rounds: int, text: str) -> None:
    asked, result = through_all_rounds(fixtures, "tools/call", name)

    assert (asked, text_of(result)) == (rounds, text)


def test_a_prompt_that_asks_goes_on_in_another_process(fixtures: Path) -> None:
    asked, result = through_all_rounds(fixtures, "prompts/get", "test_input_required_result_prompt")

    assert asked == 1
    assert [message["content"]["text"] for message in result["messages"]] == ["Use this context: a test"]


@pytest.mark.parametrize("ending", ["-TAMPERED", "A"])
def test_a_state_that_was_changed_is_refused(fixtures: Path, ending: str) -> None:
    name = "test_input_required_result_tampered_state"
    asked = ask(fixtures, "tools/call", {"name": name})["result"]

    retry = {"name": name, "inputResponses": answers_to(asked), "requestState": asked["requestState"] + ending}

    assert ask(fixtures, "tools/call", retry)["error"]["code"] == -32602


def test_a_state_of_another_tool_is_refused(fixtures: Path) -> None:
    asked = ask(fixtures, "tools/call", {"name": "test_input_required_result_tampered_state"})["result"]

    other = "test_input_required_result_request_state"
    retry = {"name": other, "inputResponses": answers_to(asked), "requestState": asked["requestState"]}

    assert ask(fixtures, "tools/call", retry)["error"]["code"] == -32602


def test_without_a_shared_key_another_process_refuses_the_state(fixtures: Path) -> None:
    name = "test_input_required_result_request_state"
    asked = ask(fixtures, "tools/call", {"name": name}, env={})["result"]

    retry = {"name": name, "inputResponses": answers_to(asked), "requestState": asked["requestState"]}

    assert ask(fixtures, "tools/call", retry, env={})["error"]["code"] == -32602
