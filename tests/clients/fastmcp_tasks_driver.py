"""Tasks with FastMCP's client: python fastmcp_tasks_driver.py COMMAND [ARGUMENT...]. Runs in an environment of its own.

Over a pipe: over HTTP, this client does not send the header Mcp-Name, which the extension demands."""

import asyncio
import json
import os
import sys
from typing import Any

import fastmcp
from fastmcp.client.transports import StdioTransport
from fastmcp_tasks import call_tool_task


async def answer(message: str, kind: Any, params: Any, context: Any) -> Any:
    return {"name": "Zoe"}


async def main(command: str, *words: str) -> None:
    report = {}
    transport = StdioTransport(command, list(words), env=dict(os.environ))
    async with fastmcp.Client(transport, mode="auto", elicitation_handler=answer) as client:
        for name in ("slow", "asker", "silent"):
            report[name] = (await client.call_tool(name)).content[0].text
        task = await call_tool_task(client, "endless")
        report["polled"] = (await task.status()).status
        await task.cancel()
        report["cancelled"] = (await task.status()).status
    print(json.dumps(report))


asyncio.run(main(*sys.argv[1:]))
