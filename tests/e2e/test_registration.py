"""What a project registers by hand, through the whole server: listed, used, told when it changes, and never replaced by
what lies on disk."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.client import Client, Speak
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually, is_alive
from tests.support.wire import LATEST_HANDSHAKE, MODERN, Json, Start, Wire, text_of

ERAS = (LATEST_HANDSHAKE, MODERN)
HOOKS = {"allow_project_hooks": "true"}
KINDS = ("tools", "resources", "prompts")
CHANGED = "notifications/tools/list_changed"


def place(project: ProjectBuilder, relative: str, content: str, mode: int = 0o644) -> None:
    """In one step, so that a server that watches never meets half a file."""
    target = project.root / relative
    target.parent.mkdir(parents=True, exist_ok=True)
    aside = project.write(".aside", content)
    aside.chmod(mode)
    os.replace(aside, target)


def register_json(project: ProjectBuilder, **kinds: Any) -> None:
    place(project, "server.d/register.json", json.dumps({"version": 1, **kinds}))


def register_sh(project: ProjectBuilder, script: str) -> None:
    place(project, "server.d/register.sh", f"#!/usr/bin/env bash\nset -euo pipefail\n{script}\n", 0o755)


def listed(client: Client, kind: str) -> list[Json]:
    method = "resources/templates/list" if kind == "resourceTemplates" else f"{kind}/list"
    items: list[Json] = client.result(method)[kind]
    return items


def names(client: Client, kind: str) -> list[str]:
    return [item["name"] for item in listed(client, kind)]


def question(name: str, typed: str = "", **more: Any) -> Json:
    return {"ref": {"type": "ref/prompt", "name": name}, "argument": {"name": "query", "value": typed}, **more}


def completion(client: Client, name: str, typed: str = "", **more: Any) -> Json:
    answer: Json = client.result("completion/complete", question(name, typed, **more))["completion"]
    return answer


def counts_of_changes(wire: Wire) -> dict[str, int]:
    return {kind: len(wire.notices(f"notifications/{kind}/list_changed")) for kind in KINDS}


@pytest.fixture
def overrides(project: ProjectBuilder) -> ProjectBuilder:
    """What is offered differs from what is found in each kind."""
    project.tool("found", "echo found")
    place(project, "tools/mine.sh", "echo mine is $MCP_TOOL_NAME")
    place(project, "resources/found.txt", "found")
    place(project, "prompts/found.txt", "found")
    place(project, "prompts/topic.txt", "Tell me about {{topic}}.\n")
    register_json(
        project,
        tools=[{"name": "mine", "path": "mine.sh", "description": "Mine", "arguments": {"type": "object"}}],
        resources=[{"name": "echoed", "uri": "echo://Hello%20there", "mimeType": "text/plain", "provider": "echo"}],
        prompts=[
            {
                "name": "topic",
                "path": "topic.txt",
                "description": "About a topic",
                "arguments": {"type": "object", "properties": {"topic": {"type": "string"}}, "required": ["topic"]},
                "role": None,
                "metadata": None,
            }
        ],
    )
    return project


@pytest.mark.parametrize("revision", ERAS)
def test_what_is_registered_is_offered_and_nothing_else(overrides: ProjectBuilder, speak: Speak, revision: str) -> None:
    client = speak(revision)

    assert [names(client, kind) for kind in KINDS] == [["mine"], ["echoed"], ["topic"]]
    assert listed(client, "resources")[0]["provider"] == "echo"
    assert text_of(client.call_tool("mine")) == "mine is mine\n"
    (contents,) = client.result("resources/read", {"uri": "echo://Hello%20there"})["contents"]
    assert contents == {"uri": "echo://Hello%20there", "mimeType": "text/plain", "text": "Hello there"}
    assert client.result("prompts/get", {"name": "topic", "arguments": {"topic": "rain"}})["messages"] == [
        {"role": "user", "content": {"type": "text", "text": "Tell me about rain."}}
    ]
    assert client.error("prompts/get", {"name": "found"})["code"] == -32602


@pytest.mark.parametrize("is_registered", [True, False])
def test_a_completion_script_that_others_may_write_to_is_not_run(
    project: ProjectBuilder, speak: Speak, is_registered: bool
) -> None:
    place(project, "prompts/c.txt", "hello")
    place(project, "prompts/c.completion.sh", "#!/bin/sh\ntouch ran; echo '[]'", 0o777)
    if is_registered:
        register_json(project, completions=[{"name": "c", "path": "prompts/c.completion.sh"}])
    error = speak().error("completion/complete", question("c"))

    assert error["code"] == -32602
    reason = "it can be written to by others (run mcpgreen validate --fix)"
    assert error["message"] == f"Completion 'c' path rejected by policy: {reason}"
    assert not (project.root / "ran").exists()


def test_a_completion_script_that_has_vanished_is_an_error_that_says_so(project: ProjectBuilder, speak: Speak) -> None:
    place(project, "c.sh", "echo '[]'", 0o644)
    register_json(project, completions=[{"name": "c", "path": "c.sh"}])
    client = speak(register_ttl=600)
    eventually(lambda: _is_old(project))
    assert completion(client, "c")["values"] == []
    project.remove("c.sh")

    assert client.error("completion/complete", question("c"))["message"] == (
        "Completion 'c' could not be started: its script does not exist."
    )


def _is_old(project: ProjectBuilder) -> bool:
    """Whether register.json is not of this very moment: such a file is read again each time."""
    probe = project.write(".now", "")
    newest = (project.root / "server.d" / "register.json").stat().st_ctime_ns
    return probe.stat().st_ctime_ns - newest > 100_000_000


REQUESTS: list[tuple[str, Json, str]] = [
    ("tools/list", {}, "tool registry"),
    ("resources/list", {}, "resources registry"),
    ("resources/templates/list", {}, "resource templates registry"),
    ("prompts/list", {}, "prompts registry"),
    ("tools/call", {"name": "found", "arguments": {}}, "tool registry"),
    ("resources/read", {"uri": "echo://hello"}, "resources registry"),
    ("prompts/get", {"name": "found"}, "prompts registry"),
    ("completion/complete", question("found"), "prompts registry"),
    (
        "completion/complete",
        {"ref": {"type": "ref/resource", "uri": "echo://{x}"}, "argument": {"name": "x", "value": ""}},
        "resource templates registry",
    ),
]


@pytest.mark.parametrize("revision", ERAS)
@pytest.mark.parametrize("by", ["register.json", "register.sh"])
def test_a_registration_that_cannot_be_used_is_an_error_for_every_request(
    project: ProjectBuilder, speak: Speak, revision: str, by: str
) -> None:
    project.tool("found", "echo found")
    place(project, "prompts/found.txt", "found")
    place(project, "resources/t.meta.json", '{"uriTemplate": "echo://{x}"}')
    if by == "register.json":
        place(project, "server.d/register.json", '{"version": 1, "prompt": []}')
        reason = 'server.d/register.json: unknown key "prompt"'
    else:
        register_sh(project, "echo because >&2; exit 3")
        reason = "server.d/register.sh: Manual registration script failed: it exited with status 3"
    client = speak(revision, **HOOKS)
    for method, params, what in REQUESTS:
        error = client.error(method, params)
        assert (error["code"], error["message"]) == (-32603, f"Unable to load {what}"), method
        assert error["data"].startswith(reason)
        assert str(project.root) not in error["data"]
    eventually(lambda: f"unable to load tool registry: {reason}" in client.wire.stderr)
    assert by == "register.json" or "because" in client.wire.stderr
    (project.root / "server.d" / by).unlink()

    assert names(client, "prompts") == ["found"]
    assert names(client, "resourceTemplates") == ["t"]


WITH_ALL_KINDS: Json = {
    "tools": [{"name": "t", "path": "found"}],
    "resources": [{"name": "r", "uri": "echo://r"}],
    "resourceTemplates": [{"name": "rt", "uriTemplate": "echo://{x}"}],
    "prompts": [{"name": "p", "messages": [{"content": "x"}]}],
    "completions": [{"name": "c", "path": "tools/found"}],
}


@pytest.mark.parametrize("watch_files", ["auto", "poll"])
@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("tools", ["tools"]),
        ("resources", ["resources"]),
        ("resourceTemplates", ["resources"]),
        ("prompts", ["prompts"]),
        ("completions", []),
        ("all", ["tools", "resources", "prompts"]),
    ],
)
def test_a_change_between_requests_is_told_once_for_each_kind_that_changed(
    project: ProjectBuilder, speak: Speak, kind: str, told: list[str], watch_files: str
) -> None:
    project.tool("found", "echo '[\"found\"]'")
    register_json(project, **WITH_ALL_KINDS)
    client = speak(watch_files=watch_files, tools_ttl=0.05 if watch_files == "poll" else 60)
    for each in (*KINDS, "resourceTemplates"):
        assert len(listed(client, each)) == 1
    assert completion(client, "c")["values"] == ["found"]
    emptied = {key: [] for key in (WITH_ALL_KINDS if kind == "all" else [kind])}
    register_json(project, **{**WITH_ALL_KINDS, **emptied})
    for source in told:
        client.wire.notice(f"notifications/{source}/list_changed")
    # Another tool ends the wait: whatever was still to be said of the first change has been said by then.
    last = [{"name": "last", "path": "found"}]
    if "completions" in emptied:
        eventually(lambda: "error" in client.request("completion/complete", question("c")))
    register_json(project, **{**WITH_ALL_KINDS, **emptied, "tools": last})
    client.wire.notice("notifications/tools/list_changed")
    client.wire.settle()

    expected = {source: int(source in told) for source in KINDS}
    assert counts_of_changes(client.wire) == {**expected, "tools": expected["tools"] + 1}


@pytest.mark.parametrize("revision", ERAS)
@pytest.mark.parametrize(
    ("method", "params", "found"),
    [
        ("tools/list", {}, lambda result: result["tools"][0]["name"] == "t"),
        ("tools/call", {"name": "t", "arguments": {}}, lambda result: text_of(result) == "hello from t\n"),
        ("resources/list", {}, lambda result: result["resources"][0]["name"] == "r"),
        ("resources/templates/list", {}, lambda result: result["resourceTemplates"][0]["name"] == "rt"),
        ("resources/read", {"uri": "note:r"}, lambda result: result["contents"][0]["text"] == "r"),
        ("resources/read", {"name": "r"}, lambda result: result["contents"][0]["text"] == "r"),
        ("prompts/get", {"name": "p"}, lambda result: result["messages"][0]["content"]["text"] == "hello"),
        ("completion/complete", question("c"), lambda result: result["completion"]["values"] == ["one"]),
    ],
    ids=["tools", "call", "resources", "templates", "read", "read by name", "get", "complete"],
)
def test_only_requests_that_need_the_hook_wait_for_it(
    project: ProjectBuilder,
    speak: Speak,
    revision: str,
    method: str,
    params: Json,
    found: Callable[[Json], bool],
) -> None:
    project.tool("found", "echo hello from $MCP_TOOL_NAME")
    place(project, "prompts/p.txt", "hello")
    place(project, "c.sh", "echo '[\"one\"]'", 0o755)
    place(project, "providers/note.sh", '#!/bin/sh\nprintf %s "${1#note:}"', 0o755)
    register_sh(
        project,
        """
        touch running
        until [[ -e go ]]; do sleep 0.02; done
        mcp_register_tool '{"name": "t", "path": "found"}'
        mcp_resources_register_manual '{"name": "r", "uri": "note:r"}'
        mcp_resources_templates_register_manual '{"name": "rt", "uriTemplate": "note:{x}"}'
        mcp_prompts_register_manual '{"name": "p", "path": "p.txt"}'
        mcp_completion_register_manual '{"name": "c", "path": "c.sh"}'
        """,
    )
    client = speak(revision, **HOOKS)
    waiting = [client.start(method, params) for _ in range(3)]
    eventually(lambda: (project.root / "running").exists())
    if revision == MODERN:
        client.result("server/discover")
    else:
        client.wire.settle()
    assert not [message for message in client.wire.seen if message.get("id") in waiting]
    project.write("go", "")

    for id in waiting:
        answer = client.wire.response(id)
        assert "result" in answer, answer
        assert found(answer["result"])


@pytest.mark.parametrize("watch_files", ["auto", "poll"])
@pytest.mark.parametrize("by", ["register.json", "register.sh"])
def test_a_changed_registration_is_told_and_served(
    project: ProjectBuilder, speak: Speak, by: str, watch_files: str
) -> None:
    def register(*tools: str) -> None:
        if by == "register.json":
            register_json(project, tools=[{"name": name, "path": "found"} for name in tools])
        else:
            register_sh(
                project, "\n".join(f"""mcp_register_tool '{{"name": "{name}", "path": "found"}}'""" for name in tools)
            )

    project.tool("found", "echo found")
    register("one")
    client = speak(watch_files=watch_files, tools_ttl=0.05 if watch_files == "poll" else 60, **HOOKS)
    assert names(client, "tools") == ["one"]
    register("one", "two")
    client.wire.notice(CHANGED)
    assert names(client, "tools") == ["one", "two"]
    (project.root / "server.d" / by).unlink()
    client.wire.notice(CHANGED)

    assert names(client, "tools") == ["found"]
    assert len(client.wire.notices(CHANGED)) == 2


def test_a_server_that_ends_takes_its_hook_along(project: ProjectBuilder, start: Start) -> None:
    register_sh(project, "echo $$ > pid; sleep 600")
    wire = start(EOF_GRACE_SECS=0, **HOOKS).greeted()
    pid = eventually(lambda: (project.root / "pid").exists() and project.read("pid").strip())

    assert wire.stop() == 0
    eventually(lambda: not is_alive(pid))


def test_what_the_hook_said_is_asked_for_again_when_it_is_old(project: ProjectBuilder, speak: Speak) -> None:
    project.tool("found", "echo found")
    project.write("choice", "one")
    register_sh(project, """mcp_register_tool "{\\"name\\": \\"$(cat choice)\\", \\"path\\": \\"found\\"}" """)
    client = speak(register_ttl=0.05, **HOOKS)
    assert names(client, "tools") == ["one"]
    project.write("choice", "two")

    eventually(lambda: names(client, "tools") == ["two"])
    client.wire.notice(CHANGED)


def test_a_static_registry_is_read_once_and_not_watched(project: ProjectBuilder, speak: Speak) -> None:
    register_json(project, tools=[{"name": "one", "path": "found"}])
    project.tool("found", "sleep 0.2; echo hello from $MCP_TOOL_NAME")  # by then a watch would have begun
    client = speak(env={"MCPBASH_STATIC_REGISTRY": "1"}, tools_ttl=0.05)
    assert names(client, "tools") == ["one"]
    place(project, "server.d/register.json", "{")
    project.tool("another", "echo")

    assert names(client, "tools") == ["one"]
    assert text_of(client.call_tool("one")) == "hello from one\n"
    assert names(client, "tools") == ["one"]
    assert client.wire.notices(CHANGED) == []


@pytest.mark.parametrize("is_open", [False, True], ids=["ours alone", "open to others"])
def test_a_static_registry_serves_what_an_earlier_server_wrote_if_it_can_be_trusted(
    project: ProjectBuilder, speak: Speak, is_open: bool
) -> None:
    """It read every description at each start."""
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    project.tool("found", "sleep 600", inputSchema=schema, timeoutSecs=0.1)
    project.prompt("hello.txt", "Hello {{who}}", arguments=[{"name": "who"}])
    project.resource("note.txt", "note", uri="own://note")
    for planted in (False, True):
        client = speak(static_registry="true")
        with client.wire as wire:
            assert names(client, "tools") == (["found", "later"] if planted and is_open else ["found"])
            error = client.call_tool("found", {"n": "x"})
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
