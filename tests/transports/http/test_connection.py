"""Connections with an application that is worse than ours: what it says cannot become an answer of its own."""

from __future__ import annotations

import pytest
from gevent import socket

from mcpgreen.transports.http.wire.connection import Request, Response
from mcpgreen.transports.http.wire.listening import Address, HttpServer, listen
from tests.support.waiting import PATIENCE_SECS
from tests.transports.http.attacking import head


@pytest.mark.parametrize(
    "value",
    [
        "a\r\nX-Evil: 1",
        "a\nX-Evil: 1",
        "a\rX-Evil: 1",
        "a\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
        "a\x00b",
        "a\x85b",
        "a\u2028b",
    ],
)
def test_a_header_is_one_line_whatever_the_application_says(value: str) -> None:
    def application(request: Request) -> Response:
        return Response("200 OK", [("X-First", value), ("X-Last", "z")], [b"body"])

    listener = listen(Address("127.0.0.1", 0))
    server = HttpServer(listener, application, max_connections=10, max_body_bytes=1000)
    server.start()
    try:
        with socket.create_connection(listener.getsockname(), timeout=PATIENCE_SECS) as sock:
            sock.sendall(head("GET", "/", "Connection: close"))
            answer = b""
            while more := sock.recv(65536):
                answer += more
    finally:
        server.stop(timeout=1)
    begin, _, body = answer.partition(b"\r\n\r\n")
    lines = begin.split(b"\r\n")
    assert body == b"body"
    assert lines[2].startswith(b"X-First: a?")
    assert lines[3] == b"X-Last: z"
    assert not any(line.startswith(b"X-Evil") for line in begin.replace(b"\r", b"\n").split(b"\n"))
