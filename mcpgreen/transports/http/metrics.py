"""`/metrics`: figures for Prometheus, written by its own client library, which is an extra."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mcpgreen.engine.server import Server
from mcpgreen.transports.http.responses import NOT_STORED
from mcpgreen.transports.http.sessions import HttpSessions
from mcpgreen.transports.http.wire.connection import Response

KNOWN_PATHS = ("/mcp", "/healthz", "/metrics", "/sse", "/messages")


def metrics_of(server: Server, sessions: HttpSessions, connections: Callable[[], int]) -> Metrics | None:
    """Return the metrics of this server; None if the library is not installed. `connections` returns their number."""
    try:
        import prometheus_client
    except ImportError:
        return None
    return Metrics(prometheus_client, server, sessions, connections)


class Metrics:
    """Counts and measures of one server."""

    def __init__(self, library: Any, server: Server, sessions: HttpSessions, connections: Callable[[], int]) -> None:
        self._library = library
        self._registry = library.CollectorRegistry()
        self._requests = library.Counter(
            "mcpgreen_http_requests", "HTTP requests by path and status.", ["path", "status"], registry=self._registry
        )
        self._measured("mcpgreen_sessions", "Open sessions of handshake clients.", lambda: len(sessions))
        self._measured("mcpgreen_running_calls", "Calls that run a script.", lambda: server.load.running)
        self._measured("mcpgreen_waiting_calls", "Calls that wait for a place.", lambda: server.load.waiting)
        self._measured("mcpgreen_open_listens", "Open subscriptions/listen requests.", lambda: server.load.listens)
        self._measured("mcpgreen_http_connections", "Open HTTP connections.", connections)
        library.ProcessCollector(registry=self._registry)

    def count(self, path: str, status: str) -> None:
        self._requests.labels(path if path in KNOWN_PATHS else "other", status[:3]).inc()

    def response(self) -> Response:
        headers = [("Content-Type", self._library.CONTENT_TYPE_LATEST), NOT_STORED]
        return Response("200 OK", headers, [self._library.generate_latest(self._registry)])

    def _measured(self, name: str, text: str, measure: Callable[[], int]) -> None:
        self._library.Gauge(name, text, registry=self._registry).set_function(measure)
