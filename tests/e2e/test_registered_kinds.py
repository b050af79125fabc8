"""Resources, templates, prompts and completions that a project registers by hand, through the whole server."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from typing import Any

import gevent
import pytest

from mcpgreen.engine import router
from mcpgreen.engine.server import Server
from mcpgreen.links.memory import MemorySink
from mcpgreen.project.project import open_project
from tests.support.client import Client
from tests.support.descriptors import descriptors_of, has_proc
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually
from tests.support.wire import LATEST_HANDSHAKE, MODERN, Wire, modern_meta, text_of

Json = dict[str, Any]

ERAS = (LATEST_HANDSHAKE, MODERN)
HOOKS = {"allow_project_hooks": "true"}
KINDS = ("tools", "resources", "prompts")

# Ten names, of which it gives as many as are wanted, from where the last answer ended.
PAGING_COMPLETION = """#!/bin/bash
offset=$MCP_COMPLETION_OFFSET limit=$MCP_COMPLETION_LIMIT
values= next=$((offset + limit))
for ((i = offset; i < next && i < 10; i++)); do values="$values${values:+,}\\"$MCP_COMPLETION_NAME-$i\\""; done
if ((next < 10)); then more=true; else more=false next=null; fi
echo "{\\"suggestions\\": [$values], \\"hasMore\\": $more, \\"next\\": $next, \\"total\\": 10}"
"""


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
def test_what_is_registered_is_offered_and_nothing_else(
    overrides: ProjectBuilder, speak: Callable[..., Client], revision: str
) -> None:
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


@pytest.mark.parametrize("revision", ERAS)
def test_pictures_of_a_registered_prompt_lie_in_prompts(
    project: ProjectBuilder, speak: Callable[..., Client], revision: str
) -> None:
    """A prompt of messages only looked for them in prompts/server.d/."""
    place(project, "prompts/dot.png", "dot")
    content = {"type": "image", "path": "dot.png"}
    register_json(project, prompts=[{"name": "look", "messages": [{"content": content}]}])
    (message,) = speak(revision).result("prompts/get", {"name": "look"})["messages"]

    assert message["content"] == {"type": "image", "mimeType": "image/png", "data": "ZG90"}


@pytest.mark.parametrize("revision", ERAS)
def test_a_registered_completion_is_paged(project: ProjectBuilder, speak: Callable[..., Client], revision: str) -> None:
    place(project, "completions/demo.sh", PAGING_COMPLETION, 0o755)
    register_json(project, completions=[{"name": "demo.completion", "path": "completions/demo.sh", "timeoutSecs": 5}])
    client = speak(revision)
    pages: list[Json] = []
    while not pages or "nextCursor" in pages[-1]:
        cursor = {"cursor": pages[-1]["nextCursor"]} if pages else {}
        pages.append(completion(client, "demo.completion", "x", limit=3, **cursor))

    assert [each for page in pages for each in page["values"]] == [f"demo.completion-{i}" for i in range(10)]
    assert [len(page["values"]) for page in pages] == [3, 3, 3, 1]
    assert [page["hasMore"] for page in pages] == [True, True, True, False]
    assert {page["total"] for page in pages} == {10}


@pytest.fixture
def templates(project: ProjectBuilder) -> ProjectBuilder:
    def described(name: str, uri_template: str) -> str:
        return json.dumps({"name": name, "uriTemplate": uri_template, "description": "found", "title": "Found"})

    place(project, "resources/logs.meta.json", described("logs-by-date", "echo://logs/{date}"))
    place(project, "resources/project.meta.json", described("project-files", "echo://found/{path}"))
    register_json(
        project,
        resourceTemplates=[
            {"name": "repo-tree", "uriTemplate": "git+https://example.org/repo#{ref}:{+path}"},
            {
                "name": "project-files",
                "uriTemplate": "echo://mine/{path}",
                "title": "Mine",
                "description": "registered",
                "mimeType": "text/x-mine",
            },
        ],
    )
    return project


@pytest.mark.parametrize("revision", ERAS)
def test_registered_templates_join_the_found_ones(
    templates: ProjectBuilder, speak: Callable[..., Client], revision: str
) -> None:
    client = speak(revision)
    logs, files, tree = listed(client, "resourceTemplates")

    assert [each["name"] for each in (logs, files, tree)] == ["logs-by-date", "project-files", "repo-tree"]
    assert (logs["uriTemplate"], logs["title"]) == ("echo://logs/{date}", "Found")
    assert files == {
        "name": "project-files",
        "uriTemplate": "echo://mine/{path}",
        "title": "Mine",
        "description": "registered",
        "mimeType": "text/x-mine",
    }
    (contents,) = client.result("resources/read", {"uri": "echo://mine/x"})["contents"]
    assert (contents["text"], contents["mimeType"]) == ("mine/x", "text/x-mine")


@pytest.mark.parametrize("revision", ERAS)
def test_an_argument_of_a_registered_template_is_completed(
    templates: ProjectBuilder, speak: Callable[..., Client], revision: str
) -> None:
    place(templates, "paths.sh", 'echo "[\\"$MCP_RESOURCE_URI$MCP_RESOURCE_REL_PATH\\"]"', 0o755)
    content = json.loads(templates.read("server.d/register.json"))
    register_json(templates, **{**content, "completions": [{"name": "project-files", "path": "paths.sh"}]})
    client = speak(revision)
    ref = {"type": "ref/resource", "uri": "echo://mine/{path}"}
    answer = client.result("completion/complete", {"ref": ref, "argument": {"name": "path", "value": "s"}})

    assert answer["completion"]["values"] == ["echo://mine/{path}"]


@pytest.mark.parametrize("revision", ERAS)
@pytest.mark.parametrize("is_alternative_wanted", [False, True])
def test_register_sh_registers_completions_and_templates(
    project: ProjectBuilder, speak: Callable[..., Client], revision: str, is_alternative_wanted: bool
) -> None:
    place(project, "completions/demo.sh", PAGING_COMPLETION, 0o755)
    register_sh(
        project,
        """
        mcp_completion_manual_begin
        mcp_completion_register_manual '{"name": "demo.completion", "path": "completions/demo.sh", "timeoutSecs": 5}'
        if [[ -n ${DEMO_ENABLE_ALT_COMPLETION:-} ]]; then
          mcp_completion_register_manual '{"name": "demo.completion.alt", "path": "completions/demo.sh"}'
        fi
        mcp_completion_manual_finalize
        mcp_resources_templates_manual_begin
        mcp_resources_templates_register_manual '{
          "name": "logs-by-date", "uriTemplate": "echo://logs/{date}", "description": "One day"}'
        mcp_resources_templates_manual_finalize
        return 0
        """,
    )
    project.tool("found", "echo found")
    env = {"DEMO_ENABLE_ALT_COMPLETION": "1"} if is_alternative_wanted else {}
    client = speak(revision, env=env, **HOOKS)

    assert completion(client, "demo.completion", limit=2)["values"] == ["demo.completion-0", "demo.completion-1"]
    answer = client.request("completion/complete", question("demo.completion.alt", limit=1))
    if is_alternative_wanted:
        assert answer["result"]["completion"]["values"] == ["demo.completion.alt-0"]
    else:
        assert answer["error"]["code"] == -32602
    assert names(client, "resourceTemplates") == ["logs-by-date"]
    assert names(client, "tools") == ["found"]
    (contents,) = client.result("resources/read", {"uri": "echo://logs/today"})["contents"]
    assert contents["text"] == "logs/today"


@pytest.mark.parametrize("revision", ERAS)
def test_a_completion_has_the_time_that_it_was_registered_with(
    project: ProjectBuilder, speak: Callable[..., Client], revision: str
) -> None:
    place(project, "slow.sh", "sleep 60", 0o755)
    register_json(project, completions=[{"name": "slow", "path": "slow.sh", "timeoutSecs": 0.3}])
    error = speak(revision).error("completion/complete", question("slow"))

    assert (error["code"], error["message"]) == (-32603, "Completion 'slow' timed out after 0.3s")


@pytest.mark.parametrize("member", ["next", "nextCursor", "cursor"])
def test_a_script_that_says_where_to_go_on_has_more(
    project: ProjectBuilder, speak: Callable[..., Client], member: str
) -> None:
    """One that named a cursor of its own instead of a number was taken at its word that this was all."""
    where = "1" if member == "next" else '"x"'
    place(project, "c.sh", f"""echo '{{"suggestions": ["'$MCP_COMPLETION_OFFSET'"], "{member}": {where}}}'""", 0o755)
    register_json(project, completions=[{"name": "c", "path": "c.sh"}])
    client = speak()
    first = completion(client, "c")

    assert (first["values"], first["hasMore"]) == (["0"], True)
    assert completion(client, "c", cursor=first["nextCursor"])["values"] == ["1"]


@pytest.mark.parametrize("mode", [0o755, 0o644], ids=oct)
def test_a_completion_script_needs_neither_bit_nor_first_line(
    project: ProjectBuilder, speak: Callable[..., Client], mode: int
) -> None:
    place(project, "c.sh", "echo '[\"one\"]'", mode)
    register_json(project, completions=[{"name": "c", "path": "c.sh"}])

    assert completion(speak(), "c")["values"] == ["one"]


@pytest.mark.parametrize("is_registered", [True, False])
def test_a_completion_script_that_others_may_write_to_is_not_run(
    project: ProjectBuilder, speak: Callable[..., Client], is_registered: bool
) -> None:
    place(project, "prompts/c.txt", "hello")
    place(project, "prompts/c.completion.sh", "#!/bin/sh\ntouch ran; echo '[]'", 0o777)
    if is_registered:
        register_json(project, completions=[{"name": "c", "path": "prompts/c.completion.sh"}])
    error = speak().error("completion/complete", question("c"))

    assert error["code"] == -32602
    reason = "it may be written to by others (chmod go-w prompts/c.completion.sh)"
    assert error["message"] == f"Completion 'c' path rejected by policy: {reason}"
    assert not (project.root / "ran").exists()


def test_a_completion_script_that_has_vanished_is_an_error_that_says_so(
    project: ProjectBuilder, speak: Callable[..., Client]
) -> None:
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
    project: ProjectBuilder, speak: Callable[..., Client], revision: str, by: str
) -> None:
    project.tool("found", "echo found")
    place(project, "prompts/found.txt", "found")
    place(project, "resources/t.meta.json", '{"uriTemplate": "echo://{x}"}')
    if by == "register.json":
        place(project, "server.d/register.json", '{"version": 1, "prompt": []}')
        reason = 'server.d/register.json: unknown key "prompt"'
    else:
        register_sh(project, "exit 3")
        reason = "server.d/register.sh: Manual registration script failed: it ended with status 3"
    client = speak(revision, **HOOKS)
    for method, params, what in REQUESTS:
        error = client.error(method, params)
        assert (error["code"], error["message"]) == (-32603, f"Unable to load {what}"), method
        assert error["data"].startswith(reason)
    (project.root / "server.d" / by).unlink()

    assert names(client, "prompts") == ["found"]
    assert names(client, "resourceTemplates") == ["t"]


def test_mending_is_told_for_the_kinds_whose_lists_changed(
    project: ProjectBuilder, speak: Callable[..., Client]
) -> None:
    """Of a list that nobody asked for meanwhile, and that is as before, nothing needs to be said."""
    register_json(project, tools=[], resources=[], prompts=[{"name": "p", "messages": [{"content": "x"}]}])
    client = speak(watch_files="poll", registry_poll_secs=0.05)
    for kind in KINDS:
        listed(client, kind)
    place(project, "server.d/register.json", "{")
    eventually(lambda: client.wire.stderr.count("unable to load") == 3)
    assert client.error("resources/list")["code"] == -32603
    register_json(project, tools=[], resources=[], prompts=[])
    client.wire.notice("notifications/prompts/list_changed")
    client.wire.notice("notifications/resources/list_changed")

    assert [names(client, kind) for kind in KINDS] == [[], [], []]
    client.wire.settle()
    assert counts_of_changes(client.wire) == {"tools": 0, "resources": 1, "prompts": 1}


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
def test_a_change_while_nobody_asks_is_told_once_for_each_kind_that_changed(
    project: ProjectBuilder, speak: Callable[..., Client], kind: str, told: list[str], watch_files: str
) -> None:
    project.tool("found", "echo '[\"found\"]'")
    register_json(project, **WITH_ALL_KINDS)
    client = speak(watch_files=watch_files, registry_poll_secs=0.05 if watch_files == "poll" else 60)
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


def test_listens_of_the_stateless_era_hear_of_a_changed_registration(
    project: ProjectBuilder, speak: Callable[..., Client]
) -> None:
    register_json(project, prompts=[], resourceTemplates=[])
    client = speak(MODERN)
    wanted = {"promptsListChanged": True, "resourcesListChanged": True, "toolsListChanged": True}
    client.start("subscriptions/listen", {"notifications": wanted}, id="listen")
    client.wire.notice("notifications/subscriptions/acknowledged")
    for kind in (*KINDS, "resourceTemplates"):
        listed(client, kind)
    register_json(project, prompts=[{"name": "p", "messages": [{"content": "x"}]}], resourceTemplates=[])
    client.wire.notice("notifications/prompts/list_changed")
    register_json(project, prompts=[{"name": "p", "messages": [{"content": "x"}]}])
    place(project, "resources/t.meta.json", '{"uriTemplate": "echo://{x}"}')
    client.wire.notice("notifications/resources/list_changed")

    assert names(client, "resourceTemplates") == ["t"]
    assert counts_of_changes(client.wire) == {"tools": 0, "resources": 1, "prompts": 1}


def test_a_static_registry_sees_no_change_of_any_kind(project: ProjectBuilder, speak: Callable[..., Client]) -> None:
    project.tool("found", "sleep 0.2; echo '[\"found\"]'")  # by then a watch would have begun
    register_json(project, **WITH_ALL_KINDS)
    client = speak(static_registry="true", tools_ttl=0, register_ttl=0.01, registry_poll_secs=0.05)
    kinds = (*KINDS, "resourceTemplates")
    before = [listed(client, kind) for kind in kinds]
    assert completion(client, "c")["values"] == ["found"]
    place(project, "server.d/register.json", "{")
    place(project, "resources/new.txt", "new")
    place(project, "prompts/new.txt", "new")
    client.call_tool("t")

    assert [listed(client, kind) for kind in kinds] == before
    assert completion(client, "c")["values"] == ["found"]
    assert client.result("prompts/get", {"name": "p"})["messages"]
    client.wire.settle()
    assert counts_of_changes(client.wire) == dict.fromkeys(KINDS, 0)
    if has_proc:
        assert "anon_inode:inotify" not in descriptors_of(client.wire.process.pid)


@pytest.mark.parametrize("revision", ERAS)
@pytest.mark.parametrize(
    ("method", "params", "found"),
    [
        ("resources/list", {}, lambda result: result["resources"][0]["name"] == "r"),
        ("resources/templates/list", {}, lambda result: result["resourceTemplates"][0]["name"] == "rt"),
        ("resources/read", {"uri": "note:r"}, lambda result: result["contents"][0]["text"] == "r"),
        ("resources/read", {"name": "r"}, lambda result: result["contents"][0]["text"] == "r"),
        ("prompts/get", {"name": "p"}, lambda result: result["messages"][0]["content"]["text"] == "hello"),
        ("completion/complete", question("c"), lambda result: result["completion"]["values"] == ["one"]),
    ],
    ids=["resources", "templates", "read", "read by name", "get", "complete"],
)
def test_a_first_request_waits_for_the_hook_and_nobody_else_does(
    project: ProjectBuilder,
    speak: Callable[..., Client],
    revision: str,
    method: str,
    params: Json,
    found: Callable[[Json], bool],
) -> None:
    place(project, "prompts/p.txt", "hello")
    place(project, "c.sh", "echo '[\"one\"]'", 0o755)
    place(project, "providers/note.sh", '#!/bin/sh\nprintf %s "${1#note:}"', 0o755)
    register_sh(
        project,
        """
        touch running
        until [[ -e go ]]; do sleep 0.02; done
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


def test_a_listen_to_resources_does_not_wait_for_the_hook(
    project: ProjectBuilder, speak: Callable[..., Client]
) -> None:
    """The server answered nobody until the hook had ended."""
    note = project.write("resources/note.txt", "old")
    register_sh(project, "touch running; until [[ -e go ]]; do sleep 0.02; done")
    client = speak(MODERN, **HOOKS)
    uri = note.as_uri()
    client.start("subscriptions/listen", {"notifications": {"resourceSubscriptions": [uri]}}, id="listen")
    client.wire.notice("notifications/subscriptions/acknowledged")
    eventually(lambda: (project.root / "running").exists())
    client.result("server/discover")
    project.write("go", "")
    listed(client, "resources")
    before = len(client.wire.notices("notifications/resources/updated"))
    place(project, "resources/note.txt", "new")

    eventually(
        lambda: (
            client.result("server/discover") and len(client.wire.notices("notifications/resources/updated")) > before
        )
    )


@pytest.fixture
def server(project: ProjectBuilder) -> Iterator[Server]:
    place(project, "prompts/p.txt", "hello")
    register_sh(project, """mcp_register_prompt '{"name": "p", "path": "p.txt"}'""")
    flags = {"project_root": str(project.root), "allow_project_hooks": "true"}
    found, settings, environ = open_project(flags, os.environ)
    server = Server(settings, found, environ=environ)
    yield server
    server.stop()


def answer_in(server: Server, meanwhile: Callable[[], None]) -> Json:
    """What a request is told that came when the hook was to be run first."""
    sink = MemorySink()
    link = server.connect(sink, transport="fake")
    link.receive({"jsonrpc": "2.0", "id": 1, "method": "prompts/get", "params": {"name": "p", "_meta": modern_meta()}})
    assert sink.frames == []
    meanwhile()
    with gevent.Timeout(60):
        while not sink.frames:
            gevent.sleep(0.005)
    answer: Json = sink.frames[0]
    return answer


def test_a_request_finds_its_target_when_the_hook_ended_before_its_turn_came(server: Server) -> None:
    """It was then neither looked for at once nor later, and the client got an internal error."""
    registrar = server.services.catalog.registrar
    assert registrar is not None
    answer = answer_in(server, lambda: registrar.current() and None)

    assert answer["result"]["messages"][0]["content"]["text"] == "hello"


def test_what_nobody_foresaw_is_an_answer_also_after_the_hook(
    server: Server, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The client waited for ever."""

    def stumble(call: Any) -> bool:
        raise LookupError("nobody foresaw this")

    monkeypatch.setitem(router.ROUTES, "prompts/get", router.ROUTES["prompts/get"]._replace(runs_script=stumble))

    assert answer_in(server, lambda: None)["error"]["code"] == -32603
    assert "nobody foresaw this" in capfd.readouterr().err
