"""The application behind all connections: which handler serves a path, and who may use it.

Every failure of a request becomes a response here. Only a client that is gone, and a body that cannot be read, raise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from mcpgreen import journal
from mcpgreen.errors import InternalError
from mcpgreen.protocol import revisions
from mcpgreen.protocol.admission import is_stateless
from mcpgreen.text import jsontext
from mcpgreen.transports.http import handshake, stateless
from mcpgreen.transports.http.door import Door
from mcpgreen.transports.http.exchange import JSON_TYPE, Accepts, Parts, Post, Reader, require_place
from mcpgreen.transports.http.responses import JSON, NOT_ACCEPTABLE, NOT_FOUND, NOT_STORED, Refusal, not_allowed
from mcpgreen.transports.http.streams.events import CONTENT_TYPE
from mcpgreen.transports.http.wire.connection import TEXT, Request, Response
from mcpgreen.transports.http.wire.heads import BadRequest

if TYPE_CHECKING:
    from mcpgreen.engine.call_log import Mentions
    from mcpgreen.features.services import Services
    from mcpgreen.transports.http.oauth.resource_server import ResourceServer

ENDPOINT = "/mcp"
HEALTH = "/healthz"
METRICS = "/metrics"
TOLD = ("401", "403", "404", "429")  # refusals that the operator should know of
MAX_TOLD_CHARS = 200
MAX_RANGES = 64  # of types that a client accepts; the ones beyond are ignored
REFUSED = frozenset({"q=0", "q=0.0", "q=0.00", "q=0.000"})  # the parameter of a type that a client does not accept

Serve = Callable[[Request], Response]
KNOWN_PATHS = (ENDPOINT, HEALTH, METRICS, handshake.LEGACY_STREAM, handshake.LEGACY_MESSAGES)


class Application:
    def __init__(self, parts: Parts, door: Door, reader: Reader, connections: Callable[[], int]) -> None:
        self._parts = parts
        self._handshake = handshake.HandshakeEra(parts)
        self._door = door
        self._reader = reader
        self._mentions: Mentions | None = None
        self._metrics: Metrics | None = None
        with suppress(ImportError):
            self._metrics = Metrics(parts, connections)
        self._routes: dict[str, Serve] = {
            ENDPOINT: partial(self._admit, self._endpoint),
            HEALTH: self._health,
            METRICS: self._measures,
        }
        if parts.oauth is not None:
            from mcpgreen.transports.http.oauth.resource_server import metadata_paths

            paths = metadata_paths(parts.oauth.resource_url)
            self._routes |= dict.fromkeys(paths, partial(self._metadata, parts.oauth))
        if parts.server.services.settings.http_legacy_sse:
            legacy = handshake.LegacySse(parts, reader)
            self._routes[handshake.LEGACY_STREAM] = partial(self._admit, legacy.open)
            self._routes[handshake.LEGACY_MESSAGES] = partial(self._admit, legacy.take)

    def __call__(self, request: Request) -> Response:
        try:
            response = self._response(request)
        except Refusal as refusal:
            if refusal.status[:3] in TOLD:
                self._tell(request, refusal)
            response = refusal.response()
        except (OSError, BadRequest):
            raise
        except Exception:
            journal.exception("an HTTP request failed unexpectedly")
            response = Refusal("500 Internal Server Error", InternalError()).response()
        origin = request.fields.get("origin")
        if origin is not None and response.status[:3] != "403":
            response = response._replace(headers=[*response.headers, *self._door.cors_headers(origin)])
        if self._metrics is not None:
            self._metrics.count(request.path, response.status)
        return response

    def _tell(self, request: Request, refusal: Refusal) -> None:
        if self._mentions is None:
            from mcpgreen.engine.call_log import Mentions

            self._mentions = Mentions()
        if self._mentions.count(refusal.status):
            target = journal.cut(f"{request.method} {request.path}", MAX_TOLD_CHARS)
            target, place, reason = map(journal.in_one_line, (target, request.connection.place, str(refusal)))
            fields = {"request": target, "client": place, "outcome": "refused", "status": int(refusal.status[:3])}
            end, fields = f": {refusal.status}: {reason}", {**fields, "reason": reason}
            journal.record("warning", f"{target} from {place} refused", end, fields)

    def _response(self, request: Request) -> Response:
        serve = self._routes.get(request.path)
        if serve is None:
            self._door.require_good_names(request.fields)
            raise Refusal(NOT_FOUND, f"There is nothing here; MCP is served at {ENDPOINT}.")
        if request.method == "OPTIONS":
            return self._door.preflight(request.fields)
        return serve(request)

    def _admit(self, serve: Serve, request: Request) -> Response:
        """Serve a caller that may come in, within its share of the connections. Raises Refusal."""
        principal = request.principal = self._door.admit(request.fields)
        is_named = principal is not None and not principal.is_shared
        request.owner = principal.name if principal is not None and is_named else request.connection.place
        if request.method != "POST":  # a POST gets its place when its body is there: until then it can make way
            require_place(request)
        has_session = bool(request.fields.get(handshake.SESSION)) or request.path != ENDPOINT
        last_event = request.fields.get(handshake.LAST_EVENT, "")
        self._reader.require_known(request.method, has_session=has_session, last_event=last_event)
        return serve(request)

    def _endpoint(self, request: Request) -> Response:
        """`/mcp`. Raises Refusal, and ClientGone."""
        method, fields = request.method, request.fields
        if method == "POST":
            return self._post(request)
        is_without_session = (
            not fields.get(handshake.SESSION) and fields.get(handshake.VERSION) in revisions.STATELESS_NAMES
        )
        if method not in ("GET", "DELETE") or is_without_session:
            raise not_allowed("POST", "This endpoint only accepts POST.")
        if method == "DELETE":
            return self._handshake.delete(request)
        return self._handshake.get(request, _accepted(request.fields.get("accept", "")))

    def _post(self, request: Request) -> Response:
        accepts = _accepted(request.fields.get("accept", ""))
        if not (accepts.json or accepts.events):
            raise Refusal(NOT_ACCEPTABLE, f"Accept must allow {JSON_TYPE} and {CONTENT_TYPE}.")
        message, weight_bytes = self._reader.read(request)
        post = Post(request, message, weight_bytes, accepts)
        if _is_of_stateless_client(message, request):
            return stateless.serve(self._parts, post)
        return self._handshake.post(post)

    def _health(self, request: Request) -> Response:
        """`/healthz`, for programs that watch over the server. It needs no token."""
        self._door.require_good_names(request.fields)
        _require_reading(request)
        is_draining = self._reader.is_draining
        status, word = ("503 Service Unavailable", b"draining\n") if is_draining else ("200 OK", b"serving\n")
        return Response(status, [TEXT, NOT_STORED], [word])

    def _metadata(self, oauth: ResourceServer, request: Request) -> Response:
        """Say where clients get tokens. It needs no token: a client that reads this has none yet."""
        self._door.require_good_names(request.fields)
        tools, prompts = (self._parts.server.services.snapshot(kind).items for kind in ("tools", "prompts"))
        needed = [*(tool.description.scopes for tool in tools), *(prompt.scopes for prompt in prompts)]
        scopes = sorted({scope for some in needed for scope in some})
        return Response("200 OK", [JSON], [jsontext.dumps(oauth.metadata(scopes=scopes))])

    def _measures(self, request: Request) -> Response:
        self._door.admit(request.fields)
        _require_reading(request)
        if self._metrics is None:
            raise Refusal(NOT_FOUND, "Metrics need the [metrics] extra; see docs/install.md#extras.")
        return self._metrics.response()


def _require_reading(request: Request) -> None:
    """Raises Refusal for a method that would change something."""
    if request.method not in ("GET", "HEAD"):
        raise not_allowed("GET, HEAD, OPTIONS", "This path is read-only.")


def _is_of_stateless_client(message: object, request: Request) -> bool:
    """Tell whether the header or the envelope says so. If only one of them does, `stateless` explains the mistake."""
    if request.fields.get(handshake.VERSION) in revisions.STATELESS_NAMES:
        return True
    if type(message) is not dict:
        return False
    method = message.get("method")
    return is_stateless(message.get("params")) or (
        not request.fields.get(handshake.SESSION)
        and type(method) is str
        and method in revisions.STATELESS_ONLY_REQUESTS
    )


@lru_cache(maxsize=64)  # most clients send the same in every request
def _accepted(sent: str) -> Accepts:
    """Return what the client accepts; everything, if it does not say."""
    taken = set()
    for text in (sent or "*/*").lower().split(",", MAX_RANGES):
        name, *parameters = map(str.strip, text.split(";"))
        if REFUSED.isdisjoint(parameters):
            taken.add(name)
    takes_any = "*/*" in taken
    return Accepts(
        json=takes_any or not taken.isdisjoint((JSON_TYPE, "application/*")),
        events=takes_any or not taken.isdisjoint((CONTENT_TYPE, "text/*")),
    )


class Metrics:
    """`/metrics`: counts and measures for Prometheus, written by its own client library, which is an extra."""

    def __init__(self, parts: Parts, connections: Callable[[], int]) -> None:
        """`connections` returns their number. Raises ImportError if the library is not installed."""
        import prometheus_client as library

        server, sessions = parts.server, parts.sessions
        self._library: Any = library
        self._registry = library.CollectorRegistry()
        self._requests = library.Counter(
            "mcpgreen_http_requests", "HTTP requests by path and status.", ["path", "status"], registry=self._registry
        )
        self._measured("mcpgreen_sessions", "Open sessions of handshake clients.", lambda: len(sessions))
        self._measured("mcpgreen_running_calls", "Calls that are running a script.", lambda: server.load.running)
        self._measured("mcpgreen_waiting_calls", "Calls that are waiting for a slot.", lambda: server.load.waiting)
        self._measured("mcpgreen_open_listens", "Open subscriptions/listen requests.", lambda: server.load.listens)
        self._measured("mcpgreen_http_connections", "Open HTTP connections.", connections)
        if server.services.settings.fleet_url:
            self._registry.register(FleetMeasures(library, server.services))
        library.ProcessCollector(registry=self._registry)

    def count(self, path: str, status: str) -> None:
        self._requests.labels(path if path in KNOWN_PATHS else "other", status[:3]).inc()

    def response(self) -> Response:
        headers = [("Content-Type", self._library.CONTENT_TYPE_LATEST), NOT_STORED]
        return Response("200 OK", headers, [self._library.generate_latest(self._registry)])

    def _measured(self, name: str, text: str, measure: Callable[[], int]) -> None:
        self._library.Gauge(name, text, registry=self._registry).set_function(measure)


class FleetMeasures:
    """What Prometheus learns of a fleet, read from its ledger each time."""

    FAMILIES = (
        ("waiting_calls", "Calls that wait for a worker.", "queues", "queue", "waiting"),
        ("oldest_call_seconds", "How long the oldest call has waited.", "queues", "queue", "oldestSecs"),
        ("fitting_workers", "Workers that may take calls from this queue.", "queues", "queue", "workers"),
        ("running_calls", "Calls that run.", "workers", "name", "running"),
    )

    def __init__(self, library: Any, services: Services) -> None:
        self._family = library.core.GaugeMetricFamily
        self._services = services

    def collect(self) -> Iterator[Any]:
        tasks = self._services.fleet
        state = tasks.attempt(tasks.ledger.state) or {"queues": (), "workers": (), "lost": 0}
        for name, text, entries, label, value in self.FAMILIES:
            family = self._family(f"mcpgreen_fleet_{name}", text, labels=[label])
            for each in state[entries]:
                family.add_metric([each[label]], each[value])
            yield family
        yield self._family("mcpgreen_fleet_lost", "Processes whose lease is over.", value=state["lost"])
