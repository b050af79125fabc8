"""The official Python SDK over Streamable HTTP, with tools that run the same scripts.

Uses the low-level `Server`, which is the faster of the SDK's two forms, and has it answer with JSON, which is faster
than the stream of one event that it sends by default. A listen needs a stream, so the mode is an argument.

usage: python -m over_http.peer_sdk json|sse PROJECT
"""

from __future__ import annotations

import sys
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from peer_script import read_tools, run_script

from over_http.peer_listening import serve


def main(mode: str, project: str) -> None:
    tools = [types.Tool.model_validate(tool) for tool in read_tools(project).values()]

    async def list_tools(_context: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=tools)

    async def call_tool(_context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        output = await run_script(project, params.name)
        return types.CallToolResult(content=[types.TextContent(type="text", text=output)])

    server: Server[Any] = Server(
        "python-sdk",
        version="1",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_subscriptions_listen=ListenHandler(InMemorySubscriptionBus()),
    )
    serve(server.streamable_http_app(json_response=mode == "json"))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
