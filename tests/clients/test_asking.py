"""One set of scripts asks through the official clients of both eras, unchanged."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.clients import asking, scenario
from tests.support.http import Serve
from tests.support.prerequisites import require_module
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually

PATIENCE_SECS = 60.0
TOOLS = ("survey", "poet", "rooms", "order")

PYTHON = {"auto": "2026-07-28", "legacy": "2025-11-25"}
TYPESCRIPT = {
    # name: (driver, mode, revision that it agrees on)
    "2.x-default": ("asking2.mjs", "default", "2025-11-25"),
    "2.x-pin": ("asking2.mjs", "pin", "2026-07-28"),
    "1.x": ("asking1.mjs", "default", "2025-11-25"),
}


@pytest.fixture
def project(tmp_path: Path) -> ProjectBuilder:
    return asking.build(tmp_path / "project")


def require_all_answered(project: ProjectBuilder, report: dict[str, Any], revision: str) -> None:
    assert report["revision"] == revision
    assert json.loads(report["survey"]) == asking.SURVEY
    assert report["poet"] == asking.POEM
    assert json.loads(report["rooms"]) == asking.ROOMS
    assert report["order"] == "kept"
    assert project.read("orders") == "ordered\n"  # it acts before it asks, once


@pytest.fixture(params=["pipe", "http"])
def url(request: pytest.FixtureRequest, project: ProjectBuilder, serve: Serve) -> Iterator[str | None]:
    """Of a server over HTTP, if it is not the client that starts one. Whichever it is leaves nothing behind."""
    server = serve(http_trust_client_roots=True) if request.param == "http" else None
    yield None if server is None else server.url
    assert server is None or server.stop() == 0
    eventually(lambda: not scenario.processes_of(project))


@pytest.mark.requirement("G-ask-clients")
@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
@pytest.mark.parametrize("mode", PYTHON)
def test_the_python_client_is_asked(project: ProjectBuilder, tmp_path: Path, url: str | None, mode: str) -> None:
    anyio, mcp, types = map(require_module, ("anyio", "mcp", "mcp_types"))
    stdio_client = require_module("mcp.client.stdio").stdio_client

    async def elicit(_: Any, params: Any) -> Any:
        schema = params.model_dump(by_alias=True)["requestedSchema"]
        return types.ElicitResult(action="accept", content=asking.answer_to(schema))

    async def sample(_: Any, params: Any) -> Any:
        theme = params.messages[0].content.text.split()[-1]
        text = types.TextContent(type="text", text=f"a poem about {theme}")
        return types.CreateMessageResult(role="assistant", content=text, model="tests")

    async def list_roots(_: Any) -> Any:
        return types.ListRootsResult(roots=[types.Root(uri=uri) for uri in asking.ROOMS])

    async def act() -> dict[str, Any]:
        program, *arguments = scenario.server_command(project)
        parameters = mcp.StdioServerParameters(
            command=program, args=arguments, env=scenario.server_environment(), cwd=project.root
        )
        callbacks = {
            "elicitation_callback": elicit,
            "sampling_callback": sample,
            "list_roots_callback": list_roots,
        }
        with (tmp_path / "stderr").open("w") as errors, anyio.fail_after(PATIENCE_SECS):
            server = url or stdio_client(parameters, errlog=errors)
            async with mcp.Client(server, mode=mode, **callbacks) as client:
                report = {"revision": client.protocol_version}
                for name in TOOLS:
                    report[name] = (await client.call_tool(name)).content[0].text
        return report

    require_all_answered(project, anyio.run(act), PYTHON[mode])


@pytest.mark.requirement("G-ask-clients")
@pytest.mark.parametrize("visitor", TYPESCRIPT)
def test_the_typescript_clients_are_asked(
    project: ProjectBuilder, drivers: Path, url: str | None, visitor: str
) -> None:
    driver, mode, revision = TYPESCRIPT[visitor]

    require_all_answered(project, scenario.driven(drivers / driver, mode, project, url=url), revision)
