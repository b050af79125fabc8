"""The official Python client when HTTP fails it: connections that are lost, sessions that are over."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.clients import scenario
from tests.clients.asynchronous import run, until
from tests.support.http import HttpServer, Serve
from tests.support.prerequisites import require_module
from tests.support.project import ProjectBuilder
from tests.support.tcp_proxy import TcpProxy
from tests.support.waiting import eventually, is_alive

anyio = require_module("anyio")
mcp = require_module("mcp")
types = require_module("mcp_types")

RESUMES = b"\r\nlast-event-id: "
STREAM = b"\r\ncontent-type: text/event-stream\r\n"


@pytest.fixture
def project(tmp_path: Path) -> ProjectBuilder:
    return scenario.build(tmp_path / "project")


@pytest.fixture
def server(serve: Serve) -> HttpServer:
    return serve(KEEP_ALIVE_SECS=0.5)  # a stateless call becomes a stream then, and not before


@pytest.fixture
def proxy(server: HttpServer) -> Iterator[TcpProxy]:
    with TcpProxy(server.url) as proxy:
        yield proxy


def pids_of_endless(project: ProjectBuilder) -> list[str]:
    return project.read("pids").split()


def are_running(pids: list[str]) -> bool:
    return all(map(is_alive, pids))


def test_a_stateless_call_ends_with_its_connection(project: ProjectBuilder, proxy: TcpProxy) -> None:
    async def act() -> Any:
        async with mcp.Client(proxy.url) as client, anyio.create_task_group() as tasks:

            async def call() -> None:
                with pytest.raises(mcp.MCPError):
                    await client.call_tool("endless")

            tasks.start_soon(call)
            await until((project.root / "pids").exists)
            pids = pids_of_endless(project)
            await until(lambda: proxy.received(STREAM))  # before, the client would take its loss for its own end
            assert are_running(pids)
            proxy.cut()
            await until(lambda: not any(map(is_alive, pids)))
        assert not proxy.sent(RESUMES)

    run(act)


def test_a_listen_ends_with_its_connection_and_the_client_can_listen_again(
    project: ProjectBuilder, proxy: TcpProxy
) -> None:
    lost = require_module("mcp.client.subscriptions").SubscriptionLost

    async def act() -> Any:
        async with mcp.Client(proxy.url) as client:
            with pytest.raises(lost):
                async with client.listen(tools_list_changed=True) as subscription:
                    proxy.cut()
                    await anext(subscription)
            async with client.listen(tools_list_changed=True) as subscription:
                (project.root / "aside/latecomer").rename(project.root / "tools/latecomer")
                return type(await anext(subscription)).__name__

    assert run(act) == "ToolsListChanged"


@pytest.mark.requirement("G-http-resuming")
def test_a_call_of_a_session_outlives_its_connection_and_the_client_gets_the_rest(
    project: ProjectBuilder, proxy: TcpProxy
) -> None:
    reported: list[float] = []

    async def on_progress(progress: float, *_: Any) -> None:
        reported.append(progress)
        if progress == scenario.STEPS[-1]:
            proxy.cut()

    async def act() -> Any:
        async with mcp.Client(proxy.url, mode="legacy") as client, anyio.create_task_group() as tasks:

            async def let_go_on() -> None:
                await until(lambda: proxy.sent(RESUMES))
                project.write("seen", "")

            tasks.start_soon(let_go_on)
            return await client.call_tool("walk", progress_callback=on_progress)

    assert run(act).content[0].text == "arrived"
    assert reported == scenario.STEPS  # each of them once


def test_an_answer_that_came_while_the_connection_was_lost_is_fetched(project: ProjectBuilder, proxy: TcpProxy) -> None:
    async def on_progress(progress: float, *_: Any) -> None:
        if progress == scenario.STEPS[-1]:
            proxy.cut()
            project.write("seen", "")

    async def act() -> Any:
        async with mcp.Client(proxy.url, mode="legacy") as client:
            return await client.call_tool("walk", progress_callback=on_progress)

    assert run(act).content[0].text == "arrived"


def test_a_session_whose_connection_is_lost_can_still_cancel(project: ProjectBuilder, proxy: TcpProxy) -> None:
    async def act() -> Any:
        async with mcp.Client(proxy.url, mode="legacy") as client:
            await until(lambda: proxy.received(STREAM))
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(client.call_tool, "endless")
                await until((project.root / "pids").exists)
                pids = pids_of_endless(project)
                await until(lambda: proxy.received(STREAM) == 2)
                proxy.cut()
                await client.list_tools()
                assert are_running(pids)
                tasks.cancel_scope.cancel()
            await until(lambda: not any(map(is_alive, pids)))

    run(act)


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
def test_what_changed_while_the_stream_of_a_session_was_lost_is_told(project: ProjectBuilder, proxy: TcpProxy) -> None:
    uri = scenario.uri_of(project, "letter.txt")
    heard: list[Any] = []

    async def on_message(message: Any) -> None:
        heard.append(message)

    def has_heard(kind: Any) -> bool:
        return any(isinstance(each, kind) for each in heard)

    async def act() -> None:
        async with mcp.Client(proxy.url, mode="legacy", message_handler=on_message) as client:
            await client.subscribe_resource(uri)
            await until(lambda: proxy.received(STREAM))
            proxy.cut()
            scenario.change_letter(project)
            (project.root / "aside/latecomer").rename(project.root / "tools/latecomer")
            await until(lambda: has_heard(types.ResourceUpdatedNotification))
            await until(lambda: has_heard(types.ToolListChangedNotification))
            assert "latecomer" in [tool.name for tool in (await client.list_tools()).tools]

    run(act)


def test_a_session_that_is_over_is_an_error_and_another_can_be_opened(server: HttpServer, proxy: TcpProxy) -> None:
    async def act() -> tuple[Any, str]:
        async with mcp.Client(proxy.url, mode="legacy") as client:
            await client.list_tools()
            other = server.client(revision="2025-11-25")
            other.session_id = proxy.last_header("Mcp-Session-Id")
            assert other.delete().status == 204
            with pytest.raises(mcp.MCPError) as caught:
                await client.list_tools()
        async with mcp.Client(proxy.url, mode="legacy") as client:
            greeting = await client.call_tool("greet", {"name": "again"})
        return caught.value.error, greeting.content[0].text

    error, greeting = run(act)

    assert (error.code, error.message) == (types.INVALID_REQUEST, "Session terminated")
    assert greeting == "Hello again"


def test_a_client_that_leaves_ends_its_session_and_what_it_has_running(
    project: ProjectBuilder, server: HttpServer, proxy: TcpProxy
) -> None:
    async def act() -> list[str]:
        async with mcp.Client(proxy.url, mode="legacy") as client, anyio.create_task_group() as tasks:

            async def call() -> None:
                with pytest.raises(mcp.MCPError):
                    await client.call_tool("endless")

            tasks.start_soon(call)
            await until((project.root / "pids").exists)
            pids = pids_of_endless(project)
            tasks.cancel_scope.cancel()
        return pids

    pids = run(act)

    eventually(lambda: not any(map(is_alive, pids)))
    assert proxy.sent(b"DELETE /mcp") == 1
    other = server.client(revision="2025-11-25")
    other.session_id = proxy.last_header("Mcp-Session-Id")
    assert other.start("ping").status == 404
