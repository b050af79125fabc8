"""The requests of both eras as bytes, with the headers that real clients send.

Pure. A request has an id of ten digits, because the load generator puts another number of ten digits in its place.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

SESSION = "session"
STATELESS = "stateless"
ERAS = (SESSION, STATELESS)

HANDSHAKE_REVISION = "2025-11-25"
STATELESS_REVISION = "2026-07-28"
PREFIX = "io.modelcontextprotocol/"
CLIENT = {"name": "bench", "version": "1"}
ENVELOPE = {
    PREFIX + "protocolVersion": STATELESS_REVISION,
    PREFIX + "clientInfo": CLIENT,
    PREFIX + "clientCapabilities": {},
}
FIRST_ID = 1_000_000_000
NOTHING: Mapping[str, Any] = {}


@dataclass(frozen=True)
class Request:
    """Headers and body of one POST."""

    headers: Mapping[str, str]
    body: bytes

    def on_wire(self, port: int) -> bytes:
        """As the load generator takes it: with a zero byte behind it."""
        lines = [
            "POST /mcp HTTP/1.1",
            f"Host: 127.0.0.1:{port}",
            *(f"{name}: {value}" for name, value in self.headers.items()),
            f"Content-Length: {len(self.body)}",
        ]
        return "\r\n".join([*lines, "", ""]).encode("ascii") + self.body + b"\0"


def initialize() -> Request:
    params = {"protocolVersion": HANDSHAKE_REVISION, "capabilities": {}, "clientInfo": CLIENT}
    return Request(common_headers(), message("initialize", params))


def initialized(session_id: str) -> Request:
    body = encoded({"jsonrpc": "2.0", "method": "notifications/initialized"})
    return Request(session_headers(session_id), body)


def in_session(session_id: str, method: str, params: Mapping[str, Any] = NOTHING) -> Request:
    return Request(session_headers(session_id), message(method, params))


def stateless(method: str, params: Mapping[str, Any] = NOTHING) -> Request:
    headers = {**common_headers(), "MCP-Protocol-Version": STATELESS_REVISION, "Mcp-Method": method}
    if method == "tools/call":
        headers["Mcp-Name"] = params["name"]
    return Request(headers, message(method, {**params, "_meta": ENVELOPE}))


def common_headers() -> dict[str, str]:
    return {
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
        "User-Agent": "bench/1",
    }


def session_headers(session_id: str) -> dict[str, str]:
    return {**common_headers(), "MCP-Protocol-Version": HANDSHAKE_REVISION, "Mcp-Session-Id": session_id}


def message(method: str, params: Mapping[str, Any]) -> bytes:
    return encoded({"jsonrpc": "2.0", "id": FIRST_ID, "method": method, "params": params})


def encoded(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode("ascii")
