"""POSTs of stateless clients: each says who sends it, in its envelope and once more in its headers.

The ladder: headers first, then the envelope, then the method; a failure there is told by the status of the response,
too. What goes wrong later is told by the JSON alone, but for a capability or a scope that is missing. A client that
closes the connection cancels what it asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mcpgreen.errors import InternalError, InvalidParams, InvalidRequest, MethodNotFound, RpcError
from mcpgreen.protocol import messages
from mcpgreen.protocol.admission import Handshake, admit, incomplete_envelope, is_stateless
from mcpgreen.text.json_types import Json
from mcpgreen.transports.http.eras.exchange import Accepts, Exchange
from mcpgreen.transports.http.eras.header_checks import Path, marked_arguments, require_match
from mcpgreen.transports.http.eras.statuses import BAD, OF_STATELESS, OK, Statuses
from mcpgreen.transports.http.parts import Parts
from mcpgreen.transports.http.responses import Refusal, Response, accepted

if TYPE_CHECKING:
    from mcpgreen.links.principal import Principal

LISTEN = "subscriptions/listen"
NOBODY = Handshake()


class Stateless:
    """Serves them."""

    def __init__(self, parts: Parts, statuses: Statuses) -> None:
        self._parts = parts
        self._statuses = statuses

    def post(
        self,
        message: Any,
        variables: Mapping[str, Any],
        *,
        accepts: Accepts,
        principal: Principal | None,
        weight_bytes: int,
    ) -> Response:
        """Raises Refusal, and ClientGone."""
        request_id = self._id_of(message)
        if request_id is None:
            return accepted()  # a notification; the stateless era has none that would mean something here
        self._require_admissible(message, variables, request_id)
        if message["method"] == LISTEN and not accepts.events:
            raise Refusal("406 Not Acceptable", InvalidRequest(f"{LISTEN} is answered by a stream of events."))
        parts = self._parts
        outlet = parts.outlets.new(takes_events=accepts.events)
        link = parts.connect_stateless(outlet, principal, variables["REMOTE_ADDR"])
        exchange = Exchange(
            parts.server,
            link,
            outlet,
            accepts=accepts,
            keep_alive_secs=parts.settings.http_keepalive_secs,
            is_dropped_with_client=True,
        )
        return exchange.respond(
            message,
            variables,
            weight_bytes=weight_bytes,
            status_of=lambda line: self._statuses.of_stateless(line, request_id),
            is_primed=False,
        )

    def _id_of(self, message: Any) -> str | int | None:
        """None for a notification. Raises Refusal for what is neither that nor a request."""
        if type(message) is not dict:
            raise Refusal(BAD, InvalidRequest("A message must be a JSON object; batches do not exist here."))
        request_id = messages.normal_id(message.get("id"))
        if type(message.get("method")) is not str or message.get("jsonrpc") != "2.0":
            reason = 'A message needs jsonrpc "2.0" and a method; responses are not expected here.'
            raise Refusal(BAD, InvalidRequest(reason), id=request_id)
        if "id" in message and request_id is None:
            raise Refusal(BAD, InvalidRequest("id must be a string or an integer."))
        return request_id

    def _require_admissible(self, message: Json, variables: Mapping[str, Any], request_id: str | int) -> None:
        params = message.get("params")
        try:
            require_match(variables, message, self._marked_in(message, params))
            if params is not None and type(params) is not dict:
                raise InvalidParams("params must be an object.")
            if message["method"] == "initialize":
                raise MethodNotFound("initialize does not exist in the stateless era; send server/discover.")
            if params is None or not is_stateless(params):  # only the header says so
                meta = (params or {}).get("_meta")
                raise incomplete_envelope(meta if type(meta) is dict else {})
            admit(message["method"], params, NOBODY, self._parts.server.services.offered)
        except InvalidParams as error:
            raise Refusal(BAD, error, id=request_id) from error
        except RpcError as error:
            raise Refusal(OF_STATELESS.get(error.code, OK), error, id=request_id) from error

    def _marked_in(self, message: Json, params: Any) -> Mapping[str, Path]:
        """The arguments of a tool that have headers of their own."""
        name = params.get("name") if message["method"] == "tools/call" and type(params) is dict else None
        if type(name) is not str:
            return {}
        try:
            snapshot = self._parts.server.services.catalog.snapshot("tools")
        except InternalError:
            return {}  # the call will say what is wrong
        by_tool: dict[str, dict[str, Path]] = snapshot.cache.setdefault("arguments with headers", {})
        if name not in by_tool and name in snapshot.by_name:
            by_tool[name] = marked_arguments(snapshot.by_name[name].definition.get("inputSchema"))
        return by_tool.get(name, {})
