"""POSTs from stateless clients: each identifies its client in its envelope, and again in its headers.

Headers are checked first, then the envelope, then the method; for these failures the response has an HTTP status of its
own. Later failures are in the JSON alone, except for a capability or a scope that is missing. A client that closes the
connection cancels its request.

A proxy routes and counts by `Mcp-Method`, `Mcp-Name` and `Mcp-Param-*` without reading bodies. So headers that differ
from the body are an attack on a proxy that trusts them, and are refused before anything else is checked.
"""

from __future__ import annotations

import base64
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from decimal import Decimal
from itertools import islice

from mcpgreen.catalog.snapshot import listed_definition
from mcpgreen.errors import HeaderMismatch, InternalError, InvalidParams, MethodNotFound, RpcError
from mcpgreen.features.services import Services
from mcpgreen.protocol import messages
from mcpgreen.protocol.admission import PROTOCOL_VERSION, Handshake, admit, incomplete_envelope, is_stateless
from mcpgreen.protocol.revisions import NAMED_BY
from mcpgreen.text.json_types import Json
from mcpgreen.transports.http.exchange import Parts, Post, answer_post
from mcpgreen.transports.http.responses import ACCEPTED, BAD, NOT_ACCEPTABLE, OK, STATELESS_STATUSES, Refusal
from mcpgreen.transports.http.wire.connection import Response
from mcpgreen.transports.http.wire.heads import PARAM

LISTEN = "subscriptions/listen"
NO_HANDSHAKE = Handshake()
ENCODED = re.compile(r"=\?base64\?(.*)\?=")
NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,4})?")
MARK = "x-mcp-header"
TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,100}")
MAX_DEPTH = 16
MAX_MARKED = 50

Path = tuple[str, ...]


def serve(parts: Parts, post: Post) -> Response:
    """Raises Refusal, and ClientGone."""
    message = post.message
    if type(message) is not dict:
        raise Refusal(BAD, "A message must be a JSON object; batches are not supported here.")
    request_id = _id_of(message)
    if request_id is None:
        return ACCEPTED  # a notification; in the stateless era none has a meaning here
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
        raise Refusal(NOT_ACCEPTABLE, f"The response to {LISTEN} is an event stream; Accept must allow it.")
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


def require_match(fields: Mapping[str, str], message: Json, marked: Mapping[str, Path]) -> None:
    """`fields` are the headers, by their names in lower case; `marked` are the arguments of the tool that are repeated
    in headers. Raises HeaderMismatch."""
    params = message.get("params")
    params = params if type(params) is dict else {}
    method = message["method"]
    meta = params.get("_meta")
    version = meta.get(PROTOCOL_VERSION) if type(meta) is dict else None
    if type(version) is str:  # an incomplete envelope has an error of its own
        _require_same(fields, "MCP-Protocol-Version", version, may_be_encoded=False)
    _require_same(fields, "Mcp-Method", method, may_be_encoded=False)
    name = params.get(NAMED_BY[method]) if method in NAMED_BY else None
    if type(name) is str:
        _require_same(fields, "Mcp-Name", name)
    for header, path in marked.items():
        value = _value_at(params.get("arguments"), path)
        if value is None and PARAM + header in fields:
            raise HeaderMismatch(f"The header Mcp-Param-{header} does not match the body.")
        if type(value) in (str, int, bool, float):  # a header can hold it; the schema decides whether it is valid
            _require_same(fields, f"Mcp-Param-{header}", value)


def marked_arguments(schema: object) -> dict[str, Path]:
    """Return the paths of the arguments that a schema wants as headers, by the names of the headers. Marks that clients
    have to ignore are ignored here, too."""
    marks = [(name.lower(), path) for name, path in _marks(schema, (), MAX_DEPTH)]
    times = Counter(name for name, _ in marks)
    return dict(islice(((name, path) for name, path in marks if times[name] == 1), MAX_MARKED))


def decoded(value: str) -> str:
    """Return the value of Mcp-Name or Mcp-Param-*, decoded if it is encoded. Raises HeaderMismatch."""
    if not value.isascii():
        raise HeaderMismatch("A header must be ASCII; encode anything else as =?base64?...?=.")
    found = ENCODED.fullmatch(value)
    if found is None:
        return value
    try:
        return base64.b64decode(found[1], validate=True).decode("utf-8")
    except ValueError as error:
        raise HeaderMismatch("A header is not valid base64 of UTF-8.") from error


def _require_same(fields: Mapping[str, str], header: str, value: object, *, may_be_encoded: bool = True) -> None:
    sent = fields.get(header.lower())
    if sent is None:
        raise HeaderMismatch(f"The header {header} is missing.")
    text = decoded(sent) if may_be_encoded else sent
    if type(value) is bool:
        is_same = text == ("true" if value else "false")
    elif type(value) is str:
        is_same = text == value
    else:
        is_same = NUMBER.fullmatch(text) is not None and Decimal(text) == value  # exactly, also where a float rounds
    if not is_same:
        raise HeaderMismatch(f"The header {header} does not match the body.")


def _marks(schema: object, path: Path, depth: int) -> Iterator[tuple[str, Path]]:
    properties = schema.get("properties") if type(schema) is dict else None
    if type(properties) is not dict or not depth:
        return
    for name, each in properties.items():
        if type(each) is not dict:
            continue
        mark = each.get(MARK)
        if type(mark) is str and TOKEN.fullmatch(mark) and each.get("type") in ("string", "integer", "boolean"):
            yield mark, (*path, name)
        yield from _marks(each, (*path, name), depth - 1)


def _value_at(arguments: object, path: Path) -> object:
    for name in path:
        if type(arguments) is not dict:
            return None
        arguments = arguments.get(name)
    return arguments
