"""Calls in formats that other programs read: HAR, which browsers show as a waterfall, and OpenTelemetry's JSON.

Spans follow the semantic conventions for MCP. Their ids are made from server and call, so that the same file always
gives the same spans.
"""

from __future__ import annotations

import time
from typing import Any

from mcpgreen import __version__
from mcpgreen.cli.watching.board import Board, CallRow
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

SERVER_KIND = 2  # of a span
ERROR_STATUS = 2


def har(board: Board) -> Json:
    """Return the calls as an HTTP archive (HAR 1.2): each as a POST to mcp://SERVER/METHOD."""
    creator = {"name": "mcpgreen", "version": __version__}
    return {"log": {"version": "1.2", "creator": creator, "entries": [_entry(row) for row in board.rows.values()]}}


def _entry(row: CallRow) -> Json:
    queue, run, write = row.parts_ms
    frames = {str(each.get("way")): each for each in row.events if each["kind"] == "frame"}
    sent, answer = (str(frames.get(way, {}).get("frame", "")) for way in ("in", "out"))
    sizes = [int(frames.get(way, {}).get("bytes", -1)) for way in ("in", "out")]
    base: Json = {"httpVersion": "MCP", "cookies": [], "headers": [], "headersSize": -1}
    return {
        "startedDateTime": _iso(row.at),
        "time": row.total_ms,
        "request": {
            **base,
            "method": "POST",
            "url": f"mcp://{row.server.get('name', 'server')}/{row.method}?name={row.name}",
            "queryString": [{"name": "name", "value": row.name}],
            "postData": {"mimeType": "application/json", "text": sent},
            "bodySize": sizes[0],
        },
        "response": {
            **base,
            "status": 500 if row.is_failure else 200 if row.ended_at is not None else 0,
            "statusText": row.status,
            "redirectURL": "",
            "content": {"size": max(0, sizes[1]), "mimeType": "application/json", "text": answer},
            "bodySize": sizes[1],
        },
        "cache": {},
        "timings": {"blocked": queue, "send": 0, "wait": run, "receive": write},
        "comment": row.reason,
        "_call": row.number,
        "_client": row.client,
        "_process": row.process,
    }


def _iso(at: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at)) + f".{int(at % 1 * 1000):03d}Z"


def otlp(board: Board) -> Json:
    """Return the calls as a request of OTLP/JSON, with a span for each call that has ended."""
    resources = []
    for pid, server in board.servers.items():
        spans = [_span(pid, row) for (of, _), row in board.rows.items() if of == pid and row.ended_at is not None]
        about = {"service.name": server.get("name"), "service.version": server.get("version"), "process.pid": pid}
        scope = {"name": "mcpgreen", "version": __version__}
        resources.append({"resource": _attributes(about), "scopeSpans": [{"scope": scope, "spans": spans}]})
    return {"resourceSpans": resources}


def _span(pid: int, row: CallRow) -> Json:
    digest = jsontext.digest([pid, row.server.get("started_at"), row.number])
    of_interaction = jsontext.digest([pid, row.server.get("started_at"), "interaction", row.interaction])
    span = {
        "traceId": of_interaction[:32],
        "spanId": digest[:16],
        "name": f"{row.method} {row.name}".strip(),
        "kind": SERVER_KIND,
        "startTimeUnixNano": str(int(row.at * 1e9)),
        "endTimeUnixNano": str(int((row.at + row.total_ms / 1000) * 1e9)),
        **_attributes(attributes_of(row)),
    }
    if row.is_failure:
        span["status"] = {"code": ERROR_STATUS, "message": row.reason}
    return span


def attributes_of(row: CallRow) -> Json:
    """Return the attributes of a call's span, as the conventions name them, and a few of ours."""
    is_tool = row.method == "tools/call"
    process = row.process
    return {
        "mcp.method.name": row.method,
        "gen_ai.tool.name": row.name if is_tool else None,
        "gen_ai.operation.name": "execute_tool" if is_tool else None,
        "gen_ai.prompt.name": row.name if row.method == "prompts/get" else None,
        "mcp.resource.uri": row.name if row.method.startswith("resources/") else None,
        "jsonrpc.request.id": None if row.id is None else str(row.id),
        "network.transport": {"stdio": "pipe", "http": "tcp"}.get(str(row.server.get("transport"))),
        "error.type": "tool_error" if row.is_failure and is_tool else "error" if row.is_failure else None,
        "mcpgreen.client": row.client or None,
        "mcpgreen.outcome": row.status,
        "mcpgreen.task": row.task or None,
        "mcpgreen.queue_ms": row.queue_ms,
        "mcpgreen.run_ms": row.run_ms,
        "mcpgreen.write_ms": row.write_ms,
        "process.pid": process.get("pid"),
        "process.exit.code": process.get("exit"),
        "process.cpu.user_ms": process.get("user_ms"),
        "process.cpu.system_ms": process.get("system_ms"),
        "process.memory.peak_kb": process.get("peak_kb"),
    }


def _attributes(values: Json) -> Json:
    return {"attributes": [{"key": key, "value": _value(each)} for key, each in values.items() if each is not None]}


def _value(value: Any) -> Json:
    if isinstance(value, int):
        return {"intValue": str(value)}
    return {"doubleValue": value} if isinstance(value, float) else {"stringValue": str(value)}
