"""FastMCP's client over HTTP: `auto` speaks the stateless revision, `legacy` shakes hands."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.clients import asking, scenario
from tests.clients.asynchronous import run
from tests.support.http import HttpServer, Serve
from tests.support.prerequisites import require_module
from tests.support.project import ProjectBuilder

fastmcp = require_module("fastmcp")
REVISIONS = {"auto": "2026-07-28", "legacy": "2025-11-25"}
pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")

Connect = Callable[..., Any]


@pytest.fixture
def project(tmp_path: Path) -> ProjectBuilder:
    return scenario.build(tmp_path / "project")


@pytest.fixture(params=sorted(REVISIONS))
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def connect(mode: str, project: ProjectBuilder, serve: Serve) -> Connect:
    server = serve(http_trust_client_roots=True)
    return lambda **options: fastmcp.Client(server.url, mode=mode, **options)


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


def test_what_a_function_returns_reaches_the_program_without_its_wrapping(
    mode: str, project: ProjectBuilder, serve: Serve
) -> None:
    schema = {"type": "object", "properties": {"result": {"type": "integer"}}, "required": ["result"]}
    project.tool("count", """printf '{"result": 5}'""", outputSchema=schema)
    server = serve()

    async def act() -> Any:
        async with fastmcp.Client(server.url, mode=mode) as client:
            return (await client.call_tool("count")).data

    assert run(act) == 5


def test_the_client_reads_a_resource_and_gets_a_prompt(connect: Connect, project: ProjectBuilder) -> None:
    async def act() -> tuple[str, str]:
        async with connect() as client:
            (letter,) = await client.read_resource(scenario.uri_of(project, "letter.txt"))
            prompt = await client.get_prompt("invite", {"guest": "Zoë", "tone": "funny"})
            return letter.text, prompt.messages[0].content.text

    assert run(act) == ("Dear Zoë\n", "Write a funny invitation for Zoë.")


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
