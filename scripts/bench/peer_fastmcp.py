"""FastMCP with tools that run the same scripts, and the same files as resources.

Answers with text only: without `output_schema=None` each result would be sent a second time as structured content.

usage: peer_fastmcp.py PROJECT
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from fastmcp import FastMCP
from functions import FUNCTIONS
from peer_script import has_functions, read_resources, read_tools, run_script


def add_tool(server: FastMCP[Any], project: str, tool: dict[str, Any]) -> None:
    async def run(text: str = "") -> str:
        return await run_script(project, tool["name"])

    server.tool(run, name=tool["name"], description=tool.get("description"), output_schema=None)


def add_resource(server: FastMCP[Any], uri: str, path: Path) -> None:
    def read() -> str:
        return path.read_text(encoding="utf-8")

    server.resource(uri, name=path.name, mime_type="text/plain")(read)


def main(project: str) -> None:
    server: FastMCP[Any] = FastMCP("fastmcp", version="1")
    for tool in read_tools(project).values():
        add_tool(server, project, tool)
    if has_functions(project):
        for name, function in FUNCTIONS.items():
            server.tool(function, name=name, output_schema=None)
    for uri, path in read_resources(project).items():
        add_resource(server, uri, path)
    server.run(transport="stdio", show_banner=False)


if __name__ == "__main__":
    main(sys.argv[1])
