"""How OpenTelemetry's conventions for MCP name what is known of a call, and what the name of its span is."""

from __future__ import annotations

from mcpgreen.text.json_types import Json

TRANSPORTS = {"stdio": "pipe", "keeper": "pipe", "http": "tcp"}
FAILURES = ("failed", "refused", "timed out")


def span_name(method: str, name: str) -> str:
    return f"{method} {name}".strip()


def attributes(method: str, name: str, *, outcome: str, id: object, transport: str) -> Json:
    """Return the attributes of a call that have a value. A tool that fails answers with a result; anything else that
    fails, with an error."""
    is_tool = method == "tools/call"
    failure = "tool_error" if is_tool and outcome != "refused" else "error"
    known = {
        "mcp.method.name": method,
        "gen_ai.tool.name": name if is_tool else "",
        "gen_ai.operation.name": "execute_tool" if is_tool else "",
        "gen_ai.prompt.name": name if method == "prompts/get" else "",
        "mcp.resource.uri": name if method.startswith("resources/") else "",
        "jsonrpc.request.id": "" if id is None else str(id),
        "network.transport": TRANSPORTS.get(transport, ""),
        "error.type": failure if outcome in FAILURES else "",
        "mcpgreen.outcome": outcome,
    }
    return {key: value for key, value in known.items() if value}
