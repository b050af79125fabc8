"""A tool that asks four things one after the other."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.client import Client
from tests.support.wire import text_of

from .conftest import ENVELOPE, Json, OldTree, Serve

ASK = """
json_bin="${MCPBASH_JSON_TOOL_BIN:-}"
asked() {  # PATH COMMAND...: the answer, or the end
  local path="$1" reply
  shift
  reply="$("$@")" || true
  if [[ "$("${json_bin}" -r '.action' <<<"${reply}")" != "accept" ]]; then
    mcp_result_success "$(mcp_json_obj message "Stopped: $("${json_bin}" -r '.action' <<<"${reply}")")" >&3
    exit 0
  fi
  "${json_bin}" -r "${path} | if type == \\"array\\" then join(\\",\\") else . end" <<<"${reply}"
}
exec 3>&1
sure="$(asked .content.confirmed mcp_elicit_confirm "Go on?")"
[[ -n "${sure}" ]] || exit 0
mode="$(asked .content.choice mcp_elicit_choice "Which mode?" explore safe expert)"
[[ -n "${mode}" ]] || exit 0
quality="$(asked .content.choice mcp_elicit_titled_choice "Which quality?" "high:Large file" "low:Small file")"
[[ -n "${quality}" ]] || exit 0
parts="$(asked .content.choices mcp_elicit_multi_choice "Which parts?" logs cache keys)"
[[ -n "${parts}" ]] || exit 0
mcp_result_success "$(mcp_json_obj sure "${sure}" mode "${mode}" quality "${quality}" parts "${parts}")"
"""

# As it was often written: no answer ends the script, by set -e.
CURT = """
reply="$(mcp_elicit_confirm "Go on?")"
mcp_result_success "${reply}"
"""

# Without the SDK, as the page on elicitation has it.
BY_FILE = """
rm -f "${MCP_ELICIT_RESPONSE_FILE}"
jq -nc '{message: "Go on?", mode: "form", schema: {type: "object", properties: {confirmed: {type: "boolean"}}}}' \\
  >"${MCP_ELICIT_REQUEST_FILE}.tmp"
mv "${MCP_ELICIT_REQUEST_FILE}.tmp" "${MCP_ELICIT_REQUEST_FILE}"
while [[ ! -s "${MCP_ELICIT_RESPONSE_FILE}" ]]; do sleep 0.05; done
cat "${MCP_ELICIT_RESPONSE_FILE}"
"""

ANSWERS: list[Json] = [{"confirmed": True}, {"choice": "safe"}, {"choice": "low"}, {"choices": ["logs", "keys"]}]
ALL_OF_IT = {"sure": "true", "mode": "safe", "quality": "low", "parts": "logs,keys"}
FORMS: Json = {"elicitation": {}}


@pytest.fixture(autouse=True)
def _tools(tree: OldTree) -> None:
    closed = {"type": "object", "properties": {}, "additionalProperties": False}
    tree.shell_tool("elicitation", ASK, name="example-elicitation", inputSchema=closed, outputSchema=ENVELOPE)
    tree.shell_tool("curt", CURT, name="curt")
    tree.shell_tool("by-file", BY_FILE, head="#!/usr/bin/env bash\n", name="by-file")


def answer_all(client: Client, answers: list[Json] = ANSWERS) -> list[Json]:
    asked = []
    for content in answers:
        request = client.asked("elicitation/create")
        asked.append(request)
        client.answer(request, {"action": "accept", "content": content})
    return asked


def test_08_four_questions_come_in_order_under_their_own_ids(serve: Serve) -> None:
    client = serve(capabilities=FORMS)
    id = client.start_tool("example-elicitation")
    asked = answer_all(client)

    assert client.wire.response(id)["result"]["structuredContent"]["result"] == ALL_OF_IT
    assert [request["id"] for request in asked] == [1, 2, 3, 4]
    assert [request["params"]["message"] for request in asked] == [
        "Go on?",
        "Which mode?",
        "Which quality?",
        "Which parts?",
    ]
    first, second, *_ = [request["params"]["requestedSchema"]["properties"] for request in asked]
    assert first["confirmed"]["type"] == "boolean"
    assert second["choice"]["enum"] == ["explore", "safe", "expert"]


def test_08_titles_and_several_choices_are_asked_as_the_revision_has_them(serve: Serve) -> None:
    client = serve("2025-11-25", capabilities=FORMS)
    id = client.start_tool("example-elicitation")
    *_, third, fourth = [request["params"]["requestedSchema"]["properties"] for request in answer_all(client)]

    titles = [{"const": "high", "title": "Large file"}, {"const": "low", "title": "Small file"}]
    assert third["choice"]["oneOf"] == titles
    assert fourth["choices"]["items"]["enum"] == ["logs", "cache", "keys"]
    client.wire.response(id)


def test_08_a_revision_without_several_choices_is_asked_the_rest(serve: Serve) -> None:
    """Forms of 2025-06-18 have no arrays: a client would refuse the question, so the script hears it at once."""
    client = serve("2025-06-18", capabilities=FORMS)
    id = client.start_tool("example-elicitation")
    *_, third = [request["params"]["requestedSchema"]["properties"] for request in answer_all(client, ANSWERS[:3])]

    assert third["choice"]["enumNames"] == ["Large file", "Small file"]
    stopped = client.wire.response(id)["result"]["structuredContent"]
    assert stopped["result"] == {"message": "Stopped: decline"}


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_08_a_person_may_say_no(serve: Serve, action: str) -> None:
    client = serve(capabilities=FORMS)
    id = client.start_tool("example-elicitation")
    client.answer(client.asked("elicitation/create"), {"action": action})

    stopped = client.wire.response(id)["result"]["structuredContent"]
    assert stopped == {"success": True, "result": {"message": f"Stopped: {action}"}}


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25", "2026-07-28"])
def test_08_a_client_that_cannot_be_asked_is_told_by_the_script(serve: Serve, revision: str) -> None:
    stopped = serve(revision).call_tool("example-elicitation")
    assert stopped["structuredContent"]["result"] == {"message": "Stopped: decline"}


def test_08_a_script_that_dies_of_it_is_a_result_for_the_model(serve: Serve) -> None:
    result = serve().call_tool("curt")
    assert result["isError"] is True
    assert text_of(result)


def test_08_a_stateless_client_answers_by_asking_again(serve: Serve) -> None:
    client = serve("2026-07-28", capabilities={"elicitation": {"form": {}}})
    params: dict[str, Any] = {"name": "example-elicitation", "arguments": {}}
    messages = []
    result = client.result("tools/call", params)
    for content in ANSWERS:
        assert result["resultType"] == "input_required"
        ((key, question),) = result["inputRequests"].items()
        messages.append(question["params"]["message"])
        given = {key: {"action": "accept", "content": content}}
        state = {"requestState": result["requestState"]} if "requestState" in result else {}
        result = client.result("tools/call", {**params, "inputResponses": given, **state})

    assert result["structuredContent"]["result"] == ALL_OF_IT
    assert messages == ["Go on?", "Which mode?", "Which quality?", "Which parts?"]


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25"])
def test_08_a_script_asks_by_its_files(serve: Serve, revision: str) -> None:
    client = serve(revision, capabilities=FORMS)
    id = client.start_tool("by-file")
    asked = client.asked("elicitation/create")
    client.answer(asked, {"action": "accept", "content": {"confirmed": True}})

    assert asked["params"]["message"] == "Go on?"
    said = client.wire.response(id)["result"]["structuredContent"]
    assert said == {"action": "accept", "content": {"confirmed": True}}


def test_08_a_script_asks_a_stateless_client_by_its_files(serve: Serve) -> None:
    client = serve("2026-07-28", capabilities={"elicitation": {"form": {}}})
    params: dict[str, Any] = {"name": "by-file", "arguments": {}}
    asked = client.result("tools/call", params)
    ((key, _),) = asked["inputRequests"].items()
    given = {"inputResponses": {key: {"action": "decline"}}, "requestState": asked["requestState"]}

    assert client.result("tools/call", {**params, **given})["structuredContent"] == {
        "action": "decline",
        "content": None,
    }
