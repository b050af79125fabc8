"""Calls in formats that other programs read: HAR, which browsers show as a waterfall, and OpenTelemetry's JSON.

Spans follow the semantic conventions for MCP. Their ids are made from server and call, so that the same file always
gives the same spans.
"""

from __future__ import annotations

import time
from typing import Any

from mcpgreen import __version__
from mcpgreen.cli.watching.board import Board, CallRow
from mcpgreen.events.conventions import attributes, span_name
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
        "name": span_name(row.method, row.name),
        "kind": SERVER_KIND,
        "startTimeUnixNano": str(int(row.at * 1e9)),
        "endTimeUnixNano": str(int((row.at + row.total_ms / 1000) * 1e9)),
        **_attributes(_about(row)),
    }
    if row.is_failure:
        span["status"] = {"code": ERROR_STATUS, "message": row.reason}
    return span


def _about(row: CallRow) -> Json:
    """Return the attributes of a call's span: those of the conventions, and a few of ours."""
    transport = str(row.server.get("transport"))
    of_process = {"process.pid": "pid", "process.exit.code": "exit", "mcpgreen.cpu.user_ms": "user_ms"}
    of_process |= {"mcpgreen.cpu.system_ms": "system_ms", "mcpgreen.memory.peak_kb": "peak_kb"}
    return {
        **attributes(row.method, row.name, outcome=row.status, id=row.id, transport=transport),
        "mcpgreen.client": row.client or None,
        "mcpgreen.task": row.task or None,
        **{f"mcpgreen.{part}_ms": ms for part, ms in zip(("queue", "run", "write"), row.parts_ms, strict=True)},
        **{name: row.process.get(field) for name, field in of_process.items()},
    }


def _attributes(values: Json) -> Json:
    return {"attributes": [{"key": key, "value": _value(each)} for key, each in values.items() if each is not None]}


def _value(value: Any) -> Json:
    if isinstance(value, int):
        return {"intValue": str(value)}
    return {"doubleValue": value} if isinstance(value, float) else {"stringValue": str(value)}
