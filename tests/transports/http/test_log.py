"""What the log tells of requests over HTTP: a line for each call at info, every frame at debug, nothing otherwise."""

from __future__ import annotations

from tests.support.http import HttpServer
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually


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
