"""The official Python SDK with tools that run the same scripts, and the same files as resources.

Uses the low-level `Server`, which is the faster of the SDK's two forms.

usage: peer_sdk.py PROJECT
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mix import SLOW
from peer_script import functions_of, is_script, read_resources, read_tools, run_python, run_script
from real_tools import SCRIPT


async def main(project: str) -> None:
    functions = functions_of(project)
    tools = [types.Tool.model_validate(tool) for tool in read_tools(project).values()]
    tools += [types.Tool(name=name, input_schema={"type": "object"}) for name in functions]
    if is_script(project, SCRIPT):
        tools.append(types.Tool(name=SCRIPT, input_schema={"type": "object"}))

    async def list_tools(_context: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=tools)

    async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        if is_script(project, params.name):
            output = await run_python(project, SCRIPT.removeprefix("script-"), params.arguments or {})
        elif params.name in functions:
            if params.name == SLOW:
                await context.session.report_progress(50, 100, "half of it")
            output = functions[params.name](**params.arguments or {})
        else:
            output = await run_script(project, params.name)
        return types.CallToolResult(content=[types.TextContent(type="text", text=output)])

    resources = read_resources(project)

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
    )
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
