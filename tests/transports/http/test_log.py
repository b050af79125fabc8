"""What the log tells of requests over HTTP: refused ones, a line for each call at info, every frame at debug."""

from __future__ import annotations

import json
import socket
import threading
import time
from contextlib import suppress

import pytest

from tests.deployment.cluster import free_port
from tests.support.http import HttpServer
from tests.support.project import ProjectBuilder
from tests.support.terminal import at_terminal
from tests.support.waiting import eventually
from tests.transports.http.attacking import TOKEN, asked, discovery, head


def test_a_call_has_a_line_at_info(project: ProjectBuilder) -> None:
    project.tool("hello", "echo hello")
    with HttpServer(project.root, stderr_level="info") as server:
        server.stateless().call_tool("hello")

        eventually(lambda: "tools/call hello ok" in server.stderr)


def test_frames_are_shown_at_debug(project: ProjectBuilder) -> None:
    project.tool("hello", "echo hello")
    with HttpServer(project.root, stderr_level="debug") as server:
        server.stateless().call_tool("hello")

        eventually(lambda: "-->" in server.stderr and "<--" in server.stderr)
        assert '"method":"tools/call"' in server.stderr
        assert '"text":"hello\\n"' in server.stderr


def test_a_quiet_server_says_that_it_serves_and_nothing_else(project: ProjectBuilder) -> None:
    project.tool("hello", "echo hello")
    with HttpServer(project.root) as server:
        server.stateless().call_tool("hello")
        server.session().call_tool("hello")

        assert server.stop() == 0
        assert server.stderr_lines == [f"mcpgreen: serving {server.url}"]
        assert server.stdout == ""


@pytest.mark.parametrize(
    ("request_head", "request_line", "status", "reason"),
    [
        (discovery(), "POST /mcp", 401, "A bearer token is required."),
        (discovery("Authorization: Bearer wrong"), "POST /mcp", 401, "The token is wrong."),
        (head("GET", "/x?token=hush"), "GET /x", 404, "There is nothing here; MCP is served at /mcp."),
        (discovery("Origin: https://evil.example"), "POST /mcp", 403, "This origin is not allowed;"),
    ],
)
def test_a_refused_request_is_a_warning_with_its_reason(
    project: ProjectBuilder, request_head: bytes, request_line: str, status: int, reason: str
) -> None:
    with HttpServer(project.root, http_token=TOKEN, log_format="json") as server:
        asked(server, request_head)
        eventually(lambda: reason in server.stderr)

    event = next(json.loads(line) for line in server.stderr_lines if reason in line)
    assert (event["level"], event["message"]) == ("warning", f"{request_line} from 127.0.0.1 refused")
    assert (event["request"], event["client"], event["status"]) == (request_line, "127.0.0.1", status)
    assert event["reason"].startswith(reason) and "hush" not in server.stderr


def test_refused_requests_cannot_fill_the_log(project: ProjectBuilder) -> None:
    with HttpServer(project.root, http_token=TOKEN) as server:
        began_at = time.monotonic()
        for _ in range(60):
            asked(server, discovery())
        seconds = int(time.monotonic() - began_at) + 2
        eventually(lambda: "refused: 401 Unauthorized: A bearer token is required." in server.stderr)
        eventually(lambda: "further requests of this kind (401 Unauthorized) are not logged" in server.stderr)

        assert server.stderr.count("refused: 401") <= min(59, 20 * seconds)


def test_at_a_terminal_every_request_has_a_line(project: ProjectBuilder) -> None:
    port = free_port()

    def ask() -> None:
        for _ in range(200):
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
                connection.sendall(discovery())
                connection.recv(1000)
                return
            time.sleep(0.05)

    client = threading.Thread(target=ask, daemon=True)
    client.start()
    typed = [("server/discover ok", "\x03")]
    seen = at_terminal(["serve", "--http", f"127.0.0.1:{port}"], cwd=project.root, answers=typed)
    client.join(10)

    assert seen.status == 0
