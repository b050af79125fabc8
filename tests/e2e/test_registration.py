"""What a project registers by hand: listed, called, told when it changes, and never replaced by what lies on disk."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from tests.support.client import ALL_REVISIONS, Speak
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually, is_alive
from tests.support.wire import Start, Wire, text_of

CHANGED = "notifications/tools/list_changed"
HOOKS = {"allow_project_hooks": "true"}


def place(project: ProjectBuilder, name: str, content: str, mode: int = 0o644) -> None:
    """In one step, so that a server that watches never meets half a file."""
    aside = project.write(f".{name}", content)
    aside.chmod(mode)
    os.replace(aside, project.root / "server.d" / name)


def register_json(project: ProjectBuilder, *tools: dict[str, Any]) -> None:
    place(project, "register.json", json.dumps({"version": 1, "tools": tools}))


def register_sh(project: ProjectBuilder, *names: str, more: str = "") -> None:
    lines = "".join(f"""mcp_register_tool '{{"name": "{name}", "path": "found"}}'\n""" for name in names)
    place(project, "register.sh", f"#!/bin/bash\nset -euo pipefail\n{lines}{more}\n", 0o755)


def names(wire: Wire) -> list[str]:
    return [tool["name"] for tool in wire.result("tools/list")["tools"]]


@pytest.fixture(autouse=True)
def found(project: ProjectBuilder) -> None:
    """One tool on disk."""
    project.tool("found", "echo hello from $MCP_TOOL_NAME")


@pytest.mark.parametrize("revision", ALL_REVISIONS)
@pytest.mark.parametrize("by", ["register.json", "register.sh"])
def test_registered_tools_are_listed_and_called(project: ProjectBuilder, speak: Speak, revision: str, by: str) -> None:
    if by == "register.json":
        register_json(project, {"name": "mine", "path": "found"})
    else:
        register_sh(project, "mine", more="return 0")
    client = speak(revision, **HOOKS)

    assert list(client.tools()) == ["mine"]
    assert text_of(client.call_tool("mine")) == "hello from mine\n"
    assert client.error("tools/call", {"name": "found", "arguments": {}})["code"] == -32602


def test_a_call_before_any_list_finds_registered_tools(project: ProjectBuilder, start: Start) -> None:
    register_sh(project, "mine")
    wire = start(**HOOKS)
    wire.handshake()

    assert text_of(wire.call_tool("mine")) == "hello from mine\n"


def test_register_sh_is_not_run_unless_it_is_allowed(project: ProjectBuilder, client: Wire) -> None:
    register_sh(project, "mine", more="touch ran")

    assert names(client) == ["found"]
    assert not (project.root / "ran").exists()


@pytest.mark.parametrize("by", ["register.json", "register.sh"])
def test_a_registration_that_cannot_be_used_is_an_error_and_nothing_is_served_instead(
    project: ProjectBuilder, start: Start, by: str
) -> None:
    if by == "register.json":
        place(project, by, '{"version": 1, "tool": []}')
    else:
        register_sh(project, "mine", more="echo because >&2; exit 3")
    wire = start(**HOOKS)
    wire.handshake()
    for method, params in (("tools/list", {}), ("tools/call", {"name": "found", "arguments": {}})):
        error = wire.error(method, params)
        assert (error["code"], error["message"]) == (-32603, "Unable to load tool registry")
        assert error["data"].startswith(f"server.d/{by}: ")
        assert str(project.root) not in error["data"]
    assert wire.result("ping") == {}
    eventually(lambda: f"unable to load tool registry: server.d/{by}: " in wire.stderr)
    if by == "register.sh":
        eventually(lambda: "because" in wire.stderr and "Manual registration script failed" in wire.stderr)


@pytest.mark.parametrize("watch_files", ["auto", "poll"])
@pytest.mark.parametrize("by", ["register.json", "register.sh"])
def test_a_changed_registration_is_told_and_served(
    project: ProjectBuilder, start: Start, by: str, watch_files: str
) -> None:
    def register(*tools: str) -> None:
        if by == "register.json":
            register_json(project, *({"name": name, "path": "found"} for name in tools))
        else:
            register_sh(project, *tools)

    register("one")
    wire = start(watch_files=watch_files, tools_ttl=0.05 if watch_files == "poll" else 60, **HOOKS)
    wire.handshake()
    assert names(wire) == ["one"]
    register("one", "two")
    wire.notice(CHANGED)
    assert names(wire) == ["one", "two"]
    (project.root / "server.d" / by).unlink()
    wire.notice(CHANGED)

    assert names(wire) == ["found"]
    assert len(wire.notices(CHANGED)) == 2


def test_mending_a_registration_is_told(project: ProjectBuilder, start: Start) -> None:
    place(project, "register.json", "{")
    wire = start()
    wire.handshake()
    assert wire.error("tools/list")["code"] == -32603
    register_json(project, {"name": "mine", "path": "found"})
    wire.notice(CHANGED)

    assert names(wire) == ["mine"]


@pytest.mark.parametrize("method", ["tools/list", "tools/call"])
def test_a_slow_hook_does_not_hold_up_other_requests(project: ProjectBuilder, start: Start, method: str) -> None:
    register_sh(project, "mine", more="echo $$ > pid; until [[ -e go ]]; do sleep 0.02; done")
    wire = start(**HOOKS)
    wire.handshake()
    waiting = [wire.start_request(method, {"name": "mine", "arguments": {}}) for _ in range(3)]
    eventually(lambda: (project.root / "pid").exists())
    assert wire.result("ping") == {}
    assert not [message for message in wire.seen if message.get("id") in waiting]
    project.write("go", "")

    assert all("result" in wire.response(id) for id in waiting)
    assert names(wire) == ["mine"]


def test_a_server_that_ends_takes_its_hook_along(project: ProjectBuilder, start: Start) -> None:
    register_sh(project, more="echo $$ > pid; sleep 600")
    wire = start(EOF_GRACE_SECS=0, **HOOKS)
    wire.handshake()
    pid = eventually(lambda: (project.root / "pid").exists() and project.read("pid").strip())

    assert wire.stop() == 0
    eventually(lambda: not is_alive(pid))


def test_what_the_hook_said_is_asked_for_again_when_it_is_old(project: ProjectBuilder, start: Start) -> None:
    project.write("choice", "one")
    register_sh(project, more="""mcp_register_tool "{\\"name\\": \\"$(cat choice)\\", \\"path\\": \\"found\\"}" """)
    wire = start(register_ttl=0.05, **HOOKS)
    wire.handshake()
    assert names(wire) == ["one"]
    project.write("choice", "two")

    eventually(lambda: names(wire) == ["two"])
    wire.notice(CHANGED)


def test_a_static_registry_is_read_once_and_not_watched(project: ProjectBuilder, start: Start) -> None:
    register_json(project, {"name": "one", "path": "found"})
    project.tool("found", "sleep 0.2; echo hello from $MCP_TOOL_NAME")  # by then a watch would have begun
    wire = start(env={"MCPBASH_STATIC_REGISTRY": "1"}, tools_ttl=0.05)
    wire.handshake()
    assert names(wire) == ["one"]
    place(project, "register.json", "{")
    project.tool("another", "echo")

    assert names(wire) == ["one"]
    assert text_of(wire.call_tool("one")) == "hello from one\n"
    assert names(wire) == ["one"]
    assert wire.notices(CHANGED) == []


@pytest.mark.parametrize("is_open", [False, True], ids=["ours alone", "open to others"])
def test_a_static_registry_serves_what_an_earlier_server_wrote_if_it_can_be_trusted(
    project: ProjectBuilder, start: Start, is_open: bool
) -> None:
    """It read every description at each start."""
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    project.tool("found", "sleep 600", inputSchema=schema, timeoutSecs=0.1)
    project.prompt("hello.txt", "Hello {{who}}", arguments=[{"name": "who"}])
    project.resource("note.txt", "note", uri="own://note")
    for planted in (False, True):
        with start(static_registry="true") as wire:
            wire.handshake()
            assert names(wire) == (["found", "later"] if planted and is_open else ["found"])
            error = wire.call_tool("found", {"n": "x"})
            assert error["isError"] and "n" in text_of(error)
            assert "after 0.1s" in text_of(wire.call_tool("found", {"n": 1}))
            prompt = wire.result("prompts/get", {"name": "hello", "arguments": {"who": "you"}})
            assert prompt["messages"][0]["content"]["text"] == "Hello you"
            assert wire.result("resources/read", {"uri": "own://note"})["contents"][0]["text"] == "note"
            assert wire.stop() == 0
            assert ("is not trusted" in wire.stderr) is (planted and is_open)
        if is_open:
            (project.root / ".registry").chmod(0o777)
        project.tool("later", "echo")
