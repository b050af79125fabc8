"""The first lists are answered before the engine is there, and nobody can tell by the answers."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mcpgreen.project.project import bundled_project_root
from tests.support.client import ALL_REVISIONS
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually
from tests.support.wire import LATEST_HANDSHAKE, Wire, clean_environment, modern_meta

Json = dict[str, Any]
METHODS = ("tools/list", "resources/list", "resources/templates/list", "prompts/list")
STATELESS = "2026-07-28"
CHECKOUT = Path(__file__).resolve().parents[2]
EXAMPLES = ("06-resources", "07-prompts", "14-manual-registration", "21-python-function", "22-wrapped", "23-ui-page")
PICTURE = b"\x89PNG\r\n\x1a\n"


def opening(revision: str) -> list[Json]:
    """What a client says first."""
    if revision == STATELESS:
        return []
    params = {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    return [
        {"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": params},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
    ]


def request(method: str, revision: str, **params: Any) -> Json:
    meta = {"_meta": modern_meta()} if revision == STATELESS else {}
    return {"jsonrpc": "2.0", "id": f"{method} {params}", "method": method, "params": {**params, **meta}}


def answers(wire: Wire, revision: str, requests: list[Json], *, by_engine: bool) -> list[bytes]:
    """The lines that answer the requests, which are sent all at once behind the greeting. What comes after a message
    that is nobody's business here is left to the engine."""
    aside = [{"jsonrpc": "2.0", "method": "notifications/unheard-of"}] if by_engine else []
    wire.send(*opening(revision), *aside, *requests)
    by_id: dict[Any, bytes] = {}  # they may come in any order
    while not all(each["id"] in by_id for each in requests):
        line = wire.next_line()
        by_id[json.loads(line).get("id")] = line
    wire.end()
    return [by_id[each["id"]] for each in requests]


def both(start: Callable[..., Wire], revision: str, requests: list[Json], **settings: Any) -> tuple[Any, Any]:
    early = answers(start(**settings), revision, requests, by_engine=False)
    late = answers(start(**settings), revision, requests, by_engine=True)
    return early, late


@pytest.fixture
def rich(project: ProjectBuilder) -> ProjectBuilder:
    """Something of everything that may be in a list."""
    schema = {"type": "object", "properties": {"a": True, "b": {"type": "string"}}, "required": ["b"]}
    icons = [{"src": "icon.png", "sizes": "48x48"}]
    project.tool("plain", "echo")
    project.tool(
        "full",
        "echo",
        title="Ein Gerät",
        description="Über / alles \ud83d\ude00",
        inputSchema=schema,
        outputSchema={"type": "array"},
        annotations={"readOnlyHint": True},
        icons=icons,
        timeoutSecs=5,
        _meta={"x/y": 1.0},
    )
    project.write("tools/inline.sh", '#!/bin/sh\n# mcp: {"name": "inline", "description": "in a comment"}\necho\n')
    project.write("tools/paged/run.sh", "#!/bin/sh\necho\n").chmod(0o755)
    project.write("tools/paged/ui/index.html", "<html></html>")
    project.write("ui/board/index.html", "<html></html>")
    project.python_tool(
        "typed",
        "from mcp_tool import run\n\n\ndef typed(name: str, times: int = 1) -> str:\n"
        '    """Say it.\n\n    Args:\n        name: Who\n    """\n    return name * times\n\n\nrun(typed)\n',
    )
    (project.root / "tools/icon.png").write_bytes(PICTURE)
    project.resource("note.txt", "text", title="A note", annotations={"lastModified": "2025-01-01T00:00:00Z"})
    project.described("family", uriTemplate="file:///{+path}", description="files")
    project.prompt("hello.txt", "Hello {{name}}", arguments=[{"name": "name", "title": "Name", "required": True}])
    project.write("tools/not-a-tool.sh", "nothing")  # which is worth a word in the log
    return project


@pytest.mark.parametrize("revision", ALL_REVISIONS)
def test_the_first_lists_are_those_of_the_engine(
    rich: ProjectBuilder, start: Callable[..., Wire], revision: str
) -> None:
    early, late = both(start, revision, [request(method, revision) for method in METHODS])

    assert early == late
    assert all(json.loads(line)["result"] for line in early)


@pytest.mark.parametrize("name", ["bundled", *EXAMPLES])
def test_so_are_those_of_projects_that_people_begin_with(tmp_path: Path, name: str) -> None:
    source = Path(bundled_project_root()) if name == "bundled" else next(CHECKOUT.glob(f"examples/{name}*"))
    shutil.copytree(source, tmp_path / "project", symlinks=True)

    def start(**settings: Any) -> Wire:
        return Wire(tmp_path / "project")

    early, late = both(start, LATEST_HANDSHAKE, [request(method, LATEST_HANDSHAKE) for method in METHODS])

    assert early == late


def test_pages_of_many_tools_are_those_of_the_engine(project: ProjectBuilder, start: Callable[..., Wire]) -> None:
    for number in range(1000):
        comment = json.dumps({"name": f"tool{number:04}", "description": f"Number {number}"})
        project.write(f"tools/{number}.sh", f"#!/bin/sh\n# mcp: {comment}\necho\n")

    early, late = both(start, LATEST_HANDSHAKE, [request("tools/list", LATEST_HANDSHAKE)])
    pages, later_pages = both(start, LATEST_HANDSHAKE, [request("tools/list", LATEST_HANDSHAKE)], page_size=400)

    assert early == late
    assert without_times(pages[0]) == without_times(later_pages[0])


def without_times(line: bytes) -> Json:
    """A cursor says when its list was made."""
    message: Json = json.loads(line)
    cursor = message["result"]["nextCursor"]
    content = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    del content["timestamp"]
    message["result"]["nextCursor"] = content
    return message


def test_the_cursor_of_a_first_page_leads_on(project: ProjectBuilder, start: Callable[..., Wire]) -> None:
    for name in "abc":
        project.tool(name, "echo")
    wire = start(page_size=2)
    wire.send(*opening(LATEST_HANDSHAKE), request("tools/list", LATEST_HANDSHAKE))
    first = wire.response(request("tools/list", LATEST_HANDSHAKE)["id"])["result"]

    rest = wire.result("tools/list", {"cursor": first["nextCursor"]})

    assert [tool["name"] for tool in first["tools"] + rest["tools"]] == ["a", "b", "c"]


def test_registered_items_are_in_the_first_list(project: ProjectBuilder, start: Callable[..., Wire]) -> None:
    project.tool("found", "echo")
    project.tool("chosen", "echo")
    project.write("server.d/register.json", '{"version": 1, "tools": [{"name": "chosen", "path": "chosen"}]}')

    early, late = both(start, LATEST_HANDSHAKE, [request("tools/list", LATEST_HANDSHAKE)])

    assert early == late
    assert b'"chosen"' in early[0]
    assert b'"found"' not in early[0]


def test_the_first_list_waits_for_a_hook(project: ProjectBuilder, start: Callable[..., Wire]) -> None:
    project.tool("chosen", "echo")
    line = """mcp_register_tool '{"name": "by-hook", "path": "chosen"}'"""
    project.program("server.d/register.sh", f"#!/bin/bash\n{line}\n")

    early, _ = both(start, LATEST_HANDSHAKE, [request("tools/list", LATEST_HANDSHAKE)], allow_project_hooks=True)

    assert b'"by-hook"' in early[0]


def test_what_changes_after_the_first_list_is_told(project: ProjectBuilder, start: Callable[..., Wire]) -> None:
    project.tool("a", "echo")
    wire = start(wire={"is_fresh": True})
    wire.send(*opening(LATEST_HANDSHAKE), request("tools/list", LATEST_HANDSHAKE))
    wire.response(request("tools/list", LATEST_HANDSHAKE)["id"])

    project.tool("b", "echo")

    wire.notice("notifications/tools/list_changed")
    assert [tool["name"] for tool in wire.result("tools/list")["tools"]] == ["a", "b"]


def test_the_client_is_asked_for_its_roots_all_the_same(project: ProjectBuilder, start: Callable[..., Wire]) -> None:
    """The engine has to hear that the handshake is over, although its first list is out by then."""
    project.tool("a", "echo")
    wire = start()
    hello, ready = opening(LATEST_HANDSHAKE)
    hello["params"]["capabilities"] = {"roots": {}}

    wire.send(hello, ready, request("tools/list", LATEST_HANDSHAKE))

    wire.response(request("tools/list", LATEST_HANDSHAKE)["id"])
    wire.receive(lambda message: message.get("method") == "roots/list")


def test_what_is_wrong_with_a_tool_reaches_the_client(project: ProjectBuilder, start: Callable[..., Wire]) -> None:
    project.tool("a", "echo")
    project.tool("bad", "echo", inputSchema=[])
    wire = start()

    wire.send(*opening(LATEST_HANDSHAKE), request("tools/list", LATEST_HANDSHAKE))

    notice = wire.notice("notifications/message")
    assert "bad.meta.json" in notice["params"]["data"]


def test_a_client_that_writes_before_it_reads_is_served(project: ProjectBuilder, start: Callable[..., Wire]) -> None:
    """A list that is longer than a pipe holds, and behind it more requests than another pipe holds."""
    for number in range(300):
        project.tool(f"tool{number:04}", "echo", description="x" * 1000)
    wire = start(wire={"is_fresh": True})
    pings = [{"jsonrpc": "2.0", "id": number, "method": "ping"} for number in range(3000)]

    wire.send(*opening(LATEST_HANDSHAKE), request("tools/list", LATEST_HANDSHAKE), *pings)

    listed = wire.response(request("tools/list", LATEST_HANDSHAKE)["id"])["result"]
    assert len(listed["tools"]) == 300
    wire.response(2999)


def test_a_client_that_reads_late_gets_all_of_its_first_list(project: ProjectBuilder) -> None:
    """What the pipe does not hold is left to the engine, which writes it before anything else."""
    for number in range(300):
        project.tool(f"tool{number:04}", "echo", description="x" * 1000)
    messages = [*opening(LATEST_HANDSHAKE), request("tools/list", LATEST_HANDSHAKE)]
    command = [sys.executable, "-m", "mcpgreen", "--project-root", str(project.root)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, env=clean_environment(), **pipes) as server:  # type: ignore[call-overload]
        server.stdin.write(b"".join(json.dumps(each).encode() + b"\n" for each in messages))
        server.stdin.flush()
        eventually(lambda: (project.root / ".registry/tools.json").exists())  # which the engine writes
        server.stdin.write(b'{"jsonrpc": "2.0", "id": "last", "method": "ping"}\n')
        server.stdin.flush()

        lines = [json.loads(server.stdout.readline()) for _ in range(3)]
        server.stdin.close()

    assert [line["id"] for line in lines] == ["hello", messages[2]["id"], "last"]
    assert len(lines[1]["result"]["tools"]) == 300


def test_the_second_start_answers_as_the_first_did(
    rich: ProjectBuilder, start: Callable[..., Wire], tmp_path: Path
) -> None:
    """From what it kept, which nobody can tell by the answers; and the engine finds everything as it was listed."""
    cache = tmp_path / "cache"
    (rich.root / "tools/icon.png").unlink()
    (rich.root / "tools/full.meta.json").unlink()  # lists with pictures in them are not kept
    env = {"XDG_CACHE_HOME": str(cache)}
    requests = [request(method, LATEST_HANDSHAKE) for method in METHODS]
    server = start(env=env)
    server.send(*opening(LATEST_HANDSHAKE), *requests)
    eventually(lambda: len(list(cache.glob("mcpgreen-lists/[0-9a-f]*"))) == 3)
    first = answers(start(env={"XDG_CACHE_HOME": str(tmp_path / "none")}), LATEST_HANDSHAKE, requests, by_engine=True)

    assert answers(start(env=env), LATEST_HANDSHAKE, requests, by_engine=False) == first
    again = start(env=env)
    again.send(*opening(LATEST_HANDSHAKE), *requests)
    again.response(requests[0]["id"])
    assert not again.call_tool("plain").get("isError")
    assert not again.notices("notifications/tools/list_changed")
