"""A client in a hundred lines: JSON-RPC over the pipes of the real server.

Rule: every wait has a bound, so that the demonstration ends whatever the server does.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

PATIENCE_SECS = 20.0
STATELESS_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    "io.modelcontextprotocol/clientInfo": {"name": "demo", "version": "1"},
}
Json = dict[str, Any]


class Failure(Exception):
    """The server did not do what the demonstration is to show."""


class Conversation:
    """One server process, and what is said to it and heard from it."""

    def __init__(self, launcher: Path, project: Path) -> None:
        self._server = subprocess.Popen(
            [launcher, "serve", "--project-root", project],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=server_environment(),
        )
        self._heard = b""
        self._id = 0

    def send(self, method: str, params: Json | None = None) -> int:
        """Send a request; its id."""
        self._id += 1
        self.write({"id": self._id, "method": method, **({} if params is None else {"params": params})})
        return self._id

    def notify(self, method: str, params: Json | None = None) -> None:
        self.write({"method": method, **({} if params is None else {"params": params})})

    def write(self, message: Json) -> None:
        assert self._server.stdin is not None
        self._server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self._server.stdin.flush()

    def receive(self) -> Json:
        """The next message of the server."""
        assert self._server.stdout is not None
        give_up_at = time.monotonic() + PATIENCE_SECS
        while b"\n" not in self._heard:
            ready, _, _ = select.select([self._server.stdout], [], [], max(0.0, give_up_at - time.monotonic()))
            if not ready:
                raise Failure(f"The server said nothing for {PATIENCE_SECS:.0f} s.")
            chunk = os.read(self._server.stdout.fileno(), 65536)
            if not chunk:
                raise Failure("The server closed the connection.")
            self._heard += chunk
        line, _, self._heard = self._heard.partition(b"\n")
        message: Json = json.loads(line)
        return message

    def result(self, request_id: int) -> Json:
        """The result of a request; what comes before it is passed over."""
        while (message := self.receive()).get("id") != request_id or "method" in message:
            pass
        if "error" in message:
            raise Failure(f"The server refused: {message['error']['message']}")
        result: Json = message["result"]
        return result

    def notice(self, method: str) -> Json:
        """The next notification of this kind; what comes before it is passed over."""
        while (message := self.receive()).get("method") != method:
            pass
        params: Json = message.get("params", {})
        return params

    def request(self, method: str, params: Json | None = None) -> Json:
        return self.result(self.send(method, params))

    def close(self) -> int:
        """Leave as a client does, by closing the pipe; the server's exit status."""
        assert self._server.stdin is not None
        self._server.stdin.close()
        return self._server.wait(timeout=PATIENCE_SECS)

    def abandon(self) -> None:
        """After a failure: no server stays behind."""
        self._server.terminate()
        self._server.wait(timeout=PATIENCE_SECS)


def server_environment() -> dict[str, str]:
    """Without what the user has set for servers of their own, which might forbid what is shown."""
    own = ("MCPGREEN_", "MCPBASH_", "MCP_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    level = os.environ.get("MCPGREEN_STDERR_LEVEL", "error")
    return {**environment, "MCPGREEN_STDERR_LEVEL": level, "MCPGREEN_PYTHON": sys.executable}
