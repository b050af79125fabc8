"""Calls in formats that other programs read: HAR, which browsers show as a waterfall, and OpenTelemetry's JSON.

The ids of spans are made from server and call, so that the same file always gives the same spans. The calls of one
interaction, such as a question and the retry that answers it, are one trace.
"""

from __future__ import annotations

from datetime import datetime, timezone
from urllib.parse import quote

from mcpgreen import __version__
from mcpgreen.cli.watching.calls import Call, Calls
from mcpgreen.events.conventions import attributes, span_name
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

CREATOR = {"name": "mcpgreen", "version": __version__}
SERVER_KIND = 2  # of a span
ERROR_STATUS = 2
NS = 1_000_000_000
OF_PROCESS = {"process.pid": "pid", "process.exit.code": "exit", "mcpgreen.memory.peak_kb": "peak_kb"}
OF_PROCESS |= {"mcpgreen.cpu.user_ms": "user_ms", "mcpgreen.cpu.system_ms": "system_ms"}


def har(calls: Calls) -> Json:
    """Return the calls as an HTTP archive (HAR 1.2): each as a POST to mcp://SERVER/METHOD/NAME."""
    return {"log": {"version": "1.2", "creator": CREATOR, "entries": list(map(_entry, calls.chosen()))}}


def _entry(call: Call) -> Json:
    frames = {event["way"]: event for event in call.events if event["kind"] == "frame"}
    sent, answer = ({"frame": "", "bytes": -1, **frames.get(way, {})} for way in ("in", "out"))
    base: Json = {"httpVersion": "MCP", "cookies": [], "headers": [], "headersSize": -1}
    url = "mcp://" + "/".join(map(quote, (str(call.server.get("name")), call.text("method"), call.text("name"))))
    posted, content = ({"mimeType": "application/json", "text": each["frame"]} for each in (sent, answer))
    request = {"method": "POST", "url": url, "queryString": [], "postData": posted, "bodySize": sent["bytes"]}
    status = 500 if call.is_failure else 0 if call.ended_at is None else 200
    response = {"status": status, "statusText": call.status, "redirectURL": "", "bodySize": answer["bytes"]}
    response["content"] = {**content, "size": max(0, answer["bytes"])}
    return {
        "startedDateTime": datetime.fromtimestamp(call.at, timezone.utc).isoformat(timespec="milliseconds"),
        "time": call.took_ms,
        "timings": {**dict(zip(("blocked", "wait", "receive"), call.parts_ms, strict=True)), "send": 0},
        "request": {**base, **request},
        "response": {**base, **response},
        "cache": {},
        "comment": call.text("reason"),
        "_call": call.number,
        "_process": {field: call.about[field] for field in OF_PROCESS.values() if field in call.about},
    }


def otlp(calls: Calls) -> Json:
    """Return the calls as a request of OTLP/JSON, with a span for each call that has ended."""
    resources = []
    for pid, server in calls.servers.items():
        ended = [call for call in calls.chosen() if call.server is server and call.ended_at is not None]
        about = {"process.pid": pid} | {f"service.{field}": server.get(field, "") for field in ("name", "version")}
        spans = [{"scope": CREATOR, "spans": list(map(_span, ended))}]
        resources.append({"resource": {"attributes": _written(about)}, "scopeSpans": spans})
    return {"resourceSpans": resources}


def _span(call: Call) -> Json:
    server = [call.server.get("pid"), call.server.get("started_at")]
    about = attributes(call.about, {**call.server, **call.opened}, id=call.about.get("id"))
    about |= {name: call.about[field] for name, field in OF_PROCESS.items() if field in call.about}
    failure = {"status": {"code": ERROR_STATUS, "message": call.text("reason")}} if call.is_failure else {}
    return {
        "traceId": jsontext.digest([*server, "interaction", call.about.get("interaction", call.number)])[:32],
        "spanId": jsontext.digest([*server, call.number])[:16],
        "name": span_name(call.text("method"), call.text("name")),
        "kind": SERVER_KIND,
        "startTimeUnixNano": str(int(call.at * NS)),
        "endTimeUnixNano": str(int((call.at + call.took_ms / 1000) * NS)),
        "attributes": _written(about),
        **failure,
    }


def _written(attributes: Json) -> list[Json]:
    """Return attributes as this format has them: whole numbers, which may have 64 bits, as texts."""
    kinds = {int: "intValue", float: "doubleValue"}
    return [
        {"key": key, "value": {kinds.get(type(value), "stringValue"): value if type(value) is float else str(value)}}
        for key, value in attributes.items()
    ]
