"""/metrics and /healthz, as whoever watches over a server reads them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.support.http import HttpServer
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually

TOKEN = "a-token-that-nobody-could-ever-guess"


@pytest.fixture
def server(project: ProjectBuilder) -> Iterator[HttpServer]:
    project.tool("slow", 'until [ -e "$MCPGREEN_PROJECT_ROOT/go" ]; do sleep 0.01; done')
    with HttpServer(project.root) as server:
        yield server


def metrics_of(server: HttpServer) -> dict[str, float]:
    reply = server.client().send("GET", path="/metrics")
    assert reply.status == 200, reply.body
    rows = re.findall(r"^([a-z_]+(?:\{[^}]*\})?) (\S+)$", reply.body.decode(), re.MULTILINE)
    return {name: float(value) for name, value in rows}


def test_what_the_server_has_to_do_is_measured(server: HttpServer, project: ProjectBuilder) -> None:
    server.session()
    client = server.stateless()
    client.listen(toolsListChanged=True)
    call = client.start_tool("slow")

    eventually(lambda: metrics_of(server)["mcpgreen_running_calls"] == 1)

    measured = metrics_of(server)
    assert measured["mcpgreen_sessions"] == 1
    assert measured["mcpgreen_open_listens"] == 1
    assert measured["mcpgreen_waiting_calls"] == 0
    project.write("go", "")
    call.result()
    assert metrics_of(server)['mcpgreen_http_requests_total{path="/mcp",status="200"}'] >= 3


def test_paths_that_clients_make_up_are_one_row(server: HttpServer) -> None:
    for number in range(3):
        server.client().send("GET", path=f"/made-up-{number}").body  # noqa: B018  (waits for the answer)

    assert metrics_of(server)['mcpgreen_http_requests_total{path="other",status="404"}'] == 3


def test_metrics_need_the_token_and_health_does_not(project: ProjectBuilder) -> None:
    with HttpServer(project.root, http_token=TOKEN) as server:
        assert server.client().send("GET", path="/metrics").status == 401
        assert server.client(token=TOKEN).send("GET", path="/metrics").status == 200
        reply = server.client().send("GET", path="/healthz")

        assert (reply.status, reply.body) == (200, b"serving\n")
