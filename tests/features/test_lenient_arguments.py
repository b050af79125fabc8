"""Arguments as models and old helpers send them: what was meant reaches the script."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.features.test_costly_checks import EMAIL, ENDLESS
from tests.support import ways
from tests.support.client import ALL_REVISIONS, Client, Speak
from tests.support.project import ProjectBuilder
from tests.support.wire import MODERN, Json, text_of

way, project, shared_project = ways.way, ways.project, ways.shared_project

SHOW = 'if [ -n "$MCP_TOOL_ARGS_FILE" ]; then cat "$MCP_TOOL_ARGS_FILE"; else printf %s "$MCP_TOOL_ARGS_JSON"; fi'
PLAIN: Json = {
    "type": "object",
    "properties": {
        "count": {"type": "integer", "minimum": 1},
        "is_loud": {"type": "boolean"},
        "name": {"type": "string"},
        "list": {"type": "array", "items": {"type": "integer"}},
    },
    "required": ["name"],
    "additionalProperties": False,
}
# The same for a process of its own: `anyOf` and references are not judged in the server.
WITH_CHOICES: Json = {
    **PLAIN,
    "$defs": {"count": PLAIN["properties"]["count"]},
    "properties": {
        **PLAIN["properties"],
        "count": {"$ref": "#/$defs/count"},
        "is_loud": {"anyOf": [{"type": "boolean"}, {"type": "integer"}]},
    },
}


@pytest.fixture(scope="module", autouse=True)
def _tools(shared_project: ProjectBuilder) -> None:
    shared_project.tool("plain", SHOW, inputSchema=PLAIN)
    shared_project.tool("choices", SHOW, inputSchema=WITH_CHOICES)
    shared_project.tool("strict", SHOW, inputSchema=PLAIN, strictArguments=True)
    shared_project.tool("lenient", SHOW, inputSchema=PLAIN, strictArguments=False)


def seen_by(client: Client, tool: str, arguments: Json) -> Any:
    """What the script sees, or None if it is not started."""
    result = client.call_tool(tool, arguments)
    return None if result["isError"] else json.loads(text_of(result))


@pytest.mark.requirement("P-104")
@pytest.mark.parametrize("revision", ALL_REVISIONS)
@pytest.mark.parametrize("tool", ["plain", "choices"])
def test_the_script_sees_what_was_meant(shared_speak: Speak, revision: str, tool: str) -> None:
    sent = {"name": "5", "count": "5", "is_loud": "true", "list": '["1", 2]'}
    client = shared_speak(revision)

    assert seen_by(client, tool, sent) == {"name": "5", "count": 5, "is_loud": True, "list": [1, 2]}
    assert seen_by(client, tool, {"name": "x", "count": None, "list": None}) == {"name": "x"}


@pytest.mark.requirement("P-104")
@pytest.mark.parametrize("tool", ["plain", "choices"])
@pytest.mark.parametrize(
    ("sent", "told"),
    [
        ({"name": None, "count": "5"}, "name must be string, got null"),
        ({"name": "x", "count": "0"}, "count must be at least 1, got 0"),
        ({"name": "x", "count": "5.0"}, "count must be integer, got string"),
        ({"name": "x", "other": None}, "unexpected argument 'other'"),
        ({"name": "x", "list": [None]}, "list[0] must be integer, got null"),
    ],
    ids=str,
)
def test_what_is_still_wrong_is_told_of_what_was_meant(shared_speak: Speak, tool: str, sent: Json, told: str) -> None:
    result = shared_speak().call_tool(tool, sent)

    assert result["isError"] is True
    assert told in text_of(result)
    assert "; " not in text_of(result).replace("; known arguments", "")


@pytest.mark.parametrize(
    ("tool", "is_strict", "is_refused"),
    [
        ("plain", False, False),
        ("plain", True, True),
        ("strict", False, True),
        ("lenient", True, False),
    ],
)
def test_strictness_is_a_setting_and_the_description_has_the_last_word(
    shared_speak: Speak, tool: str, is_strict: bool, is_refused: bool
) -> None:
    client = shared_speak(strict_arguments=str(is_strict).lower())

    for sent in ({"name": "x", "count": "5"}, {"name": "x", "count": None}):
        assert (seen_by(client, tool, sent) is None) == is_refused


def test_what_takes_too_long_is_not_meant_any_more(project: ProjectBuilder, speak: Speak) -> None:
    schema = {"properties": {"count": {"type": "integer"}}, "patternProperties": {EMAIL: {"type": "integer"}}}
    project.tool("picky", SHOW, inputSchema=schema)
    client = speak(CHECK_SECS=0.3)
    result = client.call_tool("picky", {"count": "5", ENDLESS: "1"})

    assert result["isError"] is True
    assert "checking it took longer than 0.3 s" in text_of(result)


def test_a_client_that_comes_back_sends_what_it_sent_before(project: ProjectBuilder, speak: Speak) -> None:
    """The state belongs to the arguments as they were sent, also if these are large and something else was meant."""
    schema = {"type": "object", "properties": {"count": {"type": "integer"}, "text": {"type": "string"}}}
    script = (
        'source "${MCP_SDK}/tool-sdk.sh"\nmcp_elicit_confirm "Sure?" >/dev/null\nmcp_emit_text "$(mcp_args_get .count)"'
    )
    project.tool("careful", script, inputSchema=schema)
    client = speak(MODERN, capabilities={"elicitation": {"form": {}}})
    params = {"name": "careful", "arguments": {"count": "5", "text": "x" * 200_000}}
    asked = client.result("tools/call", params)
    answers = {key: {"action": "accept", "content": {"confirmed": True}} for key in asked["inputRequests"]}
    params |= {"inputResponses": answers, "requestState": asked["requestState"]}

    assert text_of(client.result("tools/call", params)) == "5"
