"""Heads and bodies that a proxy could read in another way than the server does, over real sockets: each is refused, the
connection ends, and nothing that follows is taken for a request."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.support.http import HttpServer
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually
from tests.transports.http.attacking import DISCOVER, asked, discovery, head, is_serving, mcp_lines, posted, raw

BODY = json.dumps(DISCOVER).encode()
SMUGGLED = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture(scope="module")
def server(shared_project: ProjectBuilder) -> Iterator[HttpServer]:
    with HttpServer(shared_project.root, HEAD_SECS=1, BODY_SECS=1, max_line_bytes=65536) as started:
        yield started
        assert "Traceback" not in started.stderr, started.stderr


def refused(server: HttpServer, data: bytes) -> int:
    """The status; one answer, and then the connection is over."""
    with raw(server) as connection:
        answer = connection.send(data + SMUGGLED).answer()
        assert answer.headers["connection"] == "close"
        assert connection.rest() == b"", "what follows was answered as well"
    return answer.status


def chunked(*chunks: bytes, end: bytes = b"0\r\n\r\n") -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + end


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        (("Content-Length: +5",), 400),
        (("Transfer-Encoding: chunked, identity",), 501),
        (("X: y\r\n Content-Length: 5",), 400),
        (("Expect: something",), 417),
    ],
)
def test_a_head_that_two_could_read_differently_is_refused(
    server: HttpServer, lines: tuple[str, ...], status: int
) -> None:
    """`test_heads` has many more of them."""
    assert refused(server, head("POST", "/mcp", *mcp_lines(), *lines)) == status


@pytest.mark.parametrize(
    ("lines", "body"),
    [
        (("Content-Length: {whole}", "Transfer-Encoding: chunked"), chunked(BODY)),
        (("Transfer-Encoding: chunked", "Content-Length: {whole}"), chunked(BODY)),
        (("Content-Length: {body}", "Transfer-Encoding: chunked"), BODY),
        (("Content-Length: {body}", "Content-Length: {body}"), BODY),
        (("Content-Length: {body}", "Content-Length: 0"), BODY),
        (("Content-Length: 0", "Content-Length: {body}"), BODY),
        (("Content-Length: {body}, {body}",), BODY),
        (("Content-Length: +{body}",), BODY),
        (("Transfer-Encoding: chunked", "Transfer-Encoding: identity"), chunked(BODY)),
        (("Transfer-Encoding: chunked", "Transfer-Encoding: chunked"), chunked(BODY)),
    ],
)
def test_a_body_that_one_of_two_readings_would_find_is_not_looked_for(
    server: HttpServer, lines: tuple[str, ...], body: bytes
) -> None:
    filled = [line.format(whole=len(body), body=len(BODY)) for line in lines]
    assert refused(server, head("POST", "/mcp", *mcp_lines(), *filled) + body) == 400


@pytest.mark.parametrize(
    "data",
    [
        head("POST", "http://localhost/mcp", *mcp_lines()),
        head("POST", "http://evil.example/mcp", *mcp_lines()),
        head("CONNECT", "localhost:443"),
        head("OPTIONS", "*"),
        head("POST", "/mcp", *mcp_lines(), host=None),
        head("GET", "/mcp\tx"),
        b"GET /mcp\r\n\r\n",
        b"GET /mcp HTTP/1.1\nHost: localhost\n\n\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"\n\r\n\r\n",
    ],
)
def test_a_request_line_that_is_none_is_refused(server: HttpServer, data: bytes) -> None:
    assert refused(server, data) == 400


@pytest.mark.parametrize("body", [b"5;ext=1\r\nhello\r\n0\r\n\r\n", b"5\r\nhello!\r\n0\r\n\r\n", b"1" * 100])
def test_chunked_nonsense_is_refused(server: HttpServer, body: bytes) -> None:
    assert refused(server, head("POST", "/mcp", *mcp_lines(), "Transfer-Encoding: chunked") + body) == 400


def test_a_chunked_body_is_read_and_what_follows_is_the_next_request(server: HttpServer) -> None:
    with raw(server) as connection:
        connection.send(head("POST", "/mcp", *mcp_lines(), "Transfer-Encoding: chunked"))
        connection.send(chunked(BODY[:7], BODY[7:8], BODY[8:]) + SMUGGLED)
        assert connection.answer().status == 200
        assert connection.answer().body == b"serving\n"


@pytest.mark.parametrize("lines", [("Content-Length: 65537",), ("Content-Length: 999999999999999",)])
def test_a_body_that_says_that_it_is_too_long_is_refused_unread(server: HttpServer, lines: tuple[str, ...]) -> None:
    with raw(server) as connection:
        answer = connection.send(head("POST", "/mcp", *mcp_lines(), *lines)).answer()
        assert answer.status == 413
        assert "max_line_bytes" in answer.body.decode()


def test_an_endless_body_in_chunks_is_refused_as_soon_as_it_is_too_long(server: HttpServer) -> None:
    chunk = b"1000\r\n" + b" " * 0x1000 + b"\r\n"
    assert refused(server, head("POST", "/mcp", *mcp_lines(), "Transfer-Encoding: chunked") + 17 * chunk) == 413


def test_who_is_told_no_before_the_body_is_not_waited_for_without_end(server: HttpServer) -> None:
    """What nobody read of a body was read without anybody to catch that it did not come: a traceback on stderr."""
    with raw(server) as connection:
        assert connection.send(head("POST", "/nowhere", "Content-Length: 10")).answer().status == 404
        assert connection.is_closed
    assert "Traceback" not in server.stderr


def test_a_small_body_that_nobody_wanted_is_passed_over(server: HttpServer) -> None:
    with raw(server) as connection:
        connection.send(posted(b"GET /no HTTP/1.1\r\n\r\n", path="/nowhere") + discovery())
        assert connection.answer().status == 404
        assert connection.answer().status == 200


def test_a_large_body_that_nobody_wanted_ends_the_connection(server: HttpServer) -> None:
    with raw(server) as connection:
        answer = connection.send(head("POST", "/nowhere", "Transfer-Encoding: chunked")).answer()
        assert (answer.status, answer.headers["connection"]) == (404, "close")
        assert connection.send(chunked(SMUGGLED)).is_closed


def test_a_client_that_waits_for_leave_to_send_gets_it(server: HttpServer) -> None:
    with raw(server) as connection:
        own = (*mcp_lines(), f"Content-Length: {len(BODY)}", "Expect: 100-continue")
        assert connection.send(head("POST", "/mcp", *own)).answer().status == 100
        assert connection.send(BODY).answer().status == 200
        assert connection.send(SMUGGLED).answer(to="GET").status == 200


@pytest.mark.parametrize(
    ("path", "lines", "status"),
    [
        ("/nowhere", ("Content-Length: 10",), 404),
        ("/mcp", ("Content-Length: 99999999",), 413),
        ("/mcp", ("Content-Length: 10", "Origin: http://evil.example"), 403),
    ],
)
def test_leave_to_send_is_not_given_in_vain(server: HttpServer, path: str, lines: tuple[str, ...], status: int) -> None:
    """And whoever sends it all the same does not have it taken for a request."""
    with raw(server) as connection:
        answer = connection.send(head("POST", path, *mcp_lines(), *lines, "Expect: 100-continue")).answer()
        assert (answer.status, answer.headers["connection"]) == (status, "close")
        assert connection.send(SMUGGLED).rest() == b""


def test_who_has_sent_the_body_already_needs_no_leave(server: HttpServer) -> None:
    with raw(server) as connection:
        own = (*mcp_lines(), f"Content-Length: {len(BODY)}", "Expect: 100-continue")
        connection.send(head("POST", "/mcp", *own) + BODY)
        answer = connection.answer()
        assert (answer if answer.status != 100 else connection.answer()).status == 200


def test_an_old_client_is_answered_and_its_connection_closed(server: HttpServer) -> None:
    with raw(server) as connection:
        answer = connection.send(discovery(version="1.0")).answer()
        assert (answer.status, answer.headers["connection"]) == (200, "close")
        assert connection.is_closed


def test_an_old_client_may_keep_its_connection(server: HttpServer) -> None:
    with raw(server) as connection:
        for _ in range(2):
            answer = connection.send(discovery("Connection: keep-alive", version="1.0")).answer()
            assert (answer.status, answer.headers["connection"]) == (200, "keep-alive")


def test_an_old_client_gets_a_stream_without_chunks_to_the_end_of_the_connection(server: HttpServer) -> None:
    """It was told both `keep-alive` and `close`."""
    session = server.session()
    own = (f"Mcp-Session-Id: {session.session_id}", "MCP-Protocol-Version: 2025-11-25", "Connection: keep-alive")
    with raw(server) as connection:
        connection.send(head("GET", "/mcp", "Accept: text/event-stream", *own, version="1.0"))
        begin = connection._until(b"\r\n\r\n").decode().lower()
        assert "connection: close" in begin
        assert "keep-alive" not in begin
        assert "chunked" not in begin
        assert session.delete().status == 204
        assert b"id:" in connection.rest()


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("HEAD", "/mcp", 405),
        ("PUT", "/mcp", 405),
        ("PATCH", "/mcp", 405),
        ("TRACE", "/mcp", 405),
        ("PROPFIND", "/mcp", 405),
        ("OPTIONS", "/mcp", 204),
        ("GET", "/mcp", 400),
        ("DELETE", "/mcp", 400),
        ("HEAD", "/healthz", 200),
        ("GET", "/healthz?x=%0d%0aX:y", 200),
        ("GET", "/", 404),
        ("GET", "/mcp/", 404),
        ("GET", "//mcp", 404),
        ("GET", "/./mcp", 404),
        ("GET", "/x/../mcp", 404),
        ("GET", "/mcp;x", 404),
        ("GET", "/MCP", 404),
        ("GET", "/%6dcp", 404),
        ("GET", "/mcp%00", 404),
        ("GET", "/mcp%0d%0aX-Injected:y", 404),
        ("GET", "/%6detrics", 404),
        ("GET", "/%2e%2e/%2e%2e/etc/passwd", 404),
        ("GET", "/..%2f..%2fetc/passwd", 404),
        ("GET", "/../../etc/passwd", 404),
    ],
)
def test_other_methods_and_paths_lead_nowhere(server: HttpServer, method: str, path: str, status: int) -> None:
    with raw(server) as connection:
        answer = connection.send(head(method, path)).answer(to=method)
        assert answer.status == status
        assert "x-injected" not in answer.headers
        assert connection.send(SMUGGLED).answer().status == 200


def test_only_get_is_for_health_and_metrics(server: HttpServer) -> None:
    for path in ("/healthz", "/metrics"):
        for method in ("POST", "PUT", "DELETE", "TRACE"):
            answer = asked(server, head(method, path))
            assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD, OPTIONS")


def test_a_large_head_is_refused(server: HttpServer) -> None:
    assert refused(server, head("GET", "/healthz", *(f"X-{number}: {'y' * 4000}" for number in range(20)))) == 431
    assert refused(server, b"GET /healthz HTTP/1.1\r\nX: " + b"y" * 200_000) == 431
    assert refused(server, b"G" * 200_000) == 431


def test_a_head_of_the_longest_kind_is_read(server: HttpServer) -> None:
    begin = head("GET", "/healthz", "X: ")[:-4]
    assert asked(server, begin + b"y" * (32768 - len(begin)) + b"\r\n\r\n").status == 200
    assert refused(server, begin + b"y" * (32769 - len(begin)) + b"\r\n\r\n") == 431


def test_line_ends_between_requests_are_passed_over(server: HttpServer) -> None:
    with raw(server) as connection:
        assert connection.send(b"\r\n" + discovery() + b"\r\n").answer().status == 200
        assert connection.send(b"\r\n").send(b"\r").send(b"\n" + discovery()).answer().status == 200


def test_line_ends_without_end_are_refused(server: HttpServer) -> None:
    assert refused(server, b"\r\n" * 100_000) == 400


def test_requests_that_come_at_once_are_answered_in_their_order(server: HttpServer) -> None:
    many = [json.dumps({**DISCOVER, "id": number}).encode() for number in range(200)]
    own = ("MCP-Protocol-Version: 2026-07-28", "Mcp-Method: server/discover")
    with raw(server) as connection:
        connection.send(b"".join(posted(each, *own) for each in many))
        assert [connection.answer().json()["id"] for _ in many] == list(range(200))


def test_who_says_close_is_answered_once(server: HttpServer) -> None:
    with raw(server) as connection:
        assert connection.send(discovery("Connection: close") + SMUGGLED).answer().status == 200
        assert connection.rest() == b""


def test_all_of_this_leaves_a_server_that_serves(server: HttpServer) -> None:
    assert is_serving(server)
    assert eventually(lambda: "Traceback" not in server.stderr)
