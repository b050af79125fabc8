"""JSON-RPC envelopes: valid ids, the messages that we send, and the ids in lines that we reject.

Messages are built as bytes around an already encoded body, so that a cached list costs one join and no encoding.

A refused line is answered if it contains requests. Of a line that is too long to be parsed, only the two ends are
searched, because clients write the id first or last; text in the arguments could look like an id. A line that is
almost JSON, for example because it contains NaN, is read by a more lenient parser. A message without a method is an
answer to a request of ours: it needs no answer, but ends the request.
"""

from __future__ import annotations

import re

from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

RequestId = str | int
Line = bytes | list[bytes]  # a large line comes in pieces

MAX_ID_CHARS = 65_536  # each answer repeats it
END_BYTES = 512  # of a long line, at each end
MAX_BATCH = 1000  # requests; longer batches are refused anyway
REQUEST, ANSWER = b"method", b"result|error"  # the members that make a message one

# Compiled when first used: most servers never need them, and this module is loaded before the first answer.
_ID = rb'("[^"\\]{0,200}"|-?[0-9]{1,18})'
_VERSION = rb'"jsonrpc"\s*:\s*"2\.0"\s*,\s*'
_ID_FIRST = rb"\s*\{\s*(?:" + _VERSION + rb')?"id"\s*:\s*' + _ID + rb"\s*,\s*(?:" + _VERSION + rb')?"(?:%b)"\s*:'
_ID_LATER = rb"\s*\{\s*(?:" + _VERSION + rb')?"(?:%b)"\s*:'
_ID_LAST = rb',\s*"id"\s*:\s*' + _ID + rb'\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*\Z'


def whole(line: Line) -> bytes:
    return line if isinstance(line, bytes) else b"".join(line)


def size_of(line: Line) -> int:
    return len(line) if isinstance(line, bytes) else sum(map(len, line))


def normal_id(value: object) -> RequestId | None:
    """Return the id as we keep and echo it, or None if it is not a valid id.

    `1.0` is the integer 1, as in JSON. Null, booleans, fractions, arrays, objects and long strings are not valid ids.
    """
    if type(value) is int or (type(value) is str and len(value) <= MAX_ID_CHARS):
        return value
    return int(value) if type(value) is float and value.is_integer() else None


def response(request_id: RequestId, body: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (_encoded_id(request_id), body)


def response_in_pieces(request_id: RequestId, body: list[bytes]) -> list[bytes]:
    """Like `response`, without copying a large body."""
    return [b'{"jsonrpc":"2.0","id":%b,"result":' % _encoded_id(request_id), *body, b"}"]


def error(request_id: RequestId | None, error_object: Json) -> bytes:
    """Return an error response. Without a usable id it has no member `id`, because no revision's schema allows null."""
    body = jsontext.dumps(error_object)
    if request_id is None:
        return b'{"jsonrpc":"2.0","error":%b}' % body
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (_encoded_id(request_id), body)


def error_code(line: bytes, request_id: RequestId) -> int | None:
    """Return the code of an error that we send to this request; None for a result."""
    beginning = b'{"jsonrpc":"2.0","id":%b,"error":{"code":' % _encoded_id(request_id)
    if not line.startswith(beginning):
        return None
    digits = line[len(beginning) : len(beginning) + 12].partition(b",")[0]
    return int(digits)


def is_without_ids(line: bytes) -> bool:
    """Tell whether a line that we send, or an array of them, consists of errors without an id."""
    beginnings = b'{"jsonrpc":"2.0","error":', b'[{"jsonrpc":"2.0","error":'
    return line.startswith(beginnings) and b'{"jsonrpc":"2.0","id":' not in line


def notification(method: str, params: Json | None = None) -> bytes:
    return jsontext.dumps({"jsonrpc": "2.0", "method": method, **({} if params is None else {"params": params})})


def request(request_id: RequestId, method: str, params: Json | None = None) -> bytes:
    """Return a request of ours to the client."""
    message = {"jsonrpc": "2.0", "id": request_id, "method": method}
    return jsontext.dumps(message if params is None else {**message, "params": params})


def unreadable_answer(request_id: RequestId, reason: str) -> Json:
    """What takes the place of an answer that we refuse, so that the request does not wait for it."""
    return {"id": request_id, "error": {"message": f"The client's answer cannot be read: {reason}"}}


def id_at_ends(head: bytes, tail: bytes, kind: bytes = REQUEST) -> RequestId | None:
    """The id, if these are the two ends of a message of this kind."""
    found = re.match(_ID_FIRST % kind, head) or (re.match(_ID_LATER % kind, head) and re.search(_ID_LAST, tail))
    try:
        return normal_id(jsontext.loads(found.group(1))) if found else None
    except ValueError:
        return None


def ids_in(line: bytes, kind: bytes = REQUEST) -> list[RequestId]:
    """The ids of the messages of this kind in a line that is JSON except for NaN, Infinity, integers that are too long,
    control characters or bytes that are not UTF-8. An answer may be broken in any way."""
    id = id_at_ends(line[:END_BYTES], line[-END_BYTES:], kind)
    if len(line) > jsontext.PIECE_BYTES:
        return [] if id is None else [id]
    import json

    try:
        value = json.loads(line.decode("utf-8", "surrogateescape"), strict=False, parse_int=_short_integer)
    except (ValueError, RecursionError):
        return [] if id is None or kind is REQUEST else [id]
    members = value if isinstance(value, list) else [value]
    if len(members) > MAX_BATCH:
        return []
    return [id for member in members if (id := _id_of(member, kind)) is not None]


def _short_integer(digits: str) -> int | None:
    return int(digits) if len(digits) <= jsontext.MAX_DIGITS else None


def _id_of(message: object, kind: bytes) -> RequestId | None:
    if not isinstance(message, dict):
        return None
    is_answer = message.get("method") is None and not message.keys().isdisjoint(("result", "error"))
    if not (is_answer if kind is ANSWER else isinstance(message.get("method"), str)):
        return None
    id = normal_id(message.get("id"))
    # Half of a surrogate pair, or a byte that is not UTF-8, would be replaced: the client would not know the id again.
    return None if any("\ud800" <= character <= "\udfff" for character in str(id)) else id


def _encoded_id(request_id: RequestId) -> bytes:
    return b"%d" % request_id if type(request_id) is int else jsontext.dumps(request_id)
