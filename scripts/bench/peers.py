"""The Python SDKs, with tools that run the scripts of a project folder, and its files as resources.

Each is in its quickest form: the low-level `Server` of the official SDK; of FastMCP, answers with text only, which it
would otherwise send a second time as structured content; JSON instead of a stream of one event. A listen needs a
stream, hence the mode `sse`. A script runs as an author would run it with asyncio: output read to the end, and the
whole group killed when the call is cancelled. Where the project has functions, they are called in this process.

Tasks of FastMCP are in memory, or in Redis, which is started with the server and ends with it. They have more places
than any measurement needs.

usage: peers.py python-sdk|fastmcp|fastmcp-redis stdio|json|sse PROJECT
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from projects import FUNCTIONS_OF


def read_tools(project: Path) -> list[dict[str, Any]]:
    """The description and schema of each script."""
    tools = []
    for script in sorted(project.glob("tools/*.sh")):
        meta = script.with_suffix(".meta.json")
        described = json.loads(meta.read_text(encoding="utf-8")) if meta.exists() else {}
        tools.append({"name": script.stem, "inputSchema": {"type": "object"}, **described})
    return tools


def read_resources(project: Path) -> dict[str, Path]:
    return {path.as_uri(): path for path in sorted(project.glob("resources/*.txt"))}


async def run_script(project: Path, name: str) -> str:
    child = await asyncio.create_subprocess_exec(
        project / "tools" / f"{name}.sh",
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        output, _ = await child.communicate()
    except asyncio.CancelledError:
        os.killpg(child.pid, signal.SIGKILL)
        raise
    return output.decode("utf-8", "replace")


def serve_sdk(mode: str, project: Path) -> None:
    import mcp_types as types
    from mcp.server.lowlevel import Server
    from mcp.server.stdio import stdio_server
    from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler

    functions = FUNCTIONS_OF.get(project.name, {})
    tools = [types.Tool(name=name, input_schema={"type": "object"}) for name in functions]
    tools = tools or [types.Tool.model_validate(tool) for tool in read_tools(project)]
    resources = read_resources(project)

    async def list_tools(_context: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=tools)

    async def call_tool(_context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        if params.name in functions:
            output = functions[params.name](*(params.arguments or {}).values())
            if asyncio.iscoroutine(output):
                output = await output
        else:
            output = await run_script(project, params.name)
        return types.CallToolResult(content=[types.TextContent(type="text", text=output)])

    async def read_resource(_context: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        text = resources[params.uri].read_text(encoding="utf-8")
        contents = types.TextResourceContents(uri=params.uri, mime_type="text/plain", text=text)
        return types.ReadResourceResult(contents=[contents])

    server: Server[Any] = Server(
        "python-sdk",
        version="1",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_read_resource=read_resource,
        on_subscriptions_listen=ListenHandler(InMemorySubscriptionBus()),
    )

    async def serve_pipes() -> None:
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    if mode == "stdio":
        asyncio.run(serve_pipes())
    else:
        serve_port(server.streamable_http_app(json_response=mode == "json"))


def serve_fastmcp(mode: str, project: Path, tasks_url: str = "memory://") -> None:
    from fastmcp import FastMCP

    server: FastMCP[Any] = FastMCP("fastmcp", version="1")
    functions = FUNCTIONS_OF.get(project.name, {})
    task: dict[str, Any] = {}
    if project.name == "tasks":
        from fastmcp_tasks import TasksExtension

        server.add_extension(TasksExtension(url=tasks_url, concurrency=64))
        task = {"task": True}

    def script_named(name: str) -> Callable[..., Any]:
        async def run(text: str = "") -> str:
            return await run_script(project, name)

        return run

    def reader_of(path: Path) -> Callable[[], str]:
        def read() -> str:
            return path.read_text(encoding="utf-8")

        return read

    for name, function in functions.items():
        server.tool(function, name=name, output_schema=None, **task)
    for tool in [] if functions and not task else read_tools(project):
        name = tool["name"]
        server.tool(script_named(name), name=name, description=tool.get("description"), output_schema=None, **task)
    for uri, path in read_resources(project).items():
        server.resource(uri, name=path.name, mime_type="text/plain")(reader_of(path))
    if mode == "stdio":
        server.run(transport="stdio", show_banner=False)
    else:
        serve_port(server.http_app(json_response=mode == "json"))


def serve_fastmcp_with_redis(mode: str, project: Path) -> None:
    """Redis stores nothing on disk, and is reached in the quickest way: by a socket in the file system."""
    place = project.parent / f"redis-{os.getpid()}.sock"
    command = ["redis-server", "--port", "0", "--unixsocket", str(place), "--save", "", "--appendonly", "no"]
    redis = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        while not place.exists():
            if redis.poll() is not None:
                sys.exit(f"redis-server ended with status {redis.returncode}")
            time.sleep(0.01)
        serve_fastmcp(mode, project, f"unix://{place}")
    finally:
        redis.terminate()


def serve_port(app: Any) -> None:
    """Serve on a free port, which is said on stderr, without a log line for each request: no other subject has one."""
    import uvicorn

    # With the protocol named: asyncio turns off Nagle's delay only for sockets that say so, and 40 ms for each answer
    # would be our fault, not uvicorn's.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen(2048)  # what uvicorn has by itself
    print(f"serving http://127.0.0.1:{listener.getsockname()[1]}/mcp", file=sys.stderr, flush=True)
    # asyncio's own loop also where uvloop is installed: uvloop forks in a way that makes a call of a script take five
    # times as long, and gains little elsewhere. Of uvicorn's two parsers, the one in C is taken if it is there.
    config = uvicorn.Config(app, loop="asyncio", log_level="warning", access_log=False, timeout_graceful_shutdown=1)
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    servers = {"python-sdk": serve_sdk, "fastmcp": serve_fastmcp, "fastmcp-redis": serve_fastmcp_with_redis}
    serve = servers[sys.argv[1]]
    serve(sys.argv[2], Path(sys.argv[3]))
