"""Lines to a server and back, as a client has them. Knows nothing of examples.

Rule: every wait has a bound. A server that does not answer is an error that says so, not a terminal that hangs.
"""

from __future__ import annotations

import contextlib
import json
import queue
import threading
from typing import IO, Any, Protocol

PATIENCE_SECS = 15.0
# The client that we play can be asked, and shows pages, so that every example can be seen.
HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {
        "elicitation": {"form": {}, "url": {}},
        "sampling": {},
        "extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}},
    },
    "clientInfo": {"name": "examples", "version": "1.0.0"},
}


class Silence(Exception):
    """The server said nothing, or has gone."""


class Server(Protocol):
    """As much of a process as is needed here."""

    @property
    def stdin(self) -> IO[bytes] | None: ...

    @property
    def stdout(self) -> IO[bytes] | None: ...


class Wire:
    """One connection. Lines that come are kept until somebody asks for them."""

    def __init__(self, server: Server) -> None:
        assert server.stdin is not None and server.stdout is not None
        self._stdin, self._stdout = server.stdin, server.stdout
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def send(self, line: str) -> None:
        try:
            self._stdin.write(line.encode() + b"\n")
            self._stdin.flush()
        except BrokenPipeError:
            raise Silence("the server has gone") from None

    def next_line(self) -> str | None:
        """What the server says next; None when it has ended. Raises Silence."""
        try:
            line = self._lines.get(timeout=PATIENCE_SECS)
        except queue.Empty:
            raise Silence(f"the server said nothing for {PATIENCE_SECS:.0f} s") from None
        if line is None:
            self._lines.put(None)  # for whoever asks again
        return line

    def handshake(self) -> None:
        """What every conversation begins with; nobody is shown it. Raises Silence."""
        self.send(json.dumps({"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": HELLO}))
        if self.next_line() is None:
            raise Silence("the server ended before it answered")
        self.send(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}))

    def close(self) -> None:
        """Nothing more will be sent: the server answers what it has, and ends."""
        with contextlib.suppress(BrokenPipeError):
            self._stdin.close()

    def _read(self) -> None:
        for line in self._stdout:
            self._lines.put(line.decode("utf-8", "replace").rstrip("\n"))
        self._lines.put(None)


def values_named(name: str, value: Any) -> list[str]:
    """All texts under this name, however deep."""
    if isinstance(value, list):
        return [text for each in value for text in values_named(name, each)]
    if not isinstance(value, dict):
        return []
    here = [value[name]] if isinstance(value.get(name), str) else []
    return here + [text for each in value.values() for text in values_named(name, each)]
