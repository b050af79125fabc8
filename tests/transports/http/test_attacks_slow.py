"""Clients that are slow on purpose, and very many of them: each loses its connection in time, and nobody else waits."""

from __future__ import annotations

import contextlib
import resource
import select
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.support.descriptors import descriptors_of, needs_proc
from tests.support.http import HttpServer, Serve
from tests.support.processes import MIB, peak_bytes
from tests.support.project import ProjectBuilder
from tests.support.waiting import PATIENCE_SECS, eventually
from tests.support.wire import modern_meta
from tests.transports.http.attacking import (
    Answer,
    Raw,
    asked,
    discovery,
    figures,
    head,
    is_serving,
    mcp_lines,
    posted,
    raw,
)

FIELDS = mcp_lines()


@contextlib.contextmanager
def many(server: HttpServer, number: int, data: bytes = b"") -> Iterator[list[Raw]]:
    connections: list[Raw] = []
    try:
        for _ in range(number):
            connections.append(Raw(server.connect()))
            if data:
                connections[-1].send(data)
        yield connections
    finally:
        for each in connections:
            each.close()


def sockets_of(server: HttpServer) -> int:
    return descriptors_of(server.pid).count("socket")


@pytest.fixture(scope="module")
def impatient(shared_project: ProjectBuilder) -> Iterator[HttpServer]:
    settings: dict[str, Any] = {"HEAD_SECS": 0.5, "BODY_SECS": 0.5, "IDLE_SECS": 0.5}
    with HttpServer(shared_project.root, SEND_SECS=0.5, **settings) as server:
        yield server
        assert "Traceback" not in server.stderr, server.stderr


def drip(connection: Raw, data: bytes) -> bytes:
    """One byte after the other, until the server has enough. What it says."""
    connection.sock.settimeout(0.05)
    for index in range(len(data)):
        try:
            connection.send(data[index : index + 1])
            received = connection.sock.recv(65536)
        except TimeoutError:
            continue
        except OSError:
            return b""
        return received
    raise AssertionError("the server took all of it")


@pytest.mark.parametrize("data", [head("GET", "/healthz", "X: " + "y" * 1000), b"\r\n" * 1000], ids=["head", "lines"])
def test_a_head_that_comes_a_byte_at_a_time_is_not_waited_for(impatient: HttpServer, data: bytes) -> None:
    with raw(impatient) as connection:
        assert drip(connection, data) == b""


def test_a_head_that_never_ends_is_not_waited_for(impatient: HttpServer) -> None:
    with raw(impatient) as connection:
        assert connection.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n").is_closed


@pytest.mark.parametrize("framing", ["Content-Length: 1000", "Transfer-Encoding: chunked"])
def test_a_body_that_comes_a_byte_at_a_time_is_not_waited_for(impatient: HttpServer, framing: str) -> None:
    with raw(impatient) as connection:
        connection.send(head("POST", "/mcp", *FIELDS, framing))
        assert drip(connection, b"1\r\n \r\n" * 1000).startswith(b"HTTP/1.1 408 ")


def test_a_body_that_never_comes_is_not_waited_for(impatient: HttpServer) -> None:
    with raw(impatient) as connection:
        answer = connection.send(head("POST", "/mcp", *FIELDS, "Content-Length: 10")).answer()
        assert (answer.status, answer.headers["connection"]) == (408, "close")
        assert connection.is_closed


def test_a_body_that_was_asked_for_and_never_comes_is_not_waited_for(impatient: HttpServer) -> None:
    with raw(impatient) as connection:
        connection.send(head("POST", "/mcp", *FIELDS, "Content-Length: 10", "Expect: 100-continue"))
        assert [connection.answer().status, connection.answer().status] == [100, 408]


def test_who_leaves_in_the_middle_of_anything_is_forgotten(impatient: HttpServer) -> None:
    """Whoever left in the middle of a body was a traceback in the log."""
    for data in (b"", b"GE", head("POST", "/mcp", *FIELDS, "Content-Length: 10"), discovery()):
        with raw(impatient) as connection:
            connection.send(data)
    assert is_serving(impatient)
    assert "error" not in impatient.stderr


def test_a_connection_that_is_idle_is_closed(impatient: HttpServer) -> None:
    with raw(impatient) as connection:
        assert connection.send(discovery()).answer().status == 200
        assert connection.is_closed


LARGE = "#!/bin/sh\nhead -c {size} /dev/zero | tr '\\0' x\n"


def large_call() -> bytes:
    params = {"name": "large", "arguments": {}, "_meta": modern_meta()}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return posted(message, "MCP-Protocol-Version: 2026-07-28", "Mcp-Method: tools/call", "Mcp-Name: large")


@needs_proc
@pytest.mark.parametrize("accepted", ["application/json", "text/event-stream"])
def test_a_reader_that_stops_loses_its_connection(project: ProjectBuilder, serve: Serve, accepted: str) -> None:
    project.tool("large", LARGE.format(size=9 << 20))
    server = serve(SEND_SECS=0.5)
    request = large_call().replace(b"application/json, text/event-stream", accepted.encode())
    with raw(server) as connection:
        connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.send(request)
        eventually(lambda: figures(server)["mcpgreen_running_calls"] == 1)
        eventually(lambda: figures(server)["mcpgreen_http_connections"] == 1)  # ours
        assert is_serving(server)
    assert figures(server)["mcpgreen_running_calls"] == 0


@needs_proc
@pytest.mark.alone
def test_many_readers_of_large_answers_that_stop_take_no_more_than_the_backlog(
    project: ProjectBuilder, serve: Serve
) -> None:
    project.tool("large", LARGE.format(size=9 << 20))
    server = serve(MAX_BACKLOG_BYTES=16 << 20, SEND_SECS=1, max_concurrent_requests=4)
    assert is_serving(server)
    with many(server, 1) as (first,):
        first.send(large_call()).answer()
    usual = peak_bytes(server.pid)
    with many(server, 24) as readers:
        for each in readers:
            each.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            each.send(large_call())
        eventually(lambda: figures(server)["mcpgreen_http_connections"] == 1)  # ours
        assert peak_bytes(server.pid) - usual < 100 * MIB  # 24 answers would be 216
        assert "unread; closing its connection" in server.stderr
        assert is_serving(server)


COUNT = "#!/bin/sh\nseq 1 600000 | sed s/$/äää/\ntouch done-$$\n"  # twice as long as JSON
COUNTED = "".join(f"{number}äää\n" for number in range(1, 600_001))


def counted_by(answer: Answer) -> str:
    text: str = answer.json()["result"]["content"][0]["text"]
    return text


def test_two_large_answers_of_one_client_wait_until_it_reads(project: ProjectBuilder, serve: Serve) -> None:
    """One of them was dropped because both together were too much, before the client had begun to read."""
    project.tool("large", COUNT)
    server = serve(MAX_BACKLOG_BYTES=10 << 20)
    request = large_call()
    with many(server, 2) as readers:
        for each in readers:
            each.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
            each.send(request)
        eventually(lambda: len(list(project.root.rglob("done-*"))) == 2)
        eventually(lambda: figures(server)["mcpgreen_running_calls"] == 0)  # both answers are made
        while readers:
            first = select.select([each.sock for each in readers], [], [], PATIENCE_SECS)[0][0]
            reader = next(each for each in readers if each.sock is first)
            readers.remove(reader)
            assert counted_by(reader.answer()) == COUNTED
            reader.close()
    assert "unread" not in server.stderr


def test_eight_large_answers_at_once_are_whole(project: ProjectBuilder, serve: Serve) -> None:
    project.tool("large", COUNT)
    server = serve(MAX_BACKLOG_BYTES=10 << 20)
    with ThreadPoolExecutor(8) as threads:
        answers = threads.map(lambda _: asked(server, large_call()), range(8))
        assert all(counted_by(answer) == COUNTED for answer in answers)
    assert "unread" not in server.stderr


def test_a_large_file_waits_for_an_answer_that_is_being_read(project: ProjectBuilder, serve: Serve) -> None:
    text = "".join(f"{number}\n" for number in range(800_000))
    uri = project.resource("large.txt", text).as_uri()
    server = serve(MAX_BACKLOG_BYTES=1 << 20)
    params = {"uri": uri, "_meta": modern_meta()}
    message = {"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": params}
    lines = "MCP-Protocol-Version: 2026-07-28", "Mcp-Method: resources/read", f"Mcp-Name: {uri}"
    with many(server, 3) as readers:
        for each in readers:
            each.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
            each.send(posted(message, *lines))
        eventually(lambda: select.select([each.sock for each in readers], [], [], 0)[0])
        assert is_serving(server)
        with ThreadPoolExecutor(3) as threads:
            answers = list(threads.map(Raw.answer, readers))
    assert all(answer.json()["result"]["contents"][0]["text"] == text for answer in answers)


@pytest.mark.alone
@needs_proc
def test_a_thousand_half_open_connections_keep_nobody_out(project: ProjectBuilder, serve: Serve) -> None:
    server = serve(http_max_connections=900)
    with many(server, 1000, b"POST /mcp HTTP/1.1\r\nHost: loc") as connections:
        for _ in range(5):
            assert is_serving(server)
        with contextlib.suppress(OSError):
            assert connections[0].is_closed, "the one that has waited longest has to make way"
        connections[-1].send(b"alhost\r\nConnection: close\r\n\r\n")
        assert connections[-1].answer().status == 415
    eventually(lambda: figures(server)["mcpgreen_http_connections"] == 1)
    eventually(lambda: sockets_of(server) <= 4)


@pytest.mark.parametrize(
    "data",
    [
        head("POST", "/mcp", *FIELDS, "Content-Length: 60000") + b"x" * 100,
        head("POST", "/mcp", *FIELDS, "Transfer-Encoding: chunked") + b"10\r\nx",
        head("POST", "/nowhere", "Content-Length: 10"),
        head("POST", "/nowhere", "Transfer-Encoding: chunked"),
    ],
    ids=["length", "chunks", "refused", "refused chunks"],
)
def test_slow_bodies_keep_nobody_out(project: ProjectBuilder, serve: Serve, data: bytes) -> None:
    """Who had sent a head could not lose its place any more, and kept it for as long as a body may take."""
    server = serve(http_max_connections=20, BODY_SECS=600, HEAD_SECS=600)
    with many(server, 30, data):
        for _ in range(5):
            assert is_serving(server)
    assert "Traceback" not in server.stderr


def test_when_all_are_being_served_a_further_one_is_told_to_come_back(project: ProjectBuilder, serve: Serve) -> None:
    server = serve(http_max_connections=3)
    clients = [server.stateless(source=f"127.0.0.{number}") for number in (1, 2, 3)]
    streams = [client.listen(toolsListChanged=True) for client in clients]
    with raw(server) as connection:
        answer = connection.answer()
        assert (answer.status, answer.headers["retry-after"]) == (503, "1")
    streams[0].close()
    eventually(lambda: asked(server, discovery()).status == 200)


@needs_proc
@pytest.mark.alone
def test_connections_leave_descriptors_for_scripts(project: ProjectBuilder) -> None:
    """With more connections than descriptors, nobody could come in, and no script could be started."""
    project.tool("hello", "echo hello")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.ExitStack() as ends:
        ends.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
        server = ends.enter_context(HttpServer(project.root, is_fresh=True, max_concurrent_requests=4))
        assert server.url
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        with many(server, 400, b"GET"):
            assert is_serving(server)
            assert server.session().call_tool("hello")["content"][0]["text"] == "hello\n"
        assert "limit is 256" in server.stderr
        assert "Traceback" not in server.stderr


def test_readers_that_stop_keep_nobody_out(project: ProjectBuilder, serve: Serve) -> None:
    """Who sent requests and read no answers could not lose its place until the time for sending was over."""
    for number in range(50):
        project.tool(f"tool-{number}", "echo hello", description="x" * 1000)
    server = serve(http_max_connections=5, SEND_SECS=600)
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": modern_meta()}}
    request = posted(message, "MCP-Protocol-Version: 2026-07-28", "Mcp-Method: tools/list")
    assert len(asked(server, request).body) > 50_000
    with many(server, 8) as readers:
        for each in readers:
            each.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            with contextlib.suppress(OSError):  # it may have to make way
                each.send(request * 200)
        for _ in range(5):
            assert eventually(lambda: is_serving(server))
    assert "Traceback" not in server.stderr
