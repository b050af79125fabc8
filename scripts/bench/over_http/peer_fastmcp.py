"""FastMCP over Streamable HTTP, with tools that run the same scripts.

Answers with JSON and with text only, the quickest form of each: by default it sends a stream of one event, and each
result a second time as structured content. A listen needs a stream, so the mode is an argument.

usage: python -m over_http.peer_fastmcp json|sse PROJECT
"""

from __future__ import annotations

import sys
from typing import Any

from fastmcp import FastMCP
from peer_fastmcp import add_tool
from peer_script import read_tools

from over_http.peer_listening import serve


def main(mode: str, project: str) -> None:
    server: FastMCP[Any] = FastMCP("fastmcp", version="1")
    for tool in read_tools(project).values():
        add_tool(server, project, tool)
    serve(server.http_app(json_response=mode == "json"))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
