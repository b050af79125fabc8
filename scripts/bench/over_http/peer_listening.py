"""What both Python peers need to serve over HTTP: a free port, said on stderr, and uvicorn on it."""

from __future__ import annotations

import socket
import sys
from typing import Any

import uvicorn

HOST = "127.0.0.1"
BACKLOG = 2048  # what uvicorn has by itself


def serve(app: Any) -> None:
    """Serve until SIGTERM, without a log line for each request: none of the others writes one."""
    # With the protocol named: asyncio turns off Nagle's delay only for sockets that say so, and 40 ms for each answer
    # would be our fault, not uvicorn's.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind((HOST, 0))
    listener.listen(BACKLOG)
    print(f"serving http://{HOST}:{listener.getsockname()[1]}/mcp", file=sys.stderr, flush=True)
    # asyncio's own loop also where uvloop is installed: uvloop forks in a way that makes a call of a script take five
    # times as long, and gains little elsewhere. Of uvicorn's two parsers, the one in C is taken if it is there.
    config = uvicorn.Config(app, loop="asyncio", log_level="warning", access_log=False, timeout_graceful_shutdown=1)
    uvicorn.Server(config).run(sockets=[listener])
