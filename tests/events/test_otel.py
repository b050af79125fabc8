"""Calls as spans of OpenTelemetry."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.client import Speak
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually
from tests.support.wire import text_of

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
SECRET = "hunter2-very-secret"


class Collector(http.server.ThreadingHTTPServer):
    """Takes what the server exports, and keeps the spans by name."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.bodies: list[tuple[str, bytes]] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def spans(self) -> dict[str, Any]:
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

        found = {}
        for path, body in list(self.bodies):
            if path == "/v1/traces":
                for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                    found |= {span.name: span for scope in resource.scope_spans for span in scope.spans}
        return found


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        assert isinstance(self.server, Collector)
        self.server.bodies.append((self.path, body))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def collector() -> Iterator[Collector]:
    collector = Collector()
    yield collector
    collector.shutdown()
    collector.server_close()


def test_a_call_is_a_span_below_the_clients_and_above_the_scripts(
    project: ProjectBuilder, speak: Speak, collector: Collector
) -> None:
    project.tool("context", 'echo "$TRACEPARENT"')
    project.tool("fails", 'echo "password=$1 oops" >&2; exit 1')
    env = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{collector.server_port}", "OTEL_BSP_SCHEDULE_DELAY": "50"}
    client = speak("2025-11-25", otel=True, env=env)

    def context() -> str:
        meta = {"traceparent": PARENT}
        return text_of(client.call_tool("context", {"token": SECRET}, meta=meta)).strip()

    eventually(lambda: context() != PARENT)  # once the SDK is loaded
    of_script = context()
    client.call_tool("fails")
    eventually(lambda: {"tools/call context", "tools/call fails"} <= collector.spans().keys())
    client.wire.stop()

    span, failed = (collector.spans()[f"tools/call {name}"] for name in ("context", "fails"))
    assert span.trace_id.hex() == PARENT.split("-")[1] == of_script.split("-")[1]
    assert span.parent_span_id.hex() == PARENT.split("-")[2]
    assert span.kind == 2
    about = {each.key: each.value.string_value for each in span.attributes}
    assert (
        about.items()
        >= {
            "mcp.method.name": "tools/call",
            "gen_ai.tool.name": "context",
            "gen_ai.operation.name": "execute_tool",
            "network.transport": "pipe",
            "mcp.protocol.version": "2025-11-25",
        }.items()
    )
    assert {each.key: each.value.string_value for each in failed.attributes}["error.type"] == "tool_error"
    assert failed.status.code == 2
    assert any(path == "/v1/metrics" for path, _ in collector.bodies)
    assert not any(SECRET.encode() in body for _, body in collector.bodies)
