"""A greeting, arguments, logs, progress and cancellation."""

from __future__ import annotations

import pytest

from tests.support.waiting import eventually, is_alive
from tests.support.wire import text_of

from .conftest import ENVELOPE, OldTree, Serve

REVISIONS = ("2025-06-18", "2025-11-25", "2026-07-28")

HELLO = """
mcp_result_success "$(mcp_json_obj message "Hello from example tool")"
"""

ECHO = """
value="$(mcp_args_require '.value')"
mcp_result_success "$(mcp_json_obj message "You sent: ${value}")"
"""

LOGGER = """
mcp_log_debug "example.logger" "not for everybody"
mcp_log_info "example.logger" "about to work"
mcp_log "warning" "example.logger" '{"disk":"nearly full"}'
mcp_emit_text "logged"
"""

SLOW = """
for percent in 10 50 90; do
  if mcp_is_cancelled; then mcp_fail -32001 "Cancelled"; fi
  mcp_progress "${percent}" "At ${percent} per cent"
  if [[ ${percent} == "$(mcp_args_get '.until // 100')" ]]; then echo $$ >pid; sleep 60; fi
done
mcp_result_success "$(mcp_json_obj message "done")"
"""


@pytest.mark.parametrize("revision", REVISIONS)
def test_00_a_greeting_is_structured_content(tree: OldTree, serve: Serve, revision: str) -> None:
    tree.shell_tool("hello", HELLO, name="example-hello", description="Greets", outputSchema=ENVELOPE)
    client = serve(revision)

    assert list(client.tools()) == ["example-hello"]
    result = client.call_tool("example-hello")
    assert result["structuredContent"] == {"success": True, "result": {"message": "Hello from example tool"}}
    assert result["isError"] is False


@pytest.mark.parametrize("revision", REVISIONS)
def test_01_a_missing_argument_is_the_scripts_own_error(tree: OldTree, serve: Serve, revision: str) -> None:
    schema = {"type": "object", "properties": {"value": {"type": "string"}}}
    tree.shell_tool("echo-arg", ECHO, name="example-echo-arg", inputSchema=schema, timeoutSecs=10)
    client = serve(revision)

    sent = client.call_tool("example-echo-arg", {"value": 'a "quoted" ünï\\code'})
    assert sent["structuredContent"]["result"] == {"message": 'You sent: a "quoted" ünï\\code'}
    refused = client.error("tools/call", {"name": "example-echo-arg", "arguments": {}})
    assert (refused["code"], refused["message"]) == (-32602, ".value is required")


def test_01_what_the_schema_demands_is_asked_of_the_model_before_the_script_starts(tree: OldTree, serve: Serve) -> None:
    schema = {"type": "object", "properties": {"value": {"type": "string"}}, "required": ["value"]}
    tree.shell_tool("echo-arg", "touch started\n" + ECHO, name="example-echo-arg", arguments=schema)

    refused = serve().call_tool("example-echo-arg")
    assert refused["isError"] is True
    assert "value" in text_of(refused)
    assert not (tree.root / "started").exists()


@pytest.mark.parametrize("revision", REVISIONS[:2])
def test_02_log_messages_come_while_the_tool_runs(tree: OldTree, serve: Serve, revision: str) -> None:
    tree.shell_tool("logger", LOGGER, name="example-logger", description="Logs")
    client = serve(revision)
    assert text_of(client.call_tool("example-logger")) == "logged"

    said = [message["params"] for message in client.wire.notices("notifications/message")]
    assert said == [
        {"level": "info", "logger": "example.logger", "data": "about to work"},
        {"level": "warning", "logger": "example.logger", "data": {"disk": "nearly full"}},
    ]


def test_02_the_level_that_a_client_sets_counts(tree: OldTree, serve: Serve) -> None:
    tree.shell_tool("logger", LOGGER, name="example-logger", description="Logs")
    client = serve()
    client.result("logging/setLevel", {"level": "warning"})
    client.call_tool("example-logger")

    assert [message["params"]["level"] for message in client.wire.notices("notifications/message")] == ["warning"]


@pytest.mark.parametrize("token", ["token", 7, "7"])
@pytest.mark.parametrize("revision", REVISIONS)
def test_03_progress_comes_before_the_result(tree: OldTree, serve: Serve, revision: str, token: str | int) -> None:
    tree.shell_tool("slow", SLOW, name="example-slow", timeoutSecs=30)
    client = serve(revision)
    client.call_tool("example-slow", meta={"progressToken": token})

    told = [message["params"] for message in client.wire.notices("notifications/progress")]
    assert [(each["progressToken"], each["progress"]) for each in told] == [(token, 10), (token, 50), (token, 90)]
    assert told[0]["message"] == "At 10 per cent"


@pytest.mark.parametrize("id", [77, "seventy-seven"])
def test_03_a_cancelled_call_ends_without_a_reply(tree: OldTree, serve: Serve, id: str | int) -> None:
    tree.shell_tool("slow", SLOW, name="example-slow", timeoutSecs=30)
    client = serve()
    client.start_tool("example-slow", {"until": 50}, meta={"progressToken": "t"}, id=id)
    pid = eventually(lambda: (tree.root / "pid").exists() and tree.read("pid").strip())
    client.wire.notify("notifications/cancelled", {"requestId": id, "reason": "no longer needed"})

    eventually(lambda: not is_alive(pid))
    assert not [message for message in client.wire.settle() if message.get("id") == id]
