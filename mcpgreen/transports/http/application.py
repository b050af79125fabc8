"""The WSGI application: what is where, and who may go there.

Whatever a request ends with becomes a response here; nothing raises out of it but a client that is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from mcpgreen import journal
from mcpgreen.engine.server import Server
from mcpgreen.errors import InternalError, InvalidRequest
from mcpgreen.text import jsontext
from mcpgreen.transports.http import responses
from mcpgreen.transports.http.door import Door
from mcpgreen.transports.http.draining import Draining
from mcpgreen.transports.http.endpoint import Endpoint
from mcpgreen.transports.http.eras.handshake import SESSION
from mcpgreen.transports.http.incoming import Reader
from mcpgreen.transports.http.parts import Parts
from mcpgreen.transports.http.responses import Headers, Refusal, Response
from mcpgreen.transports.http.wire.bodies import BadBody

if TYPE_CHECKING:
    from mcpgreen.links.principal import Principal
    from mcpgreen.transports.http.metrics import Metrics
    from mcpgreen.transports.http.oauth.resource_server import ResourceServer

ENDPOINT = "/mcp"
HEALTH = "/healthz"
METRICS = "/metrics"

Variables = dict[str, Any]
Serve = Callable[[Variables], Response]
ServeCaller = Callable[[Variables, "Principal | None"], Response]


class Application:
    """One server's."""

    def __init__(self, parts: Parts, door: Door, reader: Reader, draining: Draining, metrics: Metrics | None) -> None:
        self._door = door
        self._draining = draining
        self._endpoint = Endpoint(parts, reader)
        self._metrics = metrics
        self._routes: dict[str, Serve] = {
            ENDPOINT: partial(self._admitted, self._endpoint.serve),
            HEALTH: self._health,
            METRICS: self._measures,
        }
        if parts.oauth is not None:
            from mcpgreen.transports.http.oauth.resource_server import metadata_paths

            self._routes |= dict.fromkeys(
                metadata_paths(parts.oauth.resource_url), partial(self._metadata, parts.oauth, parts.server)
            )
        if parts.settings.http_legacy_sse:
            from mcpgreen.transports.http.eras import legacy_sse

            legacy = legacy_sse.LegacySse(parts, reader)
            self._routes[legacy_sse.STREAM] = partial(self._admitted, legacy.open)
            self._routes[legacy_sse.MESSAGES] = partial(self._admitted, legacy.take)

    def __call__(self, variables: Variables, start_response: Callable[[str, Headers], object]) -> Iterable[bytes]:
        try:
            response = self._response(variables)
        except Refusal as refusal:
            response = refusal.response()
        except (OSError, BadBody):
            raise
        except Exception:
            journal.exception("an HTTP request failed unexpectedly")
            response = Refusal("500 Internal Server Error", InternalError()).response()
        headers = response.headers
        if "HTTP_ORIGIN" in variables and response.status[:3] != "403":
            headers = [*headers, *self._door.cors_headers(variables)]
        start_response(response.status, headers)
        if self._metrics is not None:
            self._metrics.count(variables["PATH_INFO"], response.status)
        return response.body

    def _response(self, variables: Variables) -> Response:
        serve = self._routes.get(variables["PATH_INFO"])
        if serve is None:
            self._door.require_good_names(variables)
            raise Refusal("404 Not Found", InvalidRequest(f"There is nothing here; MCP is served at {ENDPOINT}."))
        if variables["REQUEST_METHOD"] == "OPTIONS":
            return self._door.preflight(variables)
        return serve(variables)

    def _admitted(self, serve: ServeCaller, variables: Variables) -> Response:
        principal = self._door.admit(variables)
        has_session = bool(variables.get(SESSION)) or variables["PATH_INFO"] != ENDPOINT
        last_event = variables.get("HTTP_LAST_EVENT_ID", "")
        self._draining.require_known(variables["REQUEST_METHOD"], has_session=has_session, last_event=last_event)
        return serve(variables, principal)

    def _health(self, variables: Variables) -> Response:
        """For whoever watches over the server: it needs no token."""
        self._door.require_good_names(variables)
        _require_reading(variables)
        if self._draining.has_begun:
            return responses.text("503 Service Unavailable", "draining\n")
        return responses.text("200 OK", "serving\n")

    def _metadata(self, oauth: ResourceServer, server: Server, variables: Variables) -> Response:
        """Where clients get tokens: whoever has none yet has to be able to read it."""
        self._door.require_good_names(variables)
        tools, prompts = (server.services.snapshot(kind).items for kind in ("tools", "prompts"))
        needed = [*(tool.description.scopes for tool in tools), *(prompt.scopes for prompt in prompts)]
        scopes = sorted({scope for some in needed for scope in some})
        return Response("200 OK", [responses.JSON], [jsontext.dumps(oauth.metadata(scopes=scopes))])

    def _measures(self, variables: Variables) -> Response:
        self._door.admit(variables)
        _require_reading(variables)
        if self._metrics is None:
            reason = "Metrics need the extra metrics; docs/install.md#extras says how to add it."
            raise Refusal("404 Not Found", InvalidRequest(reason))
        return self._metrics.response()


def _require_reading(variables: Variables) -> None:
    """Raises Refusal for a method that would change something, where there is nothing to change."""
    if variables["REQUEST_METHOD"] not in ("GET", "HEAD"):
        allowed = [("Allow", "GET, HEAD, OPTIONS")]
        raise Refusal("405 Method Not Allowed", InvalidRequest("This can only be read."), headers=allowed)
