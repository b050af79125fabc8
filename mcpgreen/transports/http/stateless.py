"""POSTs of stateless clients: each says which client sends it, in its envelope and again in its headers.

Headers are checked first, then the envelope, then the method; for these failures the response has an HTTP status of its
own. Later failures are in the JSON alone, except for a capability or a scope that is missing. A client that closes the
connection cancels its request.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from mcpgreen.catalog.snapshot import listed_definition
from mcpgreen.errors import InternalError, InvalidParams, InvalidRequest, MethodNotFound, RpcError
from mcpgreen.protocol import messages
from mcpgreen.protocol.admission import Handshake, admit, incomplete_envelope, is_stateless
from mcpgreen.text.json_types import Json
from mcpgreen.transports.http.exchange import Parts, Post, answer_post
from mcpgreen.transports.http.header_checks import Path, marked_arguments, require_match
from mcpgreen.transports.http.responses import BAD, OK, STATELESS_STATUSES, Refusal, Statuses, accepted
from mcpgreen.transports.http.wire.connection import Request, Response

LISTEN = "subscriptions/listen"
NO_HANDSHAKE = Handshake()


class Stateless:
    """Serves clients without a session."""

    def __init__(self, parts: Parts, statuses: Statuses) -> None:
        self._parts = parts
        self._statuses = statuses

    def post(self, post: Post) -> Response:
        """Raises Refusal, and ClientGone."""
        message, request = post.message, post.request
        if type(message) is not dict:
            raise Refusal(BAD, InvalidRequest("A message must be a JSON object; batches do not exist here."))
        request_id = _id_of(message)
        if request_id is None:
            return accepted()  # a notification; in the stateless era none has a meaning here
        self._require_admissible(message, request, request_id)
        if message["method"] == LISTEN and not post.accepts.events:
            raise Refusal("406 Not Acceptable", InvalidRequest(f"{LISTEN} is answered by a stream of events."))
        parts = self._parts
        outlet = parts.outlets.new(carrier=request.connection, takes_events=post.accepts.events, owner=request.owner)
        link = parts.sessions.connect_stateless(outlet, post.principal, request.owner)
        status_of = partial(self._statuses.of_stateless, request_id=request_id)
        return answer_post(parts, post, link, outlet, status_of=status_of, ends_with_client=True)

    def _require_admissible(self, message: Json, request: Request, request_id: str | int) -> None:
        params = message.get("params")
        try:
            require_match(request.fields, message, self._marked_in(message, params))
            if params is not None and type(params) is not dict:
                raise InvalidParams("params must be an object.")
            if message["method"] == "initialize":
                raise MethodNotFound("initialize does not exist in the stateless era; send server/discover.")
            if params is None or not is_stateless(params):  # only the header says that the client is stateless
                meta = (params or {}).get("_meta")
                raise incomplete_envelope(meta if type(meta) is dict else {})
            admit(message["method"], params, NO_HANDSHAKE, self._parts.server.services.offered)
        except InvalidParams as error:
            raise Refusal(BAD, error, id=request_id) from error
        except RpcError as error:
            raise Refusal(STATELESS_STATUSES.get(error.code, OK), error, id=request_id) from error

    def _marked_in(self, message: Json, params: object) -> Mapping[str, Path]:
        """The arguments of a tool that a client repeats in headers."""
        name = params.get("name") if message["method"] == "tools/call" and type(params) is dict else None
        if type(name) is not str:
            return {}
        try:
            snapshot = self._parts.server.services.catalog.snapshot("tools")
        except InternalError:
            return {}  # the call will say what is wrong
        by_tool: dict[str, dict[str, Path]] = snapshot.cache.setdefault("arguments with headers", {})
        if name not in by_tool and name in snapshot.by_name:
            by_tool[name] = marked_arguments(listed_definition(snapshot, snapshot.by_name[name])["inputSchema"])
        return by_tool.get(name, {})


def _id_of(message: Json) -> str | int | None:
    """The id of a request; None for a notification. Raises Refusal for anything else."""
    request_id = messages.normal_id(message.get("id"))
    if type(message.get("method")) is not str or message.get("jsonrpc") != "2.0":
        reason = 'A message needs jsonrpc "2.0" and a method; responses are not expected here.'
        raise Refusal(BAD, InvalidRequest(reason), id=request_id)
    if "id" in message and request_id is None:
        raise Refusal(BAD, InvalidRequest("id must be a string or an integer."))
    return request_id
