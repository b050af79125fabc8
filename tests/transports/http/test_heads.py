"""The head of a request, as a function: what is read, and what is refused because two could read it differently."""

from __future__ import annotations

import pytest

from mcpgreen.transports.http.wire import heads
from mcpgreen.transports.http.wire.heads import BadRequest, Head
from tests.support.effort import lines_run

HOST = "Host: localhost"


def parsed(*lines: str, first: str = "POST /mcp HTTP/1.1", host: str | None = HOST) -> Head:
    every = [first, *([] if host is None else [host]), *lines]
    return heads.parse("\r\n".join(every).encode("latin-1"))


def status_of(*lines: str, **options: str | None) -> int:
    with pytest.raises(BadRequest) as refusal:
        parsed(*lines, **options)  # type: ignore[arg-type]
    assert "\n" not in refusal.value.reason
    return int(refusal.value.status[:3])


def test_a_head_says_method_target_and_fields() -> None:
    head = parsed("Content-Type: application/json", "CONTENT-LENGTH:12", "x-Odd:\t two words \t")
    assert (head.method, head.target, head.minor_version, head.length_bytes) == ("POST", "/mcp", 1, 12)
    assert head.fields == {
        "host": "localhost",
        "content-type": "application/json",
        "content-length": "12",
        "x-odd": "two words",
    }


def test_a_request_without_a_body_has_none() -> None:
    assert parsed().length_bytes == 0


def test_a_body_in_chunks_has_no_length() -> None:
    assert parsed("Transfer-Encoding: Chunked").length_bytes is None


@pytest.mark.parametrize(
    ("first", "status"),
    [
        ("", 400),
        ("GET", 400),
        ("GET /mcp", 400),
        ("GET  /mcp HTTP/1.1", 400),
        ("GET /mcp  HTTP/1.1", 400),
        ("GET /mcp HTTP/1.1 ", 400),
        (" GET /mcp HTTP/1.1", 400),
        ("GET\t/mcp\tHTTP/1.1", 400),
        ("GET /m cp HTTP/1.1", 400),
        ("GET /mcp\x00 HTTP/1.1", 400),
        ("GET /mcp\x7f HTTP/1.1", 400),
        ("GET /mcp\xe9 HTTP/1.1", 400),
        ("GET /mcp\n HTTP/1.1", 400),
        ("GET /mcp\rX: y HTTP/1.1", 400),
        ("get /mcp HTTP/1.1", 400),
        ("G@T /mcp HTTP/1.1", 400),
        ("ABCDEFGHIJKLMNOPQ /mcp HTTP/1.1", 400),
        ("GET /mcp http/1.1", 400),
        ("GET /mcp HTTP/1", 400),
        ("GET /mcp HTTP/11", 400),
        ("GET /mcp HTTP/1.11", 400),
        ("GET /mcp HTTP/1.\xb2", 400),
        ("GET /mcp HTTP/0.9", 505),
        ("GET /mcp HTTP/2.0", 505),
        ("PRI * HTTP/2.0", 505),
        ("GET /" + "a" * 8192 + " HTTP/1.1", 414),
    ],
)
def test_an_odd_request_line_is_refused(first: str, status: int) -> None:
    assert status_of(first=first) == status


@pytest.mark.parametrize(
    "target",
    [
        "*",
        "mcp",
        "localhost:80",
        "http://localhost/mcp",
        "http://evil.example/mcp",
        "https://user@evil.example/mcp",
        "?x",
        "#/mcp",
    ],
)
def test_a_target_is_a_path(target: str) -> None:
    """One that names a host could say another than `Host`, and then it counts which of them a proxy has looked at."""
    assert status_of(first=f"GET {target} HTTP/1.1") == 400


@pytest.mark.parametrize("target", ["/mcp", "/mcp?x=y", "/", "//mcp", "/%6dcp", "/mcp;a", "/../mcp"])
def test_a_path_is_left_as_it_was_sent(target: str) -> None:
    assert parsed(first=f"GET {target} HTTP/1.1").target == target


@pytest.mark.parametrize(
    "line",
    [
        "no colon",
        ": no name",
        "X : y",
        "X\t: y",
        " X: y",
        "\tfolded",
        " folded: y",
        "X: y\r\n folded",
        "X: y\r\n\tfolded",
        "X: y\nZ: bare",
        "X: y\rZ: bare",
        "X: y\r",
        "X: y\x00",
        "X: \x0b",
        "X: \x7f",
        "X\x00: y",
        "X(: y",
        "X\xe9: y",
        'X": y',
        "X@y: z",
        "",
    ],
)
def test_a_line_that_is_not_well_formed_is_refused(line: str) -> None:
    assert status_of(line, "X-After: z") == 400


def test_an_empty_value_is_one() -> None:
    assert parsed("X-Empty:", "X-Blank: \t ").fields["x-blank"] == ""


def test_bytes_beyond_ascii_in_a_value_are_kept() -> None:
    assert parsed("X-Latin: caf\xe9").fields["x-latin"] == "caf\xe9"


@pytest.mark.parametrize(
    "length",
    ["", "+5", "-5", "-0", "5 5", "5,5", "5, 5", "5;", "0x5", "5.0", "1e3", "five", "\xb2", "5\t6", "1" * 16, "'5'"],
)
def test_a_length_is_digits_and_no_more(length: str) -> None:
    assert status_of(f"Content-Length: {length}") == 400


@pytest.mark.parametrize("length", ["5", "05", "000000000000005", "  5\t"])
def test_a_length_may_have_zeros_and_blanks_around_it(length: str) -> None:
    assert parsed(f"Content-Length: {length}").length_bytes == 5


@pytest.mark.parametrize(
    "lines",
    [
        ("Content-Length: 5", "Content-Length: 5"),
        ("Content-Length: 5", "content-length: 6"),
        ("Content-Length: 5", "Transfer-Encoding: chunked"),
        ("Transfer-Encoding: chunked", "Content-Length: 0"),
        ("Transfer-Encoding: chunked", "Transfer-Encoding: chunked"),
        ("Transfer-Encoding: chunked", "transfer-encoding: identity"),
        ("Host: localhost",),
        ("Host: evil.example",),
        ("Origin: http://localhost", "Origin: http://evil.example"),
        ("Authorization: Bearer a", "Authorization: Bearer b"),
        ("Mcp-Session-Id: a", "Mcp-Session-Id: b"),
        ("MCP-Protocol-Version: a", "MCP-Protocol-Version: b"),
        ("Mcp-Method: a", "Mcp-Method: b"),
        ("Mcp-Name: a", "mcp-name: b"),
        ("Mcp-Param-City: a", "mcp-param-city: b"),
        ("Last-Event-ID: 1-1", "Last-Event-ID: 1-2"),
        ("Content-Type: application/json", "Content-Type: text/plain"),
        ("Expect: 100-continue", "Expect: 100-continue"),
    ],
)
def test_what_means_one_thing_is_not_said_twice(lines: tuple[str, ...]) -> None:
    assert status_of(*lines) == 400


@pytest.mark.parametrize(
    "encoding",
    [
        "",
        "identity",
        "gzip",
        "chunked, identity",
        "identity, chunked",
        "gzip, chunked",
        "chunked, chunked",
        "xchunked",
        "chunked;q=1",
        "chunked,",
        ",chunked",
        '"chunked"',
        "\xa0chunked",
        "chunked\xa0",
    ],
)
def test_the_only_encoding_is_chunked(encoding: str) -> None:
    assert status_of(f"Transfer-Encoding: {encoding}") == 501


def test_an_old_client_has_no_chunks() -> None:
    assert status_of("Transfer-Encoding: chunked", first="POST /mcp HTTP/1.0") == 501


@pytest.mark.parametrize(
    "name", ["Transfer_Encoding", "Content_Length", "Mcp_Session_Id", "X_Y", "Authorization_", "_Host"]
)
def test_a_name_with_an_underscore_counts_for_nothing(name: str) -> None:
    """Some proxies take it for the name with a hyphen, which they may have checked."""
    assert parsed(f"{name}: 5").fields == {"host": "localhost"}


def test_the_name_of_an_argument_may_have_an_underscore() -> None:
    assert parsed("Mcp-Param-User_Id: 5", "Mcp-Param-User-Id: 6").fields == {
        "host": "localhost",
        "mcp-param-user_id": "5",
        "mcp-param-user-id": "6",
    }


def test_a_request_needs_a_host() -> None:
    assert status_of(host=None) == 400
    assert parsed(first="GET /mcp HTTP/1.0", host=None).fields == {}


def test_lines_that_may_be_said_twice_are_joined() -> None:
    assert parsed("Accept: a", "Accept: b", "ACCEPT: c").fields["accept"] == "a, b, c"


@pytest.mark.parametrize(
    ("first", "connection", "is_kept"),
    [
        ("GET / HTTP/1.1", None, True),
        ("GET / HTTP/1.1", "close", False),
        ("GET / HTTP/1.1", "Close", False),
        ("GET / HTTP/1.1", "keep-alive, close", False),
        ("GET / HTTP/1.1", "upgrade , close ,x", False),
        ("GET / HTTP/1.1", "x-closed", True),
        ("GET / HTTP/1.0", None, False),
        ("GET / HTTP/1.0", "Keep-Alive", True),
        ("GET / HTTP/1.0", "no-keep-alive", False),
        ("GET / HTTP/1.0", "keep-alive, close", False),
    ],
)
def test_a_connection_is_kept_as_the_client_says(first: str, connection: str | None, is_kept: bool) -> None:
    assert parsed(*([f"Connection: {connection}"] if connection else []), first=first).is_kept_alive is is_kept


def test_a_client_may_wait_for_leave_to_send() -> None:
    assert parsed("Expect: 100-Continue").expects_continue
    assert not parsed().expects_continue
    assert status_of("Expect: 200-ok") == 417
    assert status_of("Expect: 100-continue, x") == 417


def test_an_old_client_is_not_told_to_go_on() -> None:
    """HTTP/1.0 knows no interim answers, and would take one for the answer."""
    assert not parsed("Expect: 100-continue", first="POST /mcp HTTP/1.0").expects_continue


def test_there_are_so_many_lines_and_no_more() -> None:
    assert len(parsed(*(f"X-{number}: y" for number in range(heads.MAX_FIELDS - 1))).fields) == heads.MAX_FIELDS
    assert status_of(*(f"X-{number}: y" for number in range(heads.MAX_FIELDS))) == 431
    assert status_of(*(["X_Y: z"] * heads.MAX_FIELDS)) == 431


def test_joining_lines_takes_no_more_work_than_reading_them() -> None:
    once = lines_run(lambda: parsed("Accept: " + "a" * 10), module=heads)
    often = lines_run(lambda: parsed(*(["Accept: " + "a" * 300] * 99)), module=heads)
    assert often < 99 * once
