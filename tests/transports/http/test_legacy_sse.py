"""The older pair of addresses, /sse and /messages, for clients of the first revision."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.http import HttpServer
from tests.support.http_replies import Reply
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually, is_alive

SLOW = 'echo $$ > "$MCPGREEN_PROJECT_ROOT/pid"; sleep 60'


@pytest.fixture
def server(project: ProjectBuilder) -> Iterator[HttpServer]:
    project.tool("hello", "echo hello")
    project.tool("slow", SLOW)
    with HttpServer(project.root, http_legacy_sse=True) as server:
        yield server


class Legacy:
    """A client: a stream, and where to send to."""

    def __init__(self, server: HttpServer, **options: Any) -> None:
        self._client = server.client(revision="2024-11-05", **options)
        self._headers: dict[str, str] = {}
        self.stream: Reply = self._client.send("GET", path="/sse", headers={"Accept": "text/event-stream"})
        event = self.stream.next_event()
        assert event is not None and event.name == "endpoint" and event.data is not None
        self.path = event.data

    def send(self, message: Any) -> Reply:
        headers = {"Content-Type": "application/json", **self._headers}
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        return self._client.send("POST", path=self.path, body=body, headers=headers)

    def ask(self, id: int, method: str, params: dict[str, Any]) -> Any:
        self._client.methods[id] = method
        assert self.send({"id": id, "method": method, "params": params}).status == 202
        return self.stream.receive(lambda message: message.get("id") == id)

    def initialize(self) -> None:
        params = {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
        assert self.ask(0, "initialize", params)["result"]["protocolVersion"] == "2024-11-05"
        assert self.send({"method": "notifications/initialized"}).status == 202

    def take_token(self, token: str) -> None:
        """Send this one from now on."""
        self._headers["Authorization"] = f"Bearer {token}"

    def leave(self) -> None:
        self.stream.close()


@pytest.mark.requirement("G-http-legacy-pair")
def test_answers_come_on_the_stream(server: HttpServer) -> None:
    client = Legacy(server)
    client.initialize()

    answer = client.ask(1, "tools/call", {"name": "hello"})

    assert answer["result"]["content"][0]["text"] == "hello\n"


def test_what_changes_is_told_on_the_stream(server: HttpServer, project: ProjectBuilder) -> None:
    client = Legacy(server)
    client.initialize()
    client.ask(1, "tools/list", {})

    project.tool("new", "echo new")

    client.stream.notice("notifications/tools/list_changed")


def test_the_session_ends_with_the_stream(server: HttpServer, project: ProjectBuilder) -> None:
    client = Legacy(server)
    client.initialize()
    client.send({"id": 1, "method": "tools/call", "params": {"name": "slow"}})
    pid = eventually(lambda: project.read("pid").strip() if (project.root / "pid").exists() else "")

    client.leave()

    eventually(lambda: not is_alive(pid))
    eventually(lambda: client.send({"id": 2, "method": "ping"}).status == 404)


@pytest.mark.parametrize("path", ["/messages", "/messages?session_id=0", "/messages?session_id="])
def test_a_session_that_is_not_there_is_not_found(server: HttpServer, path: str) -> None:
    headers = {"Content-Type": "application/json"}

    assert server.client().send("POST", path=path, body=b"{}", headers=headers).status == 404


def test_a_session_of_the_other_endpoint_is_none_here(server: HttpServer) -> None:
    client = server.session()
    path = f"/messages?session_id={client.session_id}"

    assert client.send("POST", path=path, body=b"{}", headers={"Content-Type": "application/json"}).status == 404


@pytest.mark.parametrize(("method", "path"), [("POST", "/sse"), ("GET", "/messages")])
def test_the_wrong_method_is_refused_with_the_right_one(server: HttpServer, method: str, path: str) -> None:
    reply = server.client().send(method, path=path, body=b"" if method == "POST" else None)

    assert (reply.status, reply.headers["Allow"]) == (405, "GET" if method == "POST" else "POST")


@pytest.mark.requirement("G-http-legacy-pair")
def test_there_is_no_such_pair_unless_it_is_wanted(project: ProjectBuilder) -> None:
    with HttpServer(project.root) as server:
        assert server.client().send("GET", path="/sse").status == 404
