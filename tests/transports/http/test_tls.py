"""HTTPS by http_cert and http_key: real handshakes, and clients that have other plans."""

from __future__ import annotations

import contextlib
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.http import HttpServer, Serve
from tests.support.prerequisites import require_program
from tests.support.project import ProjectBuilder
from tests.support.waiting import PATIENCE_SECS, eventually
from tests.transports.http.attacking import Raw, discovery, head, mcp_lines


class Papers(NamedTuple):
    cert: Path
    key: Path


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Papers:
    place = tmp_path_factory.mktemp("papers")
    made = Papers(place / "cert.pem", place / "key.pem")
    openssl = [require_program("openssl"), "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    subject = ["-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    files = ["-keyout", str(made.key), "-out", str(made.cert)]
    subprocess.run([*openssl, *subject, *files], check=True, capture_output=True, timeout=PATIENCE_SECS)
    return made


@pytest.fixture(scope="module")
def server(shared_project: ProjectBuilder, papers: Papers) -> Iterator[HttpServer]:
    shared_project.tool("large", "#!/bin/sh\nhead -c 3000000 /dev/zero | tr '\\0' x\n")
    settings: dict[str, Any] = {"http_cert": papers.cert, "http_key": papers.key, "HEAD_SECS": 0.5, "BODY_SECS": 0.5}
    with HttpServer(shared_project.root, **settings) as started:
        yield started
        assert "Traceback" not in started.stderr, started.stderr


@contextlib.contextmanager
def secured(server: HttpServer, papers: Papers, version: ssl.TLSVersion | None = None) -> Iterator[Raw]:
    context = ssl.create_default_context(cafile=str(papers.cert))
    if version is not None:
        context.minimum_version = context.maximum_version = version
    with (
        socket.create_connection(server.address, timeout=PATIENCE_SECS) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as sock,
    ):
        yield Raw(sock)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_client_that_checks_the_certificate_is_served(
    server: HttpServer, papers: Papers, version: ssl.TLSVersion
) -> None:
    assert server.url.startswith("https://")
    with secured(server, papers, version) as connection:
        for _ in range(3):
            assert connection.send(discovery()).answer().status == 200


def test_old_versions_are_not_spoken(server: HttpServer, papers: Papers) -> None:
    old = ssl.TLSVersion.TLSv1_1
    with (
        pytest.warns(DeprecationWarning),
        pytest.raises((ssl.SSLError, ConnectionError)),
        secured(server, papers, old),
    ):
        pass


def test_a_large_answer_comes_whole(server: HttpServer, papers: Papers) -> None:
    from tests.transports.http.test_attacks_slow import large_call

    with secured(server, papers) as connection:
        answer = connection.send(large_call()).answer()
        assert answer.status == 200
        assert b"x" * 3_000_000 in answer.body


def test_requests_at_once_are_answered_in_order(server: HttpServer, papers: Papers) -> None:
    with secured(server, papers) as connection:
        connection.send(discovery() * 20)
        assert [connection.answer().status for _ in range(20)] == [200] * 20


def test_slow_bodies_are_not_waited_for(server: HttpServer, papers: Papers) -> None:
    with secured(server, papers) as connection:
        assert connection.send(head("POST", "/mcp", *mcp_lines(), "Content-Length: 10")).answer().status == 408


def test_slow_heads_are_not_waited_for(server: HttpServer, papers: Papers) -> None:
    with secured(server, papers) as connection:
        connection.send(b"GET /healthz HTT")
        with contextlib.suppress(ssl.SSLEOFError):  # an end without a farewell
            assert connection.is_closed


def test_plain_http_gets_no_answer(server: HttpServer, papers: Papers) -> None:
    with socket.create_connection(server.address, timeout=PATIENCE_SECS) as sock:
        plain = Raw(sock)
        assert b"serving" not in plain.send(head("GET", "/healthz")).rest()
    with secured(server, papers) as connection:
        assert connection.send(discovery()).answer().status == 200


@pytest.mark.parametrize("begin", [b"", b"\x16\x03\x01", b"\x16\x03\x01\x40\x00" + b"\0" * 100])
def test_a_handshake_that_stalls_is_not_waited_for(server: HttpServer, papers: Papers, begin: bytes) -> None:
    with socket.create_connection(server.address, timeout=PATIENCE_SECS) as sock:
        assert Raw(sock).send(begin).rest()[:1] in (b"", b"\x15")


def test_a_handshake_that_comes_a_byte_at_a_time_is_not_waited_for(server: HttpServer, papers: Papers) -> None:
    """Each byte had as long as all of them should have."""
    with socket.create_connection(server.address, timeout=0.1) as sock:
        for byte in b"\x16\x03\x01\x40\x00" + b"\0" * 1000:
            try:
                sock.send(bytes([byte]))
                assert sock.recv(100)[:1] in (b"", b"\x15")
                break
            except TimeoutError:
                continue
            except OSError:
                break
        else:
            raise AssertionError("the server went on waiting")


def test_handshakes_that_stall_keep_nobody_out(serve: Serve, project: ProjectBuilder, papers: Papers) -> None:
    """They had places of their own, twice as many, and could not lose them."""
    server = serve(http_cert=papers.cert, http_key=papers.key, http_max_connections=10, HEAD_SECS=600)
    with contextlib.ExitStack() as ends:
        for _ in range(40):
            ends.enter_context(socket.create_connection(server.address, timeout=PATIENCE_SECS)).send(b"\x16\x03")
        for _ in range(3):
            with secured(server, papers) as connection:
                assert connection.send(discovery()).answer().status == 200
    assert "Traceback" not in server.stderr


def test_open_connections_make_way(serve: Serve, project: ProjectBuilder, papers: Papers) -> None:
    server = serve(http_cert=papers.cert, http_key=papers.key, http_max_connections=3)
    with contextlib.ExitStack() as ends:
        for _ in range(8):
            connection = ends.enter_context(secured(server, papers))
            assert connection.send(discovery()).answer().status == 200
    eventually(lambda: "Traceback" not in server.stderr)
    assert server.stop() == 0
    assert "Traceback" not in server.stderr, server.stderr


def test_one_file_may_hold_both(serve: Serve, project: ProjectBuilder, papers: Papers, tmp_path: Path) -> None:
    both = tmp_path / "both.pem"
    both.write_bytes(papers.cert.read_bytes() + papers.key.read_bytes())
    server = serve(http_cert=both)
    with secured(server, papers) as connection:
        assert connection.send(discovery()).answer().status == 200


@pytest.mark.parametrize("files", [("missing", "key"), ("cert", "missing"), ("key", "cert"), ("", "key"), ("cert", "")])
def test_papers_that_cannot_be_used_keep_the_server_from_starting(
    serve: Serve, project: ProjectBuilder, papers: Papers, tmp_path: Path, files: tuple[str, str]
) -> None:
    paths = {"cert": papers.cert, "key": papers.key, "missing": tmp_path / "missing.pem", "": ""}
    server = serve(http_cert=paths[files[0]], http_key=paths[files[1]])
    assert server.wait() == 1
    assert "cannot be used for TLS" in server.stderr
    assert "Traceback" not in server.stderr
