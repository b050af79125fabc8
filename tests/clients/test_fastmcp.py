"""FastMCP's client over HTTP: `auto` speaks the stateless revision, `legacy` shakes hands."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.clients import asking, scenario
from tests.support.http import HttpServer
from tests.support.prerequisites import require_module
from tests.support.project import ProjectBuilder
from tests.support.tcp_proxy import TcpProxy
from tests.support.waiting import eventually, is_alive

anyio = require_module("anyio")
fastmcp = require_module("fastmcp")
types = require_module("mcp_types")

PATIENCE_SECS = 60.0
REVISIONS = {"auto": "2026-07-28", "legacy": "2025-11-25"}
RESUMES = b"\r\nlast-event-id: "
STREAM = b"\r\ncontent-type: text/event-stream\r\n"

pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")

Connect = Callable[..., Any]


@pytest.fixture
def project(tmp_path: Path) -> ProjectBuilder:
    return scenario.build(tmp_path / "project")


@pytest.fixture(params=sorted(REVISIONS))
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def connect(mode: str, project: ProjectBuilder, serve: Callable[..., HttpServer]) -> Connect:
    server = serve(http_trust_client_roots=True)
    return lambda **options: fastmcp.Client(server.url, mode=mode, **options)


def run(act: Callable[[], Awaitable[Any]]) -> Any:
    async def bounded() -> Any:
        with anyio.fail_after(PATIENCE_SECS):
            return await act()

    return anyio.run(bounded)


async def until(condition: Callable[[], Any]) -> Any:
    return await anyio.to_thread.run_sync(lambda: eventually(condition))


def test_the_client_agrees_on_its_revision_and_lists_all_tools(mode: str, connect: Connect) -> None:
    async def act() -> tuple[str, list[str]]:
        async with connect() as client:
            return client.protocol_version, [tool.name for tool in await client.list_tools()]

    assert run(act) == (REVISIONS[mode], scenario.TOOLS)


@pytest.mark.requirement("G-http-clients")
def test_the_client_calls_tools_and_gets_structure_and_failures(connect: Connect) -> None:
    async def act() -> tuple[Any, Any, Any]:
        async with connect() as client:
            greeting = await client.call_tool("greet", {"name": "Zoë"})
            weighed = await client.call_tool("weigh")
            broken = await client.call_tool("broken", raise_on_error=False)
            return greeting.content[0].text, weighed.structured_content, broken.is_error

    assert run(act) == ("Hello Zoë", {"grams": 1200, "label": "Zürich"}, True)


def test_the_client_reads_a_resource_and_gets_a_prompt(connect: Connect, project: ProjectBuilder) -> None:
    async def act() -> tuple[str, str]:
        async with connect() as client:
            (letter,) = await client.read_resource(scenario.uri_of(project, "letter.txt"))
            prompt = await client.get_prompt("invite", {"guest": "Zoë", "tone": "funny"})
            return letter.text, prompt.messages[0].content.text

    assert run(act) == ("Dear Zoë\n", "Write a funny invitation for Zoë.")


def test_progress_reaches_the_handler_while_the_tool_runs(connect: Connect, project: ProjectBuilder) -> None:
    reported: list[float] = []

    async def on_progress(progress: float, *_: Any) -> None:
        reported.append(progress)
        if progress == scenario.STEPS[-1]:
            project.write("seen", "")

    async def act() -> str:
        async with connect() as client:
            return str((await client.call_tool("walk", progress_handler=on_progress)).content[0].text)

    assert run(act) == "arrived"
    assert reported == scenario.STEPS


def test_a_cancelled_call_ends_its_processes_and_nothing_else(connect: Connect, project: ProjectBuilder) -> None:
    async def act() -> str:
        async with connect() as client:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(client.call_tool, "endless")
                await until((project.root / "pids").exists)
                pids = project.read("pids").split()
                assert all(map(is_alive, pids))
                tasks.cancel_scope.cancel()
            await until(lambda: not any(map(is_alive, pids)))
            return str((await client.call_tool("greet", {"name": "again"})).content[0].text)

    assert run(act) == "Hello again"


def test_log_messages_of_the_wanted_level_reach_the_handler(
    mode: str, connect: Connect, project: ProjectBuilder
) -> None:
    """In the stateless era the client asks for all of them."""
    heard: list[tuple[str, Any]] = []

    async def on_log(message: Any) -> None:
        if message.logger == "story":
            heard.append((message.level, message.data))
            if message.level == "error":
                project.write("seen", "")

    async def act() -> str:
        async with connect(log_handler=on_log) as client:
            if mode == "legacy":
                await client.set_logging_level("warning")
            return str((await client.call_tool("narrate")).content[0].text)

    assert run(act) == "told"
    loud = [("warning", "a turn"), ("error", {"the": "end"})]
    assert heard == (loud if mode == "legacy" else [("debug", "a detail"), *loud])


@pytest.mark.parametrize("mode", ["legacy"])
def test_a_tool_added_while_connected_is_announced(connect: Connect, project: ProjectBuilder) -> None:
    """In the stateless era the client has no way to listen."""

    async def act() -> list[str]:
        changed = anyio.Event()

        async def on_message(message: Any) -> None:
            if isinstance(message, types.ToolListChangedNotification):
                changed.set()

        async with connect(message_handler=on_message) as client:
            (project.root / "aside/latecomer").rename(project.root / "tools/latecomer")
            await changed.wait()
            return [tool.name for tool in await client.list_tools()]

    assert run(act) == sorted([*scenario.TOOLS, "latecomer"])


@pytest.mark.parametrize("mode", ["legacy"])
def test_a_subscriber_hears_of_a_change(connect: Connect, project: ProjectBuilder) -> None:
    """By the session of the official client that it has inside: it has no way of its own."""
    uri = scenario.uri_of(project, "letter.txt")

    async def act() -> str:
        changed = anyio.Event()

        async def on_message(message: Any) -> None:
            if isinstance(message, types.ResourceUpdatedNotification) and message.params.uri == uri:
                changed.set()

        async with connect(message_handler=on_message) as client:
            await client.session.subscribe_resource(uri)
            scenario.change_letter(project)
            await changed.wait()
            (letter,) = await client.read_resource(uri)
            return str(letter.text)

    assert run(act) == "Dear all\n"


def test_the_client_is_asked(mode: str, tmp_path: Path) -> None:
    project = asking.build(tmp_path / "asking")

    async def elicit(_: str, __: Any, params: Any, ___: Any) -> Any:
        schema = params.model_dump(by_alias=True)["requestedSchema"]
        return fastmcp.client.elicitation.ElicitResult(action="accept", content=asking.answer_to(schema))

    async def sample(messages: list[Any], *_: Any) -> str:
        return f"a poem about {messages[0].content.text.split()[-1]}"

    async def act() -> dict[str, str]:
        options = {"elicitation_handler": elicit, "sampling_handler": sample, "roots": asking.ROOMS}
        async with fastmcp.Client(server.url, mode=mode, **options) as client:
            names = ("survey", "poet", "rooms", "order")
            return {name: (await client.call_tool(name)).content[0].text for name in names}

    with HttpServer(project.root, http_trust_client_roots=True) as server:
        answers = run(act)

    assert json.loads(answers["survey"]) == asking.SURVEY
    assert (answers["poet"], json.loads(answers["rooms"]), answers["order"]) == (asking.POEM, asking.ROOMS, "kept")


@pytest.mark.parametrize("mode", ["legacy"])
def test_a_call_outlives_its_connection_and_the_client_gets_the_rest(
    mode: str, project: ProjectBuilder, serve: Callable[..., HttpServer]
) -> None:
    reported: list[float] = []

    async def act() -> str:
        async def on_progress(progress: float, *_: Any) -> None:
            reported.append(progress)
            if progress == scenario.STEPS[-1]:
                proxy.cut()

        async def let_go_on() -> None:
            await until(lambda: proxy.sent(RESUMES))
            project.write("seen", "")

        async with fastmcp.Client(proxy.url, mode=mode) as client, anyio.create_task_group() as tasks:
            tasks.start_soon(let_go_on)
            return str((await client.call_tool("walk", progress_handler=on_progress)).content[0].text)

    with TcpProxy(serve().url) as proxy:
        assert run(act) == "arrived"

    assert reported == scenario.STEPS


@pytest.mark.parametrize("mode", ["auto"])
def test_a_stateless_call_ends_with_its_connection(
    mode: str, project: ProjectBuilder, serve: Callable[..., HttpServer]
) -> None:
    async def act() -> None:
        async with fastmcp.Client(proxy.url, mode=mode) as client, anyio.create_task_group() as tasks:

            async def call() -> None:
                with pytest.raises(Exception, match="stream ended"):
                    await client.call_tool("endless")

            tasks.start_soon(call)
            await until((project.root / "pids").exists)
            pids = project.read("pids").split()
            await until(lambda: proxy.received(STREAM))
            proxy.cut()
            await until(lambda: not any(map(is_alive, pids)))

    with TcpProxy(serve(http_keepalive_secs=0.5).url) as proxy:  # when the call becomes a stream
        run(act)


@pytest.mark.parametrize("mode", ["legacy"])
def test_a_session_that_is_over_is_an_error_and_another_can_be_opened(
    mode: str, serve: Callable[..., HttpServer]
) -> None:
    server = serve()

    async def act() -> str:
        async with fastmcp.Client(proxy.url, mode=mode) as client:
            await client.list_tools()
            other = server.client(revision="2025-11-25")
            other.session_id = proxy.last_header("Mcp-Session-Id")
            assert other.delete().status == 204
            with pytest.raises(Exception, match="Session terminated"):
                await client.list_tools()
        async with fastmcp.Client(proxy.url, mode=mode) as client:
            return str((await client.call_tool("greet", {"name": "again"})).content[0].text)

    with TcpProxy(server.url) as proxy:
        assert run(act) == "Hello again"
