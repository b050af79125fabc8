"""Calls in formats that other programs read: HAR, which browsers show as a waterfall, and OpenTelemetry's JSON.

The ids of spans are made from server and call, so that the same file always gives the same spans. The calls of one
interaction, such as a question and the retry that answers it, are one trace.
"""

from __future__ import annotations

from datetime import datetime, timezone

from mcpgreen import __version__
from mcpgreen.cli.watching.calls import Call, Calls
from mcpgreen.events.conventions import attributes, span_name
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

SERVER_KIND = 2  # of a span
ERROR_STATUS = 2
NS = 1_000_000_000
OF_PROCESS = {
    "process.pid": "pid",
    "process.exit.code": "exit",
    "mcpgreen.cpu.user_ms": "user_ms",
    "mcpgreen.cpu.system_ms": "system_ms",
    "mcpgreen.memory.peak_kb": "peak_kb",
}


def har(calls: Calls) -> Json:
    """Return the calls as an HTTP archive (HAR 1.2): each as a POST to mcp://SERVER/METHOD."""
    creator = {"name": "mcpgreen", "version": __version__}
    return {"log": {"version": "1.2", "creator": creator, "entries": list(map(_entry, calls.chosen()))}}


def _entry(call: Call) -> Json:
    blocked, wait, receive = call.parts_ms
    frames = {event["way"]: event for event in call.events if event["kind"] == "frame"}
    sent, answer = ({"frame": "", "bytes": -1, **frames.get(way, {})} for way in ("in", "out"))
    base: Json = {"httpVersion": "MCP", "cookies": [], "headers": [], "headersSize": -1}
    request = {
        "method": "POST",
        "url": f"mcp://{call.server.get('name', 'server')}/{call.text('method')}?name={call.text('name')}",
        "queryString": [{"name": "name", "value": call.text("name")}],
        "postData": {"mimeType": "application/json", "text": sent["frame"]},
        "bodySize": sent["bytes"],
    }
    content = {"size": max(0, answer["bytes"]), "mimeType": "application/json", "text": answer["frame"]}
    response = {
        "status": 500 if call.is_failure else 0 if call.ended_at is None else 200,
        "statusText": call.status,
        "redirectURL": "",
        "content": content,
        "bodySize": answer["bytes"],
    }
    return {
        "startedDateTime": datetime.fromtimestamp(call.at, timezone.utc).isoformat(timespec="milliseconds"),
        "time": call.took_ms,
        "request": {**base, **request},
        "response": {**base, **response},
        "cache": {},
        "timings": {"blocked": blocked, "send": 0, "wait": wait, "receive": receive},
        "comment": call.text("reason"),
        "_call": call.number,
        "_client": call.client,
        "_process": {name: call.about[name] for name in (*OF_PROCESS.values(), "argv", "way") if name in call.about},
    }


def otlp(calls: Calls) -> Json:
    """Return the calls as a request of OTLP/JSON, with a span for each call that has ended."""
    spans: dict[int, list[Json]] = {pid: [] for pid in calls.servers}
    for call in calls.chosen(lambda call: call.ended_at is not None):
        spans[call.server["pid"]].append(_span(call))
    scope = {"name": "mcpgreen", "version": __version__}
    resources = []
    for pid, server in calls.servers.items():
        about = {"service.name": server["name"], "service.version": server["version"], "process.pid": pid}
        scope_spans = [{"scope": scope, "spans": spans[pid]}]
        resources.append({"resource": {"attributes": _written(about)}, "scopeSpans": scope_spans})
    return {"resourceSpans": resources}


def _span(call: Call) -> Json:
    server = [call.server["pid"], call.server["started_at"]]
    about = attributes(call.about, {**call.server, **call.opened}, id=call.about.get("id"))
    ours = {"mcpgreen.client": call.client or None, "mcpgreen.task": call.about.get("task")}
    ours |= {name: call.about.get(field) for name, field in OF_PROCESS.items()}
    span = {
        "traceId": jsontext.digest([*server, "interaction", call.about.get("interaction") or call.number])[:32],
        "spanId": jsontext.digest([*server, call.number])[:16],
        "name": span_name(call.text("method"), call.text("name")),
        "kind": SERVER_KIND,
        "startTimeUnixNano": str(int(call.at * NS)),
        "endTimeUnixNano": str(int(call.at * NS + call.took_ms * 1_000_000)),
        "attributes": _written({**about, **ours}),
    }
    if "error.type" in about:
        span["status"] = {"code": ERROR_STATUS, "message": call.text("reason")}
    return span


def _written(attributes: Json) -> list[Json]:
    kinds = {int: "intValue", float: "doubleValue"}  # 64-bit numbers are texts in this format
    return [
        {"key": key, "value": {kinds.get(type(value), "stringValue"): value if type(value) is float else str(value)}}
        for key, value in attributes.items()
        if value is not None
    ]
