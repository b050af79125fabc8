"""Who may come in: names, origins and tokens, as functions and at the door of a real server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mcpgreen.errors import ProjectError
from mcpgreen.settings.settings import load
from mcpgreen.transports.http.door import Door
from mcpgreen.transports.http.responses import Refusal
from mcpgreen.transports.http.wire.listening import Address
from tests.support.http import HttpServer
from tests.support.project import ProjectBuilder
from tests.transports.http.attacking import TOKEN, asked, discovery, head, raw

LOCAL = Address("127.0.0.1", 8808)


def door(address: Address = LOCAL, **settings: Any) -> Door:
    values = {f"MCPGREEN_{name.upper()}": str(value) for name, value in settings.items()}
    return Door(load({}, values, {}), address)


def is_let_in(guard: Door, **fields: str) -> bool:
    try:
        guard.admit({"host": "localhost", **{name.replace("_", "-"): text for name, text in fields.items()}})
    except Refusal as refusal:
        assert refusal.status[:3] in ("401", "403")
        return False
    return True


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LocalHost",
        "localhost:8808",
        "127.0.0.1",
        "127.0.0.1:1",
        "127.9.9.9",
        "[::1]",
        "[::1]:8808",
        "[0:0:0:0:0:0:0:1]:80",
    ],
)
def test_names_of_this_machine_are_ours(host: str) -> None:
    assert is_let_in(door(), host=host)


def test_the_host_of_the_public_url_is_ours() -> None:
    guard = door(http_public_url="https://MCP.example.com:8443/mcp")

    assert is_let_in(guard, host="mcp.example.com")
    assert is_let_in(guard, host="mcp.example.com:8443")
    assert not is_let_in(guard, host="example.com")


FOREIGN_HOSTS = [
    "",
    "evil.example",
    "EVIL.example:8808",
    "localhost.evil.example",
    "evil.localhost",
    "127.0.0.1.evil.example",
    "localhost.",
    "127.0.0.1.",
    "127.1",
    "2130706433",
    "0x7f.0.0.1",
    "0177.0.0.1",
    "0.0.0.0",
    "[::]",
    "[::ffff:10.0.0.1]",
    "[::1",
    "::1",
    "[::1]x",
    "[localhost]",
    "[::1%25lo]",
    "user@localhost",
    "localhost@evil.example",
    "localhost:8808@evil.example",
    "localhost:",
    "localhost:123456",
    "localhost:80:80",
    "localhost:+80",
    "localhost:\xb2",
    "localhost/",
    "localhost#evil.example",
    "localhost, evil.example",
    "localhost evil.example",
    "http://localhost",
    "l\xf6calhost",
    "metadata.internal",
]


@pytest.mark.parametrize("host", FOREIGN_HOSTS)
def test_any_other_name_may_lead_here_by_rebinding_and_is_refused(host: str) -> None:
    assert not is_let_in(door(), host=host)


@pytest.mark.parametrize(("host", "shown"), [("vm:18443", "'vm'"), ("", "''"), ("\xe9" * 90, ascii("\xe9" * 80))])
def test_the_refusal_names_the_host_and_the_settings(host: str, shown: str) -> None:
    with pytest.raises(Refusal) as refused:
        door().admit({"host": host})
    assert str(refused.value) == (
        f"The host name {shown} is not allowed; set http_public_url to the URL that clients use, "
        "or add the name to http_allowed_hosts."
    )


@pytest.mark.parametrize("url", ["vm:18443/mcp", "vm", "//vm/mcp", "ftp://vm/mcp", "https://[::1", "https://"])
def test_a_public_url_without_a_scheme_and_a_host_is_refused(url: str) -> None:
    with pytest.raises(ProjectError, match=r"MCPGREEN_HTTP_PUBLIC_URL: .* is not a URL; write https://"):
        door(http_public_url=url)


def test_a_missing_host_is_refused() -> None:
    with pytest.raises(Refusal):
        door().admit({})


def test_names_that_a_setting_allows_are_ours_in_any_case_and_with_any_port() -> None:
    guard = door(http_allowed_hosts="MCP.example.com, other:81")
    for host in ("mcp.example.com", "mcp.EXAMPLE.com:8443", "other:81", "localhost"):
        assert is_let_in(guard, host=host)
    for host in ("other", "other:82", "x.mcp.example.com", "mcp.example.com.", "mcp.example.com.evil.example"):
        assert not is_let_in(guard, host=host)


def test_the_address_that_is_listened_at_is_ours() -> None:
    guard = door(Address("192.0.2.1", 80), http_token=TOKEN)
    bearer = f"Bearer {TOKEN}"
    assert is_let_in(guard, host="192.0.2.1:80", authorization=bearer)
    assert not is_let_in(guard, host="192.0.2.2:80", authorization=bearer)


def test_nobody_reaches_a_unix_socket_by_a_name() -> None:
    assert is_let_in(door(Address(path="/run/mcp.sock")), host="whatever")
    assert not is_let_in(door(Address(path="/run/mcp.sock")), host="whatever", origin="http://evil.example")


@pytest.mark.parametrize(
    "origin", ["http://localhost", "http://localhost:3000", "https://127.0.0.1", "http://[::1]:80"]
)
def test_pages_of_this_machine_may_ask(origin: str) -> None:
    assert is_let_in(door(), origin=origin)


FOREIGN_ORIGINS = [
    "",
    "null",
    "NULL",
    "http://evil.example",
    "https://evil.example:8808",
    "http://localhost.evil.example",
    "http://localhost@evil.example",
    "http://evil.example#localhost",
    "http://evil.example/localhost",
    "http://localhost/",
    "http://localhost/path",
    "http://localhost:80:80",
    "http://localhost http://evil.example",
    "http://localhost, http://evil.example",
    "file://",
    "file://localhost",
    "chrome-extension://abcdef",
    "localhost",
    "//localhost",
    "*",
]


@pytest.mark.parametrize("origin", FOREIGN_ORIGINS)
def test_pages_from_elsewhere_may_not(origin: str) -> None:
    assert not is_let_in(door(), origin=origin)


def test_origins_that_a_setting_allows_may_ask() -> None:
    guard = door(http_allowed_origins="https://app.example.com/ HTTPS://Other.example:8443")
    for origin in ("https://app.example.com", "https://other.example:8443"):
        assert is_let_in(guard, origin=origin)
    for origin in ("http://app.example.com", "https://app.example.com:8443", "https://other.example", "null"):
        assert not is_let_in(guard, origin=origin)


def test_any_origin_is_any_page_with_an_address() -> None:
    """A sandboxed frame has none, and anybody can put one on a page."""
    guard = door(http_allowed_origins="*")
    assert is_let_in(guard, origin="https://anywhere.example")
    assert not is_let_in(guard, origin="null")


@pytest.mark.parametrize(
    ("site", "is_welcome"), [("none", True), ("same-origin", True), ("same-site", False), ("cross-site", False)]
)
def test_what_a_browser_sends_for_another_page_without_an_origin_is_refused(site: str, is_welcome: bool) -> None:
    assert is_let_in(door(), sec_fetch_site=site) is is_welcome
    assert is_let_in(door(), sec_fetch_site=site, origin="http://localhost:3000")


@pytest.mark.parametrize("authorization", [f"Bearer {TOKEN}", f"bearer {TOKEN}", f"BEARER   {TOKEN}"])
def test_the_right_token_is_let_in(authorization: str) -> None:
    assert is_let_in(door(http_token=TOKEN), authorization=authorization)


BAD_TOKENS = [
    "",
    "Bearer",
    "Bearer ",
    TOKEN,
    f"Basic {TOKEN}",
    f"Bearer{TOKEN}",
    f"Bearer\t{TOKEN}",
    f"Bearer {TOKEN[:-1]}",
    f"Bearer {TOKEN}0",
    f"Bearer {TOKEN[:-1]}x",
    f"Bearer {TOKEN.upper()}",
    f"Bearer {TOKEN} x",
    f"Bearer {TOKEN}, Bearer x",
    f'Bearer "{TOKEN}"',
    f"Bearer {TOKEN}\xe9",
    f"Bearer token={TOKEN}",
    "Bearer " + "a" * 30_000,
    "Bearer \xff\xfe",
]


@pytest.mark.parametrize(
    ("token", "reason"),
    [
        ("short", "at least 32 characters"),
        ("x" * 31, "at least 32 characters"),
        ("with spaces in it, which no header has", "clients cannot send this token"),
        ("x" * 31 + "é", "clients cannot send this token"),
        ('"' + "x" * 32 + '"', "clients cannot send this token"),
    ],
)
def test_a_token_that_could_be_guessed_or_not_be_sent_is_none(token: str, reason: str) -> None:
    with pytest.raises(ProjectError, match=reason):
        door(http_token=token)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "::ffff:10.0.0.1", "example.com"])
def test_who_can_be_reached_from_elsewhere_needs_a_token(host: str) -> None:
    with pytest.raises(ProjectError, match="others can reach this address"):
        door(Address(host, 80))
    door(Address(host, 80), http_token=TOKEN)
    door(Address(host, 80), http_allow_anonymous="true")


# Over real sockets.


@pytest.fixture(scope="module")
def guarded(shared_project: ProjectBuilder) -> Iterator[HttpServer]:
    with HttpServer(shared_project.root, http_token=TOKEN) as server:
        yield server


@pytest.mark.parametrize("path", ["/mcp", "/healthz", "/metrics", "/nowhere"])
@pytest.mark.parametrize(
    "lines", [("Origin: http://evil.example",), ("Origin: null",), ("Sec-Fetch-Site: cross-site",)]
)
def test_a_page_from_elsewhere_gets_nowhere(shared_server: HttpServer, path: str, lines: tuple[str, ...]) -> None:
    for method in ("GET", "POST", "DELETE", "OPTIONS"):
        answer = asked(shared_server, head(method, path, *lines))
        assert answer.status == 403
        assert not any(name.startswith("access-control") for name in answer.headers)


def test_an_old_client_without_a_host_gets_nowhere(shared_server: HttpServer) -> None:
    assert asked(shared_server, discovery(host=None, version="1.0")).status == 403


def test_an_allowed_page_may_read_the_answer(shared_server: HttpServer) -> None:
    answer = asked(shared_server, discovery("Origin: http://localhost:5173"))
    assert (answer.status, answer.headers["access-control-allow-origin"]) == (200, "http://localhost:5173")
    assert answer.headers["vary"] == "Origin"


def test_a_browser_is_told_what_a_page_may_send(guarded: HttpServer) -> None:
    """Also headers of arguments, but nothing that would be a line of its own; many of them cost no more than some."""
    wanted = "mcp-param-city, Mcp-Param-!, x-other, mcp-param-\x80, " + "," * 10_000
    lines = ("Origin: http://localhost", f"Access-Control-Request-Headers: {wanted}")
    answer = asked(guarded, head("OPTIONS", "/mcp", *lines))
    assert answer.status == 204
    allowed = answer.headers["access-control-allow-headers"].split(", ")
    assert "Authorization" in allowed
    assert allowed[-2:] == ["mcp-param-city", "Mcp-Param-!"]


@pytest.mark.requirement("H-03")
@pytest.mark.parametrize("authorization", [None, *(each for each in BAD_TOKENS if each.strip() == each)])
def test_without_the_token_everything_but_health_is_refused(guarded: HttpServer, authorization: str | None) -> None:
    lines = [] if authorization is None else [f"Authorization: {authorization}"]
    for data in (discovery(*lines), head("GET", "/metrics", *lines), head("DELETE", "/mcp", *lines)):
        answer = asked(guarded, data)
        assert answer.status == 401
        assert answer.headers["www-authenticate"].startswith("Bearer")
        assert TOKEN not in answer.body.decode()
    assert asked(guarded, head("GET", "/healthz", *lines)).status == 200


def test_a_wrong_token_is_called_so(guarded: HttpServer) -> None:
    answer = asked(guarded, discovery("Authorization: Bearer wrong"))
    assert 'error="invalid_token"' in answer.headers["www-authenticate"]
    assert asked(guarded, discovery()).headers["www-authenticate"] == "Bearer"
    empty = asked(guarded, discovery("Authorization: Bearer "))
    assert "The bearer token is empty; is the variable with the token set in this shell?" in empty.body.decode()


def test_the_right_token_is_served_and_two_of_them_are_not(guarded: HttpServer) -> None:
    line = f"Authorization: Bearer {TOKEN}"
    assert asked(guarded, discovery(line)).status == 200
    assert asked(guarded, discovery(line, line)).status == 400
    assert asked(guarded, discovery(f"Authorization_: Bearer {TOKEN}")).status == 401
    assert asked(guarded, head("POST", f"/mcp?access_token={TOKEN}")).status == 401


def test_who_is_refused_has_nothing_read(guarded: HttpServer) -> None:
    """A stranger cannot make the server read, let alone parse, what it sends."""
    with raw(guarded) as connection:
        answer = connection.send(head("POST", "/mcp", "Content-Length: 4000000", "Content-Type: application/json"))
        assert answer.answer().status == 401


def test_the_token_is_not_logged(project: ProjectBuilder, serve: Callable[..., HttpServer]) -> None:
    server = serve(http_token=TOKEN, log_level="debug")
    assert asked(server, discovery(f"Authorization: Bearer {TOKEN}")).status == 200
    assert asked(server, discovery("Authorization: Bearer mistaken-secret-of-somebody")).status == 401
    assert server.stop() == 0
    assert TOKEN not in server.stderr
    assert "mistaken-secret" not in server.stderr


@pytest.mark.requirement("H-03")
@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"http_token": "x" * 31}, "at least 32 characters"),
        ({"address": "0.0.0.0:0"}, "others can reach this address"),
    ],
)
def test_a_server_that_could_not_be_guarded_does_not_start(
    serve: Callable[..., HttpServer], settings: dict[str, str], words: str
) -> None:
    server = serve(**settings)
    assert server.wait() == 1
    assert words in server.stderr
    assert "x" * 31 not in server.stderr


def test_everybody_may_come_in_if_the_setting_says_so_in_so_many_words(serve: Callable[..., HttpServer]) -> None:
    server = serve(address="0.0.0.0:0", http_allow_anonymous=True)
    with raw(server) as connection:
        assert connection.send(discovery()).answer().status == 200


@pytest.mark.parametrize(
    ("settings", "is_warned"),
    [
        ({}, True),
        ({"http_token": TOKEN}, False),
        ({"http_allow_anonymous": True}, False),
        ({"http_allowed_hosts": "localhost"}, False),
        ({"http_allowed_hosts": "localhost", "http_public_url": "https://mcp.example.com/mcp"}, True),
    ],
)
def test_who_names_the_host_of_a_proxy_and_has_no_token_is_warned(
    serve: Callable[..., HttpServer], settings: dict[str, Any], is_warned: bool
) -> None:
    """At 127.0.0.1 it starts without one, and the proxy would let in the whole world."""
    server = serve(**{"http_allowed_hosts": "mcp.example.com", **settings})
    with raw(server) as connection:
        assert connection.send(discovery()).answer().status in (200, 401)
    assert server.stop() == 0
    assert ("a proxy for it would let anyone in" in server.stderr) == is_warned


def test_a_session_of_somebody_else_does_not_exist(guarded: HttpServer) -> None:
    """With one token there is one principal; who has none, or guesses, is not even told that the id is known."""
    session = guarded.session(token=TOKEN)
    known = f"Mcp-Session-Id: {session.session_id}"
    assert asked(guarded, head("DELETE", "/mcp", known)).status == 401
    guess = f"Mcp-Session-Id: {'0' * 32}"
    assert asked(guarded, head("DELETE", "/mcp", guess, f"Authorization: Bearer {TOKEN}")).status == 404
    assert session.result("ping") == {}
