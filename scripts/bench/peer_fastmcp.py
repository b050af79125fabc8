"""FastMCP with tools that run the same scripts, and the same files as resources.

Answers with text only: without `output_schema=None` each result would be sent a second time as structured content.

usage: peer_fastmcp.py PROJECT
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fastmcp import Context, FastMCP
from mix import SLOW
from peer_script import functions_of, is_script, read_resources, read_tools, run_python, run_script
from real_tools import SCRIPT


def add_tool(server: FastMCP[Any], project: str, tool: dict[str, Any]) -> None:
    async def run(text: str = "") -> str:
        return await run_script(project, tool["name"])

    server.tool(run, name=tool["name"], description=tool.get("description"), output_schema=None)


def add_function(server: FastMCP[Any], name: str, function: Callable[..., str]) -> None:
    def run(text: str) -> str:
        return function(text)

    async def run_slowly(text: str, context: Context) -> str:
        await context.report_progress(50, 100, "half of it")
        return function(text)

    if function.__name__ == "<lambda>":
        function_to_add: Callable[..., Any] = run_slowly if name == SLOW else run
    else:
        function_to_add = function
    server.tool(function_to_add, name=name, output_schema=None)


def add_script(server: FastMCP[Any], project: str) -> None:
    async def run(name: str) -> str:
        return await run_python(project, SCRIPT.removeprefix("script-"), {"name": name})

    server.tool(run, name=SCRIPT, output_schema=None)


def add_resource(server: FastMCP[Any], uri: str, path: Path) -> None:
    def read() -> str:
        return path.read_text(encoding="utf-8")

    server.resource(uri, name=path.name, mime_type="text/plain")(read)


def main(project: str) -> None:
    server: FastMCP[Any] = FastMCP("fastmcp", version="1")
    for tool in read_tools(project).values():
        add_tool(server, project, tool)
    for name, function in functions_of(project).items():
        add_function(server, name, function)
    if is_script(project, SCRIPT):
        add_script(server, project)
    for uri, path in read_resources(project).items():
        add_resource(server, uri, path)
    server.run(transport="stdio", show_banner=False)


if __name__ == "__main__":
    main(sys.argv[1])
