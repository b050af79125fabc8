"""The remote token, which messages carry themselves, also holds over HTTP."""

from __future__ import annotations

import pytest

from tests.support.http import HttpServer
from tests.support.project import ProjectBuilder

TOKEN = "a-token-that-nobody-could-ever-guess"
META = {"mcpbash/remoteToken": TOKEN}
INFO = {"name": "c", "version": "1"}


def test_stateless_requests_need_it(project: ProjectBuilder) -> None:
    with HttpServer(project.root, remote_token=TOKEN) as server:
        client = server.stateless()

        assert "Remote token" in client.error("tools/list")["message"]
        assert "tools" in client.result("tools/list", meta=META)


def test_a_handshake_needs_it(project: ProjectBuilder) -> None:
    with HttpServer(project.root, remote_token=TOKEN) as server:
        client = server.client()
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": INFO}

        reply = client.start("initialize", params)
        assert "Remote token" in reply.error()["message"]
        assert "Mcp-Session-Id" not in reply.headers
        assert "Mcp-Session-Id" in client.start("initialize", params, meta=META).headers


def test_a_stranger_cannot_answer_what_the_client_is_asked(project: ProjectBuilder) -> None:
    """Answers carry no token, so nobody else may know the id of a question. Over HTTP it was 1, 2, 3."""
    project.tool("ask", 'source "$MCP_SDK/tool-sdk.sh"; mcp_elicit_confirm "Sure?"')
    with HttpServer(project.root, remote_token=TOKEN) as server:
        client = server.client(capabilities={"elicitation": {}})
        params = {"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}, "clientInfo": INFO}
        client.session_id = client.start("initialize", params, meta=META).headers["Mcp-Session-Id"]
        client.revision = "2025-11-25"
        assert client.notify("notifications/initialized", {"_meta": META}).status == 202

        question = client.start_tool("ask", meta=META).asked("elicitation/create")

        assert len(str(question["id"])) == 32


@pytest.mark.parametrize("name", ["http_token", "remote_token"])
def test_no_token_is_ever_shown(project: ProjectBuilder, name: str) -> None:
    with HttpServer(project.root, stderr_level="debug", **{name: TOKEN}) as server:
        server.stateless(token=TOKEN).result("tools/list", meta=META)

        assert TOKEN not in server.stderr
