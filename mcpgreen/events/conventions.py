"""How OpenTelemetry's conventions for MCP describe a call: the name of its span and its attributes.

Rule: spans of a running server and of a trace that was kept are both described here, from the event `ended`.
"""

from __future__ import annotations

from mcpgreen.text.json_types import Json

TRANSPORTS = {"stdio": "pipe", "keeper": "pipe", "http": "tcp"}
FAILURES = ("failed", "refused", "timed out")
PARTS = ("queue_ms", "run_ms", "write_ms")


def span_name(method: str, name: str | None) -> str:
    return f"{method} {name or ''}".strip()


def attributes(ended: Json, opened: Json, *, id: object) -> Json:
    """Return the attributes of a call that have a value; `opened` tells of its client. A tool that fails answers with
    a result; anything else that fails, with an error."""
    method, name, outcome = ended["method"], ended.get("name"), ended["outcome"]
    is_tool = method == "tools/call"
    failure = "tool_error" if is_tool and outcome != "refused" else "error"
    known = {
        "mcp.method.name": method,
        "mcp.protocol.version": opened.get("revision"),
        "gen_ai.tool.name": name if is_tool else None,
        "gen_ai.operation.name": "execute_tool" if is_tool else None,
        "gen_ai.prompt.name": name if method == "prompts/get" else None,
        "mcp.resource.uri": name if method.startswith("resources/") else None,
        "jsonrpc.request.id": None if id is None else str(id),
        "network.transport": TRANSPORTS.get(str(opened.get("transport"))),
        "error.type": failure if outcome in FAILURES else None,
        "mcpgreen.outcome": outcome,
        **{f"mcpgreen.{part}": ended.get(part) for part in PARTS},
    }
    return {key: value for key, value in known.items() if value not in (None, "")}
