"""The official Python client, over pipes and over HTTP: `auto` speaks the stateless revision, `legacy` shakes hands."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import pytest

from tests.clients import scenario
from tests.clients.asynchronous import run, until
from tests.support.http import Serve
from tests.support.prerequisites import require_module
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually, is_alive

anyio = require_module("anyio")
mcp = require_module("mcp")
stdio_client = require_module("mcp.client.stdio").stdio_client
subscriptions = require_module("mcp.client.subscriptions")
types = require_module("mcp_types")

REVISIONS = {"auto": "2026-07-28", "legacy": "2025-11-25"}

# For what says of itself that it is deprecated. It is what handshake clients have.
is_deprecated = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")


class Connector(NamedTuple):
    """Opens clients of one mode on one project: each with a server of its own, or on the one at `url`."""

    mode: str
    project: ProjectBuilder
    errors: TextIO
    url: str | None = None

    def __call__(self, *, command: list[str] | None = None, **options: Any) -> AbstractAsyncContextManager[Any]:
        if self.url is not None:
            return mcp.Client(self.url, mode=self.mode, **options)
        program, *arguments = command or scenario.server_command(self.project)
        parameters = mcp.StdioServerParameters(
            command=program, args=arguments, env=scenario.server_environment(), cwd=self.project.root
        )
        # `Client(parameters)` does the same, with a stderr that it chose when it was imported.
        return mcp.Client(stdio_client(parameters, errlog=self.errors), mode=self.mode, **options)


@pytest.fixture
def project(tmp_path: Path) -> ProjectBuilder:
    return scenario.build(tmp_path / "project")


@pytest.fixture
def errors(tmp_path: Path) -> Iterator[TextIO]:
    """Where servers write stderr. Shown when the test fails."""
    path = tmp_path / "server-stderr"
    with path.open("w", encoding="utf-8") as file:
        yield file
    print(path.read_text(encoding="utf-8"))


@pytest.fixture(params=sorted(REVISIONS))
def connect_by_pipe(request: pytest.FixtureRequest, project: ProjectBuilder, errors: TextIO) -> Connector:
    return Connector(request.param, project, errors)


@pytest.fixture(params=[f"{mode}-{transport}" for mode in sorted(REVISIONS) for transport in ("pipe", "http")])
def connect(request: pytest.FixtureRequest, project: ProjectBuilder, errors: TextIO, serve: Serve) -> Connector:
    mode, transport = request.param.split("-")
    return Connector(mode, project, errors, serve(http_trust_client_roots=True).url if transport == "http" else None)


def call(connect: Connector, name: str, arguments: dict[str, Any] | None = None) -> Any:
    async def act() -> Any:
        async with connect() as client:
            return await client.call_tool(name, arguments)

    return run(act)


def test_schemas_that_are_listed_in_plainer_words_fit_what_comes(
    connect_by_pipe: Connector, project: ProjectBuilder
) -> None:
    """The client checks structured content by the listed outputSchema. The schema is as pydantic writes one."""
    pydantic = require_module("pydantic")

    class Place(pydantic.BaseModel):  # type: ignore[misc, name-defined]  # the module is there or not
        name: str
        height: int | None = None

    class Route(pydantic.BaseModel):  # type: ignore[misc, name-defined]
        start: Place
        stops: list[Place] = []

    schema = Route.model_json_schema()
    project.tool("route", 'printf "%s" "$MCP_TOOL_ARGS_JSON"', inputSchema=schema, outputSchema=schema)
    value = {"start": {"name": "a", "height": None}, "stops": [{"name": "b", "height": 5}]}

    async def act() -> tuple[Any, Any]:
        async with connect_by_pipe() as client:
            (tool,) = [each for each in (await client.list_tools()).tools if each.name == "route"]
            return tool, await client.call_tool("route", value)

    tool, result = run(act)
    assert "$ref" in json.dumps(schema)
    assert not {"$ref", "$defs"} & set(re.findall(r'"(\$\w+)"', json.dumps([tool.input_schema, tool.output_schema])))
    assert result.structured_content == value


def texts(result: Any) -> str:
    return "".join(block.text for block in result.content if block.type == "text")


def test_the_client_agrees_on_its_newest_revision(connect: Connector) -> None:
    async def act() -> tuple[str, Any, Any]:
        async with connect() as client:
            return client.protocol_version, client.server_info, client.server_capabilities

    version, info, capabilities = run(act)

    assert version == REVISIONS[connect.mode]
    assert (info.name, info.version) == ("test-project", "1.2.3")
    assert capabilities.tools.list_changed


def test_the_client_lists_all_tools_with_their_schemas(connect: Connector) -> None:
    async def act() -> Any:
        async with connect() as client:
            return (await client.list_tools()).tools

    tools = {tool.name: tool for tool in run(act)}

    assert sorted(tools) == scenario.TOOLS
    assert tools["greet"].description == "Greets somebody"
    assert tools["greet"].input_schema["required"] == ["name"]
    assert tools["weigh"].output_schema["required"] == ["grams"]


@pytest.mark.requirement("G-http-clients")
def test_a_text_tool_answers_with_its_output(connect: Connector) -> None:
    result = call(connect, "greet", {"name": "Zoë"})

    assert not result.is_error
    assert texts(result) == "Hello Zoë"
    assert result.structured_content is None


def test_a_tool_with_a_declared_output_answers_with_structure_and_text(connect: Connector) -> None:
    result = call(connect, "weigh")

    assert not result.is_error
    assert result.structured_content == {"grams": 1200, "label": "Zürich"}
    assert "1200" in texts(result)


def test_progress_reaches_the_callback_while_the_tool_runs(connect: Connector, project: ProjectBuilder) -> None:
    reported: list[tuple[float, float | None, str | None]] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        reported.append((progress, total, message))
        if progress == scenario.STEPS[-1]:
            project.write("seen", "")

    async def act() -> Any:
        async with connect() as client:
            return await client.call_tool("walk", progress_callback=on_progress)

    assert texts(run(act)) == "arrived"
    assert reported == [(step, 100, f"at {step}") for step in scenario.STEPS]


@is_deprecated
def test_log_messages_of_the_wanted_level_reach_the_callback(connect: Connector, project: ProjectBuilder) -> None:
    heard: list[tuple[str, str | None, Any]] = []

    async def on_log(params: Any) -> None:
        if params.logger == "story":
            heard.append((params.level, params.logger, params.data))
            if params.level == "error":
                project.write("seen", "")

    async def act() -> Any:
        async with connect(logging_callback=on_log, log_level="warning") as client:
            if connect.mode == "legacy":
                await client.set_logging_level("warning")
            return await client.call_tool("narrate")

    assert texts(run(act)) == "told"
    assert heard == [("warning", "story", "a turn"), ("error", "story", {"the": "end"})]


def test_a_cancelled_call_ends_its_processes_and_nothing_else(connect: Connector, project: ProjectBuilder) -> None:
    async def act() -> tuple[list[str], Any]:
        async with connect() as client:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(client.call_tool, "endless")
                await until((project.root / "pids").exists)
                pids = project.read("pids").split()
                assert all(is_alive(pid) for pid in pids)
                tasks.cancel_scope.cancel()
            # Before the client leaves: its leaving would end them as well.
            await until(lambda: not any(is_alive(pid) for pid in pids))
            return pids, await client.call_tool("greet", {"name": "again"})

    pids, result = run(act)

    assert len(pids) == 2
    assert texts(result) == "Hello again"


def test_a_tool_added_while_connected_is_announced_listed_and_callable(
    connect: Connector, project: ProjectBuilder
) -> None:
    changed = anyio.Event()

    async def on_message(message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            changed.set()

    async def hear_of_change(client: Any) -> None:
        if connect.mode == "legacy":
            (project.root / "aside/latecomer").rename(project.root / "tools/latecomer")
            await changed.wait()
        else:
            async with client.listen(tools_list_changed=True) as subscription:
                assert subscription.honored.tools_list_changed
                (project.root / "aside/latecomer").rename(project.root / "tools/latecomer")
                assert type(await anext(subscription)).__name__ == "ToolsListChanged"

    async def act() -> tuple[list[str], list[str], Any]:
        async with connect(message_handler=on_message) as client:
            before = [tool.name for tool in (await client.list_tools()).tools]
            await hear_of_change(client)
            after = [tool.name for tool in (await client.list_tools()).tools]
            return before, after, await client.call_tool("latecomer")

    before, after, result = run(act)

    assert before == scenario.TOOLS
    assert after == sorted([*scenario.TOOLS, "latecomer"])
    assert texts(result) == "better late"


def test_the_client_reads_text_and_a_large_picture(connect: Connector, project: ProjectBuilder) -> None:
    digest = scenario.add_picture(project)

    async def act() -> tuple[list[str], Any, Any]:
        async with connect() as client:
            listed = sorted(resource.name for resource in (await client.list_resources()).resources)
            letter = await client.read_resource(scenario.uri_of(project, "letter.txt"))
            picture = await client.read_resource(scenario.uri_of(project, "picture.png"))
            return listed, letter.contents[0], picture.contents[0]

    listed, letter, picture = run(act)

    assert "letter" in listed
    assert (letter.text, letter.mime_type) == ("Dear Zoë\n", "text/plain")
    assert picture.mime_type == "image/png"
    assert hashlib.sha256(base64.b64decode(picture.blob)).hexdigest() == digest


def test_the_client_lists_templates_and_completes_and_reads_them(connect: Connector) -> None:
    async def act() -> tuple[Any, Any, Any]:
        async with connect() as client:
            (template,) = (await client.list_resource_templates()).resource_templates
            reference = types.ResourceTemplateReference(type="ref/resource", uri=template.uri_template)
            completed = await client.complete(reference, {"name": "word", "value": "hel"})
            return template, completed.completion, await client.read_resource("echo://hello")

    template, completion, said = run(act)

    assert (template.name, template.uri_template) == ("said", "echo://{word}")
    assert completion.values == ["hello", "help"]
    assert said.contents[0].text == "hello"


@is_deprecated
def test_a_subscriber_hears_once_of_one_change(connect: Connector, project: ProjectBuilder) -> None:
    uris = [scenario.uri_of(project, name) for name in ("letter.txt", "marker.txt")]
    heard: list[str] = []

    async def on_message(message: Any) -> None:
        if connect.mode == "legacy" and isinstance(message, types.ResourceUpdatedNotification):
            heard.append(message.params.uri)

    async def change_both() -> None:
        scenario.change_letter(project)
        await until(lambda: uris[0] in heard)
        project.write("resources/marker.txt", "1")
        await until(lambda: uris[1] in heard)

    async def act() -> str:
        async with connect(message_handler=on_message) as client:
            if connect.mode == "legacy":
                for uri in uris:
                    await client.subscribe_resource(uri)
                await change_both()
                for uri in uris:
                    await client.unsubscribe_resource(uri)
            else:
                async with client.listen(resource_subscriptions=uris) as subscription:
                    assert subscription.honored.resource_subscriptions == uris
                    async with anyio.create_task_group() as tasks:
                        tasks.start_soon(change_both)
                        async for event in subscription:
                            heard.append(event.uri)
                            if event.uri == uris[1]:
                                break
            return (await client.read_resource(uris[0], cache_mode="bypass")).contents[0].text

    assert run(act) == "Dear all\n"
    assert [uri for uri in heard if uri == uris[0]] == uris[:1]


def test_the_client_gets_a_prompt_and_completes_its_argument(connect: Connector) -> None:
    async def act() -> tuple[Any, Any, Any]:
        async with connect() as client:
            (listed,) = (await client.list_prompts()).prompts
            reference = types.PromptReference(type="ref/prompt", name="invite")
            completed = await client.complete(reference, {"name": "tone", "value": "f"})
            filled = await client.get_prompt("invite", {"guest": "Zoë", "tone": "funny"})
            return listed, completed.completion, filled

    listed, completion, filled = run(act)

    assert [(argument.name, argument.required) for argument in listed.arguments] == [("guest", True), ("tone", True)]
    assert completion.values == scenario.TONES
    assert [message.content.text for message in filled.messages] == ["Write a funny invitation for Zoë."]


def noting_status(command: list[str], path: Path, *, before: str = "") -> list[str]:
    """The command, in a shell that notes its exit status. A signal of the client ends the shell before it can."""
    return ["/bin/sh", "-c", before + '"$@"; echo $? > "$0"', str(path), *command]


def test_the_server_leaves_by_itself_when_the_client_closes(
    connect_by_pipe: Connector, project: ProjectBuilder, tmp_path: Path
) -> None:
    command = noting_status(scenario.fresh_server_command(project), tmp_path / "status")

    async def act() -> None:
        async with connect_by_pipe(command=command) as client:
            await client.call_tool("greet", {"name": "you"})

    run(act)

    assert (tmp_path / "status").read_text(encoding="utf-8") == "0\n"
    eventually(lambda: not scenario.processes_of(project))


def test_a_client_that_leaves_in_the_middle_of_a_call_leaves_nothing_running(
    connect_by_pipe: Connector, project: ProjectBuilder, tmp_path: Path
) -> None:
    """The call may still finish until the client loses patience and sends SIGTERM; that ends everything, before the
    SIGKILL that the client would send next."""
    # This shell outlives SIGTERM, to see how the server took it. SIGKILL ends it without a note.
    command = noting_status(scenario.fresh_server_command(project), tmp_path / "status", before="trap : TERM; ")

    async def act() -> None:
        async with anyio.create_task_group() as tasks, connect_by_pipe(command=command) as client:

            async def call_for_ever() -> None:
                with pytest.raises(mcp.MCPError):
                    await client.call_tool("endless")

            tasks.start_soon(call_for_ever)
            await until((project.root / "pids").exists)

    run(act)

    assert (tmp_path / "status").exists(), "the server did not end on SIGTERM"
    assert (tmp_path / "status").read_text(encoding="utf-8") == "0\n"
    eventually(lambda: not scenario.processes_of(project))
