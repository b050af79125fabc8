"""The official Python SDK with tools that run the same scripts.

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
from peer_script import read_tools, run_script


async def main(project: str) -> None:
    tools = [types.Tool.model_validate(tool) for tool in read_tools(project).values()]

    async def list_tools(_context: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=tools)

    async def call_tool(_context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        output = await run_script(project, params.name)
        return types.CallToolResult(content=[types.TextContent(type="text", text=output)])

    server: Server[Any] = Server("python-sdk", version="1", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
