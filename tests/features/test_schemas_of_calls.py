"""Arguments that do not fit, output that does not fit, and calls that make no sense."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.support import ways
from tests.support.client import ALL_REVISIONS, Speak
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually
from tests.support.wire import MODERN, Json, Wire, text_of

way, project, shared_project = ways.way, ways.project, ways.shared_project

INPUT: Json = {
    "type": "object",
    "properties": {"count": {"type": "integer", "minimum": 1, "default": 3}, "name": {"type": "string"}},
    "required": ["name"],
}
OUTPUT: Json = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
SINCE_STRUCTURE = ("2025-06-18", "2025-11-25", MODERN)


@pytest.fixture(scope="module", autouse=True)
def _tools(shared_project: ProjectBuilder) -> None:
    shared_project.tool("typed", 'echo ran >> runs; printf %s "$MCP_TOOL_ARGS_JSON"', inputSchema=INPUT)
    shared_project.tool("old", "echo", inputSchema={"$schema": "http://json-schema.org/draft-07/schema#", **INPUT})
    outputs = {
        "good": """echo '{"n":1}'""",
        "ready": """echo '{"content":[],"structuredContent":{"n":1}}'""",
        "wrong": """echo '{"n":"one"}'""",
        "missing": "echo '{}'",
        "words": "echo words",
        "nothing": "true",
        "unstructured": """echo '{"content":[{"type":"text","text":"x"}]}'""",
        "failed": """echo '{"content":[{"type":"text","text":"x"}],"isError":true}'""",
        "exits": "exit 1",
    }
    for name, script in outputs.items():
        shared_project.tool(name, script, outputSchema=OUTPUT)
    shared_project.tool("array", "echo '[1,2]'", outputSchema={"type": "array", "items": {"type": "integer"}})
    shared_project.tool("number", "echo 42", outputSchema={"type": "integer"})


@pytest.mark.requirement("P-104")
@pytest.mark.parametrize("revision", ALL_REVISIONS)
@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({}, "name"),
        ({"name": 5}, "name"),
        ({"name": "x", "count": "three"}, "count"),
        ({"name": "x", "count": 0}, "count"),
    ],
    ids=str,
)
def test_unfit_arguments_are_an_error_result_that_names_them(
    shared_speak: Speak, shared_project: ProjectBuilder, revision: str, arguments: Json, named: str
) -> None:
    (shared_project.root / "runs").unlink(missing_ok=True)
    result = shared_speak(revision).call_tool("typed", arguments)

    assert result["isError"] is True
    assert named in text_of(result)
    assert not (shared_project.root / "runs").exists()


@pytest.mark.requirement("P-104")
def test_defaults_are_not_filled_in(shared_speak: Speak) -> None:
    assert json.loads(text_of(shared_speak().call_tool("typed", {"name": "x"}))) == {"name": "x"}


@pytest.mark.requirement("P-104")
def test_a_whole_float_is_an_integer(shared_speak: Speak) -> None:
    assert shared_speak().call_tool("typed", {"name": "x", "count": 2.0})["isError"] is False


@pytest.mark.requirement("P-101")
def test_a_declared_dialect_is_respected(shared_speak: Speak) -> None:
    assert shared_speak().call_tool("old", {"name": "x"})["isError"] is False
    assert shared_speak().call_tool("old", {})["isError"] is True


@pytest.mark.requirement("P-114")
def test_arguments_reach_the_script_without_a_shell(project: ProjectBuilder, client: Wire) -> None:
    nasty = {"a": "$(touch pwned); `touch pwned`\n'\"\\ ; rm -rf /tmp/x", "\u20ac key": "\x01\x7f"}
    project.tool("echo", 'printf %s "$MCP_TOOL_ARGS_JSON"')

    assert json.loads(text_of(client.call_tool("echo", nasty))) == nasty
    assert not (project.root / "pwned").exists()


@pytest.mark.requirement("P-105")
@pytest.mark.parametrize("revision", ALL_REVISIONS)
@pytest.mark.parametrize("name", ["good", "ready"])
def test_fitting_output_is_structured_content_and_text(shared_speak: Speak, revision: str, name: str) -> None:
    result = shared_speak(revision).call_tool(name)

    assert result["isError"] is False
    assert json.loads(text_of(result)) == {"n": 1}
    assert result.get("structuredContent") == ({"n": 1} if revision in SINCE_STRUCTURE else None)


@pytest.mark.requirement("P-105")
@pytest.mark.parametrize("revision", ALL_REVISIONS)
@pytest.mark.parametrize("name", ["wrong", "missing", "words", "nothing", "unstructured"])
def test_unfit_output_is_an_error_result(shared_speak: Speak, revision: str, name: str) -> None:
    result = shared_speak(revision).call_tool(name)

    assert result["isError"] is True
    assert "outputSchema" in text_of(result)
    assert result["_meta"]["exitCode"] == 0
    assert "structuredContent" not in result


@pytest.mark.requirement("P-105")
def test_the_author_hears_of_unfit_output(shared_speak: Speak) -> None:
    client = shared_speak()
    client.request("logging/setLevel", {"level": "warning"})
    client.call_tool("wrong")

    begins = "Tool 'wrong': Tool output does not satisfy outputSchema"
    heard = client.wire.receive(lambda each: str(each.get("params", {}).get("data", "")).startswith(begins))
    said = heard["params"]
    assert said["level"] == "warning"
    assert eventually(lambda: re.search("call wrong failed .*: Tool output does not satisfy", client.wire.stderr))


@pytest.mark.requirement("P-105")
@pytest.mark.parametrize("name", ["failed", "exits"])
def test_an_error_need_not_fit_the_output_schema(shared_speak: Speak, name: str) -> None:
    result = shared_speak().call_tool(name)

    assert result["isError"] is True
    assert "outputSchema" not in text_of(result)


@pytest.mark.requirement("P-003", "P-105")
@pytest.mark.parametrize("revision", ALL_REVISIONS)
@pytest.mark.parametrize(("name", "value"), [("array", [1, 2]), ("number", 42)])
def test_declared_output_of_another_type_is_structured_in_the_stateless_era_only(
    shared_speak: Speak, revision: str, name: str, value: Any
) -> None:
    result = shared_speak(revision).call_tool(name)

    assert result["isError"] is False
    assert json.loads(text_of(result)) == value
    assert result.get("structuredContent") == (value if revision == MODERN else None)


@pytest.mark.requirement("G-call-params")
@pytest.mark.parametrize("revision", ALL_REVISIONS)
@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({}, "Tool name is required"),
        ({"name": None}, "Tool name is required"),
        ({"name": 5}, "Tool name is required"),
        ({"name": ""}, "Tool name is required"),
        ({"name": "no-such"}, "Tool 'no-such' not found"),
        ({"name": "../typed"}, "not found"),
        ({"name": "TYPED"}, "not found"),
        ({"name": "good", "arguments": []}, "arguments must be an object"),
        ({"name": "good", "arguments": "x"}, "arguments must be an object"),
        ({"name": "good", "timeoutSecs": -1}, "timeoutSecs"),
        pytest.param({"name": "good", "timeoutSecs": 10**400}, "timeoutSecs", id="endless"),
        ({"name": "good", "timeoutSecs": "soon"}, "timeoutSecs"),
    ],
    ids=str,
)
def test_a_call_that_makes_no_sense_is_refused(shared_speak: Speak, revision: str, params: Json, message: str) -> None:
    error = shared_speak(revision).error("tools/call", params)

    assert error["code"] == -32602
    assert message in error["message"]


@pytest.mark.requirement("G-call-params")
@pytest.mark.parametrize("params", [{"name": "good"}, {"name": "good", "arguments": None}], ids=str)
def test_arguments_may_be_absent(shared_speak: Speak, params: Json) -> None:
    assert shared_speak().result("tools/call", params)["isError"] is False


@pytest.mark.requirement("P-114", "G-allow-list")
@pytest.mark.parametrize(
    ("settings", "allowed"),
    [
        ({}, {"one", "two"}),
        ({"tool_allowlist": "one"}, {"one"}),
        ({"tool_allowlist": "other, two"}, {"two"}),
        ({"tool_allowlist": "*"}, {"one", "two"}),
        ({"tool_allow_default": "deny"}, set()),
        ({"tool_allow_default": "deny", "tool_allowlist": "two"}, {"two"}),
    ],
    ids=lambda value: str(sorted(value) if isinstance(value, set) else value),
)
def test_the_allow_list_decides_what_runs_and_hides_nothing(
    project: ProjectBuilder, speak: Speak, settings: Json, allowed: set[str]
) -> None:
    for name in ("one", "two"):
        project.tool(name, "echo ok")
    client = speak(**settings)

    assert set(client.tools()) == {"one", "two"}
    for name in ("one", "two"):
        answer = client.request("tools/call", {"name": name})
        if name in allowed:
            assert text_of(answer["result"]) == "ok\n"
        else:
            assert answer["error"]["code"] == -32602
            assert "blocked by policy" in answer["error"]["message"]


@pytest.mark.requirement("P-114", "G-safe-path")
@pytest.mark.parametrize("mode", [0o757, 0o777])
def test_a_script_that_others_may_change_does_not_run(project: ProjectBuilder, client: Wire, mode: int) -> None:
    project.tool("open", "touch ran").chmod(mode)
    error = client.error("tools/call", {"name": "open"})

    assert error["code"] == -32602
    assert "path rejected by policy" in error["message"]
    assert not (project.root / "ran").exists()


def test_a_check_of_output_that_takes_too_long_is_given_up(project: ProjectBuilder, speak: Speak) -> None:
    costly = {"type": "string", "pattern": r"^([a-zA-Z0-9]+[._-]?)+@example\.com$"}
    schema = {"type": "object", "properties": {"mail": costly}}
    project.tool("says", f"""echo '{{"mail":"{"a" * 60}!"}}'""", outputSchema=schema)

    assert "checking it took longer than 0.3 s" in text_of(speak(CHECK_SECS=0.3).call_tool("says"))
