"""Sessions and streams in numbers that no client needs, and with ids that no client was given."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import pytest

from mcpgreen.transports.http.sessions import MAX_OUTLETS, HttpSession
from mcpgreen.transports.http.streams.outlet import MAX_KEPT_BYTES, Outlets
from tests.support.descriptors import descriptors_of, needs_proc, new_descriptors
from tests.support.http import BOTH_TYPES, HttpServer, Serve
from tests.support.processes import MIB, memory_bytes
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually, is_alive
from tests.transports.http.attacking import TOKEN, Raw, asked, discovery, figures, head, is_serving, posted, raw

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "tests", "version": "1"}},
}


@pytest.fixture(scope="module")
def server(shared_project: ProjectBuilder) -> Iterator[HttpServer]:
    with HttpServer(shared_project.root) as started:
        yield started
        assert "Traceback" not in started.stderr, started.stderr


def open_many(server: HttpServer, number: int, *lines: str) -> list[str]:
    """The ids of new sessions, which nobody uses."""
    ids = []
    with raw(server) as connection:
        for done in range(0, number, 50):
            connection.send(posted(INITIALIZE, *lines) * min(50, number - done))
            ids += [connection.answer().headers["mcp-session-id"] for _ in range(min(50, number - done))]
    return ids


@pytest.mark.requirement("G-http-session-id")
def test_ids_of_sessions_are_128_bits_and_never_twice_the_same(server: HttpServer) -> None:
    ids = open_many(server, 200)
    assert len(set(ids)) == 200
    assert all(len(bytes.fromhex(each)) == 16 for each in ids)


def test_a_client_does_not_choose_the_id_of_its_session(server: HttpServer) -> None:
    """Who could, would have one that somebody else knows."""
    chosen = "0" * 32
    assert asked(server, posted(INITIALIZE, f"Mcp-Session-Id: {chosen}")).headers["mcp-session-id"] != chosen


def test_a_proxy_may_choose_one_that_nobody_has(serve: Serve, project: ProjectBuilder) -> None:
    server = serve(http_accept_session_ids=True)
    chosen = "0123456789abcdef" * 2
    line = f"Mcp-Session-Id: {chosen}"
    assert asked(server, posted(INITIALIZE, line)).headers["mcp-session-id"] == chosen
    assert asked(server, posted(INITIALIZE, line)).headers["mcp-session-id"] != chosen
    for odd in ("short", "g" * 32, "0" * 33, "A" * 32, "0" * 31 + ":"):
        assert asked(server, posted(INITIALIZE, f"Mcp-Session-Id: {odd}")).headers["mcp-session-id"] != odd


@pytest.mark.parametrize("id", ["0" * 32, "x", "a" * 10_000, "../../etc/passwd", "%00", "\xff\xfe", "null", "0"])
def test_an_id_that_nobody_was_given_is_unknown(server: HttpServer, id: str) -> None:
    lines = (f"Mcp-Session-Id: {id}", "MCP-Protocol-Version: 2025-11-25", "Accept: text/event-stream")
    for method in ("GET", "DELETE"):
        assert asked(server, head(method, "/mcp", *lines)).status == 404
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    assert asked(server, posted(ping, *lines[:2])).status == 404


def test_there_are_so_many_sessions_and_no_more(serve: Serve, project: ProjectBuilder) -> None:
    server = serve(http_max_sessions=1)
    ids = open_many(server, 1)
    answer = asked(server, posted(INITIALIZE))
    assert (answer.status, answer.headers["retry-after"]) == (503, "60")
    assert "There are 1 sessions already" in answer.json()["error"]["message"]
    assert is_serving(server), "who needs no session is served all the same"
    line = f"Mcp-Session-Id: {ids[0]}"
    assert asked(server, head("DELETE", "/mcp", line, "MCP-Protocol-Version: 2025-11-25")).status == 204
    assert asked(server, posted(INITIALIZE)).status == 200


def test_one_caller_has_so_many_sessions_and_no_more(serve: Serve, project: ProjectBuilder) -> None:
    server = serve(MAX_SESSIONS_PER_PRINCIPAL=3, http_token=TOKEN)
    bearer = f"Authorization: Bearer {TOKEN}"
    open_many(server, 3, bearer)
    answer = asked(server, posted(INITIALIZE, bearer))
    assert answer.status == 503
    assert "You have 3 sessions already" in answer.json()["error"]["message"]


@pytest.mark.alone
@needs_proc
def test_ten_thousand_abandoned_sessions_leave_nothing(serve: Serve, project: ProjectBuilder) -> None:
    server = serve(http_max_sessions=20_000, http_session_idle_secs=1)
    open_many(server, 100)
    eventually(lambda: figures(server)["mcpgreen_sessions"] == 0)
    sockets = descriptors_of(server.pid).count("socket")
    for round_ in range(2):
        open_many(server, 5000)
        eventually(lambda: figures(server)["mcpgreen_sessions"] == 0)
        if not round_:
            after_first = memory_bytes(server.pid)
    assert memory_bytes(server.pid) - after_first < 8 * MIB
    eventually(lambda: descriptors_of(server.pid).count("socket") <= sockets)
    assert is_serving(server)


def test_a_session_that_is_full_of_streams_that_nobody_reads_is_idle(serve: Serve, project: ProjectBuilder) -> None:
    """Only who is connected uses a session: what it left behind does not keep it."""
    project.tool("hello", "echo hello")
    server = serve(http_session_idle_secs=1)
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "hello", "arguments": {}}}
    (id,) = open_many(server, 1)
    for _ in range(3):
        with raw(server) as connection:
            connection.send(posted(call, f"Mcp-Session-Id: {id}", "MCP-Protocol-Version: 2025-11-25"))
    eventually(lambda: figures(server)["mcpgreen_sessions"] == 0)


@pytest.mark.parametrize(
    "last",
    [
        "0-0",
        "0-999999999999",
        "1-1",
        "999999999999-1",
        "9" * 30 + "-1",
        "1-" + "9" * 30,
        "-1-1",
        "1--1",
        "0",
        "-",
        "",
        "a-b",
        "0-0, 0-1",
        "0x1-1",
        "²-²",
        "1" * 20000,
        "0-1\t",
        "00-00",
        "1.0-1",
    ],
)
def test_an_event_that_was_never_sent_leads_to_no_stream_of_somebody_else(server: HttpServer, last: str) -> None:
    other = server.session()
    assert other.result("tools/list")["tools"] == []
    session = server.session()
    lines = (f"Mcp-Session-Id: {session.session_id}", "MCP-Protocol-Version: 2025-11-25", "Accept: text/event-stream")
    with raw(server) as connection:
        connection.send(head("GET", "/mcp", *lines, f"Last-Event-ID: {last}"))
        begin = connection._until(b"\r\n\r\n")
        status = int(begin.split(b" ")[1])
        assert status in (200, 405)
        if status == 200:
            assert session.delete().status == 204
            assert b"tools" not in b"".join(connection.chunks())


@pytest.mark.requirement("G-http-standing-stream")
def test_a_second_stream_of_a_session_takes_over_and_nothing_is_said_twice(
    serve: Serve, project: ProjectBuilder
) -> None:
    server = serve(QUIET_SECS=0.01)
    session = server.session()
    streams = []
    for _ in range(20):
        streams.append(session.get())
        assert streams[-1].status == 200
        assert streams[-1].next_event() is not None
    for each in streams[:-1]:
        assert each.rest() == []
    project.tool("new", "echo new")
    assert streams[-1].notice("notifications/tools/list_changed")
    assert session.delete().status == 204
    assert streams[-1].rest() == []


BOMBS = {
    "depth": b"[" * 100_000,
    "closed depth": b"[" * 10_000 + b"]" * 10_000,
    "objects": b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
    "parts": b"[" + b"[]," * 400_000 + b"[]]",
    "numbers": b"[" + b"1," * 600_000 + b"1]",
    "long number": b'{"jsonrpc":"2.0","id":' + b"9" * 1_000_000 + b',"method":"ping"}',
    "large number": b'{"jsonrpc":"2.0","id":1e999999,"method":"ping"}',
    "not a number": b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}',
    "not utf-8": b'{"jsonrpc":"2.0","id":1,"method":"\xff\xfe"}',
    "utf-16": '{"jsonrpc":"2.0","id":1,"method":"ping"}'.encode("utf-16"),
    "mark": b"\xef\xbb\xbf" + json.dumps(INITIALIZE).encode(),
    "nothing": b"",
    "blanks": b" " * 3_000_000,
    "nulls": b"\0" * 1000,
    "cut": json.dumps(INITIALIZE).encode()[:-5],
    "two": json.dumps(INITIALIZE).encode() * 2,
    "zipped": bytes.fromhex("1f8b0800000000000003") + b"\0" * 100,
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_body_that_is_no_message_is_refused_without_being_built(server: HttpServer, name: str) -> None:
    answer = asked(server, posted(BOMBS[name]))
    assert answer.status == 400
    assert answer.json()["error"]["code"] in (-32700, -32600)
    assert len(answer.body) < 1000
    assert is_serving(server)


def test_a_batch_of_a_thousand_is_answered_and_a_longer_one_is_not(server: HttpServer) -> None:
    session = server.session("2025-03-26")
    batch = [{"jsonrpc": "2.0", "id": number, "method": "ping"} for number in range(1000)]
    answers = session.post(batch).json()
    assert sorted(each["id"] for each in answers) == list(range(1000))
    longer = session.post([*batch, {"jsonrpc": "2.0", "id": 1000, "method": "ping"}]).json()
    assert longer["error"]["code"] == -32600


def test_what_a_tool_prints_is_no_header_and_no_event_of_its_own(serve: Serve, project: ProjectBuilder) -> None:
    """Response splitting by results, and events by line ends in them."""
    evil = r"x\r\n\r\nHTTP/1.1 200 OK\r\nX-Evil: 1\r\n\r\n\ndata: {}\n\nid: 9-9\nevent: endpoint\n\r\rdata: evil\r\r"
    project.tool("evil", f"mcp_progress 1 2>/dev/null; printf '{evil}'")
    server = serve()
    for client in (server.session(), server.stateless()):
        for accept in ("application/json", "text/event-stream"):
            reply = client.start_tool("evil", headers={"Accept": accept})
            assert "X-Evil" not in reply.headers
            answer = reply.answer()
            assert "X-Evil: 1" in answer["result"]["content"][0]["text"]
            assert all(event.name is None and (event.id or "").find("9-9") < 0 for event in reply.events)
    assert is_serving(server)


def test_what_a_client_sends_is_no_line_of_the_log(serve: Serve, project: ProjectBuilder) -> None:
    server = serve(log_level="debug")
    sly = "\x1b[31mmcpgreen: critical: all is lost\x85\x9b\u2028"
    for text in (sly, "\nmcpgreen: critical: all is lost\n"):
        message: dict[str, Any] = {**INITIALIZE, "method": text, "id": text}
        asked(server, posted(message))
        asked(server, discovery(f"X-Sly: {sly[:20]}", f"User-Agent: {sly[:20]}".replace("\x1b", "\x80")))
        asked(server, head("GET", "/%0a%1b" + "mcpgreen:%20critical"))
    with raw(server) as connection:
        connection.send(b"GET /\x1b[31m\nmcpgreen: critical: all is lost HTTP/1.1\r\n\r\n").answer()
    assert server.stop() == 0
    assert "\x1b" not in server.stderr
    assert not any(line.startswith("mcpgreen: critical") for line in server.stderr_lines)


@pytest.mark.alone
@needs_proc
def test_five_hundred_streams_and_fifty_calls_are_served_and_leave_nothing(
    serve: Serve, project: ProjectBuilder
) -> None:
    project.tool("hello", "echo hello")
    project.tool("wait", 'echo $$ >>"$MCPGREEN_PROJECT_ROOT/pids"; exec sleep 600')
    server = serve(http_max_connections=900, max_concurrent_requests=68, http_session_idle_secs=1, observe="off")
    client = server.stateless()
    assert client.call_tool("hello")["content"][0]["text"] == "hello\n"  # what scripts need once is there
    eventually(lambda: "anon_inode:inotify" in descriptors_of(server.pid))  # and what watches the project
    before = descriptors_of(server.pid)
    with contextlib.ExitStack() as ends:
        for _ in range(250):
            ends.callback(client.listen(toolsListChanged=True).close)
        ids = open_many(server, 250)
        for each in ids:
            stream = ends.enter_context(contextlib.closing(Raw(server.connect())))
            lines = (f"Mcp-Session-Id: {each}", "MCP-Protocol-Version: 2025-11-25", "Accept: text/event-stream")
            stream.send(head("GET", "/mcp", *lines))
            assert b"200 OK" in stream._until(b"\r\n\r\n")
        for _ in range(50):
            ends.callback(client.start_tool("wait", headers={"Accept": BOTH_TYPES}).close)
        eventually(lambda: figures(server)["mcpgreen_running_calls"] == 50)
        measured = figures(server)
        assert (measured["mcpgreen_open_listens"], measured["mcpgreen_sessions"]) == (250, 250)
        eventually(lambda: len(project.read("pids").split()) == 50)
        assert is_serving(server)
        assert server.session().result("ping") == {}
    eventually(lambda: figures(server)["mcpgreen_http_connections"] == 1)
    for name in ("running_calls", "waiting_calls", "open_listens", "sessions"):
        eventually(lambda name=name: figures(server)[f"mcpgreen_{name}"] == 0)  # type: ignore[misc]
    eventually(lambda: not any(is_alive(pid) for pid in project.read("pids").split()))
    eventually(lambda: new_descriptors(server.pid, before) == [])
    assert server.stop() == 0


@needs_proc
@pytest.mark.alone
def test_a_session_takes_no_more_memory_for_each_request_that_was_answered(
    serve: Serve, project: ProjectBuilder
) -> None:
    """The streams that answers could have been were kept: 80 KB for each session after some requests."""
    server = serve()
    ids = open_many(server, 200)
    before = memory_bytes(server.pid)
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    with raw(server) as connection:
        for each in ids:
            connection.send(posted(ping, f"Mcp-Session-Id: {each}", "MCP-Protocol-Version: 2025-11-25") * 40)
            assert [connection.answer().status for _ in range(40)] == [200] * 40
    assert memory_bytes(server.pid) - before < 200 * 16 * 1024


def test_a_slow_reader_gets_all_of_a_stream_however_many_come_after() -> None:
    """When a session had many streams, the oldest that was over was forgotten, also while it was being sent."""
    outlets = Outlets(max_backlog_bytes=1 << 30)
    session = HttpSession("id", outlets.new(key=0), None)
    slow, carrier = outlets.new(key=1), object()
    session.keep(1, slow)
    slow.notify(b"x" * MAX_KEPT_BYTES + b"1")
    slow.respond(b"the answer")
    stream = slow.stream(carrier, keep_alive_secs=1)
    next(stream)
    for key in range(2, 3 * MAX_OUTLETS):
        other = outlets.new(key=key)
        session.keep(key, other)
        other.end()
        assert list(other.stream(carrier, keep_alive_secs=1))
    assert b"the answer" in b"".join(stream)
    assert session.outlet(1) is slow
    assert session.outlet(2) is None
