"""Rows of "What differs, and why" that nothing else proves: what the page says is so."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.wire import Wire, text_of

from .conftest import OldTree, Serve


def test_a_script_that_ends_with_the_status_of_a_timeout_has_failed(tree: OldTree, serve: Serve) -> None:
    tree.shell_tool("late", "exit 124\n", name="late", timeoutSecs=10)
    result = serve().call_tool("late")

    assert (result["isError"], text_of(result)) == (True, "Tool failed: exit code 124")


def test_arguments_come_in_the_order_in_which_they_were_sent(tree: OldTree, serve: Serve) -> None:
    tree.shell_tool("raw", "mcp_args_raw\n", name="raw")

    assert text_of(serve().call_tool("raw", {"b": 1, "a": 2})).strip() == '{"b":1,"a":2}'


def test_a_script_without_the_bit_is_run_by_whom_its_first_line_names(tree: OldTree, serve: Serve) -> None:
    tree.write("tools/count/count.py", f"#!{sys.executable}\nprint(len('four'))\n").chmod(0o644)
    tree.json("tools/count/count.meta.json", {"name": "count"})

    assert text_of(serve().call_tool("count")) == "4\n"


def test_scripts_are_told_nothing_of_the_inside_of_mcp_bash(tree: OldTree, serve: Serve) -> None:
    tree.shell_tool("env", "env\n", name="env")
    seen = {line.partition("=")[0] for line in text_of(serve().call_tool("env")).splitlines()}

    unseen = {"MCPBASH_SERVER_ICONS", "MCPBASH_SERVER_INSTRUCTIONS", "MCPBASH_DIRECT_FD", "MCP_UI_REGISTRY_HASH"}
    assert not unseen & seen
    assert {"MCPBASH_SERVER_NAME", "MCPBASH_FRAMEWORK_VERSION", "MCPBASH_HOME", "MCPBASH_STATE_DIR"} <= seen


def test_a_provider_runs_in_the_project(tree: OldTree, serve: Serve) -> None:
    tree.provider("memo.sh", "pwd")

    assert serve().result("resources/read", {"uri": "memo://a"})["contents"][0]["text"] == f"{tree.root}\n"


@pytest.mark.parametrize("value", [[1], {"k": 1}, None])
def test_an_argument_of_a_prompt_that_is_no_text_is_refused(tree: OldTree, serve: Serve, value: Any) -> None:
    tree.write("prompts/ask.txt", "{{a}}\n")

    assert serve().error("prompts/get", {"name": "ask", "arguments": {"a": value}})["code"] == -32602


def test_the_roots_of_a_client_lie_inside_those_that_are_set(tree: OldTree, serve: Serve, tmp_path: Path) -> None:
    tree.shell_tool("roots", 'mcp_emit_text "${MCP_ROOTS_PATHS}"\n', name="roots")
    client = serve(capabilities={"roots": {}}, MCPBASH_ROOTS=str(tree.root))
    named = [{"uri": tmp_path.as_uri()}, {"uri": (tree.root / "tools").as_uri()}]
    client.answer(client.asked("roots/list"), {"roots": named})

    assert text_of(client.call_tool("roots")) == str(tree.root / "tools")


@pytest.mark.parametrize(("name", "code"), [("large", -32603), ("../large", -32602), ("none", -32002)])
def test_the_code_tells_why_there_is_no_page(tree: OldTree, serve: Serve, name: str, code: int) -> None:
    tree.write("ui/large/index.html", "<!doctype html>" + "x" * 200)
    client = serve(MCPBASH_MAX_RESOURCE_BYTES="100")

    assert client.error("resources/read", {"uri": f"ui://{tree.root.name}/{name}"})["code"] == code


def test_an_environment_that_nobody_has_permitted_is_refused(tree: OldTree, serve: Serve) -> None:
    tree.shell_tool("any", "", name="any")
    client = serve(MCPBASH_TOOL_ENV_MODE="inherit")

    assert client.error("tools/call", {"name": "any", "arguments": {}})["code"] == -32602


def test_a_list_tells_only_what_the_protocol_knows(tree: OldTree, serve: Serve) -> None:
    tree.shell_tool("bare", "", name="bare", timeoutSecs=10)
    tree.write("resources/note.txt", "note\n")
    tree.write("prompts/ask.txt", "{{a}} {{b}}\n")
    arguments = {"type": "object", "properties": {"a": {"type": "string"}}}
    tree.json("prompts/ask.meta.json", {"name": "ask", "role": "system", "metadata": {"k": 1}, "arguments": arguments})
    client = serve()

    assert client.tools()["bare"].keys() == {"name", "inputSchema"}
    (resource,) = client.result("resources/list")["resources"]
    assert resource.keys() == {"name", "uri", "mimeType", "size"}
    (prompt,) = client.result("prompts/list")["prompts"]
    assert prompt == {"name": "ask", "arguments": [{"name": "a", "required": False}]}
    said = {"messages": [{"role": "user", "content": {"type": "text", "text": " {{b}}"}}]}
    assert client.get_prompt("ask") == said


def test_a_registered_resource_tells_its_provider_and_a_registered_template_may_have_its_name(
    tree: OldTree, serve: Serve
) -> None:
    tree.json("resources/found.meta.json", {"name": "greeting", "uriTemplate": "memo://{name}"})
    registered = {
        "version": 1,
        "resources": [{"name": "greeting", "uri": "echo://hello"}],
        "resourceTemplates": [{"name": "greeting", "uriTemplate": "note://{name}"}],
    }
    tree.json("server.d/register.json", registered)
    client = serve()

    (resource,) = client.result("resources/list")["resources"]
    assert resource == {"name": "greeting", "uri": "echo://hello", "provider": "echo"}
    (template,) = client.result("resources/templates/list")["resourceTemplates"]
    assert template["uriTemplate"] == "note://{name}"


def test_one_name_that_clients_refuse_costs_one_tool(tree: OldTree, serve: Serve) -> None:
    tree.shell_tool("good", "", name="good")
    tree.shell_tool("bad", "", name="not a name!")

    assert list(serve().tools()) == ["good"]


def test_a_provider_that_others_may_write_to_is_refused(tree: OldTree, serve: Serve) -> None:
    tree.provider("memo.sh", "echo hello", mode=0o757)
    error = serve().error("resources/read", {"uri": "memo://a"})

    assert error["code"] == -32602
    assert "(run mcpgreen validate --fix)" in error["message"]


def test_an_empty_answer_leaves_the_configured_roots(tree: OldTree, serve: Serve) -> None:
    tree.shell_tool("roots", 'mcp_emit_text "${MCP_ROOTS_PATHS}"\n', name="roots")
    client = serve(capabilities={"roots": {}})
    client.answer(client.asked("roots/list"), {"roots": []})

    assert text_of(client.call_tool("roots")) == str(tree.root)


@pytest.mark.parametrize(("uri", "code"), [("memo://nobody", -32002), ("resources/note.txt", -32602)])
def test_an_address_that_nobody_serves_is_no_file(tree: OldTree, serve: Serve, uri: str, code: int) -> None:
    tree.write("resources/note.txt", "note\n")

    assert serve().error("resources/read", {"uri": uri})["code"] == code


def test_a_server_that_is_asked_to_end_has_not_failed(tree: OldTree, serve: Serve) -> None:
    wire = serve().wire
    wire.process.send_signal(signal.SIGTERM)

    assert wire.wait() == 0


def test_without_a_project_the_example_is_served_and_nothing_is_made(tmp_path: Path) -> None:
    wire = Wire(None, arguments=(), cwd=tmp_path)
    try:
        wire.handshake()
        assert "hello" in json.dumps(wire.result("tools/list"))
        assert list(tmp_path.iterdir()) == []
    finally:
        wire.end()
