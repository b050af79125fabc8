"""POSTs of stateless clients: each says which client sends it, in its envelope and again in its headers.

Headers are checked first, then the envelope, then the method; for these failures the response has an HTTP status of its
own. Later failures are in the JSON alone, except for a capability or a scope that is missing. A client that closes the
connection cancels its request.
"""

from __future__ import annotations

from collections.abc import Mapping

from mcpgreen.catalog.snapshot import listed_definition
from mcpgreen.errors import InternalError, InvalidParams, MethodNotFound, RpcError
from mcpgreen.features.services import Services
from mcpgreen.protocol import messages
from mcpgreen.protocol.admission import Handshake, admit, incomplete_envelope, is_stateless
from mcpgreen.text.json_types import Json
from mcpgreen.transports.http.exchange import Parts, Post, answer_post
from mcpgreen.transports.http.header_checks import Path, marked_arguments, require_match
from mcpgreen.transports.http.responses import BAD, NOT_ACCEPTABLE, OK, STATELESS_STATUSES, Refusal, accepted
from mcpgreen.transports.http.wire.connection import Response

LISTEN = "subscriptions/listen"
NO_HANDSHAKE = Handshake()


def serve(parts: Parts, post: Post) -> Response:
    """Raises Refusal, and ClientGone."""
    message = post.message
    if type(message) is not dict:
        raise Refusal(BAD, "A message must be a JSON object; batches do not exist here.")
    request_id = _id_of(message)
    if request_id is None:
        return accepted()  # a notification; in the stateless era none has a meaning here
    params = message.get("params")
    try:
        require_match(post.request.fields, message, _marked_in(message, params, parts.server.services))
        if params is not None and type(params) is not dict:
            raise InvalidParams("params must be an object.")
        if message["method"] == "initialize":
            raise MethodNotFound("initialize does not exist in the stateless era; send server/discover.")
        if params is None or not is_stateless(params):  # only the header says that the client is stateless
            meta = (params or {}).get("_meta")
            raise incomplete_envelope(meta if type(meta) is dict else {})
        admit(message["method"], params, NO_HANDSHAKE, parts.server.services.offered)
    except InvalidParams as error:
        raise Refusal(BAD, error, id=request_id) from error
    except RpcError as error:
        raise Refusal(STATELESS_STATUSES.get(error.code, OK), error, id=request_id) from error
    if message["method"] == LISTEN and not post.accepts.events:
        raise Refusal(NOT_ACCEPTABLE, f"{LISTEN} is answered by a stream of events.")
    return answer_post(parts, post)


def _marked_in(message: Json, params: object, services: Services) -> Mapping[str, Path]:
    """Return the arguments of a tool that a client repeats in headers."""
    name = params.get("name") if message["method"] == "tools/call" and type(params) is dict else None
    if type(name) is not str:
        return {}
    try:
        snapshot = services.catalog.snapshot("tools")
    except InternalError:
        return {}  # the call will say what is wrong
    by_tool: dict[str, dict[str, Path]] = snapshot.cache.setdefault("arguments with headers", {})
    if name not in by_tool and name in snapshot.by_name:
        by_tool[name] = marked_arguments(listed_definition(snapshot, snapshot.by_name[name])["inputSchema"])
    return by_tool.get(name, {})


def _id_of(message: Json) -> str | int | None:
    """Return the id of a request; None for a notification. Raises Refusal for anything else."""
    request_id = messages.normal_id(message.get("id"))
    if type(message.get("method")) is not str or message.get("jsonrpc") != "2.0":
        reason = 'A message needs jsonrpc "2.0" and a method; responses are not expected here.'
        raise Refusal(BAD, reason, id=request_id)
    if "id" in message and request_id is None:
        raise Refusal(BAD, "id must be a string or an integer.")
    return request_id
