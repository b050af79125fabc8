"""JSON-RPC envelopes: what a valid id is, and the five kinds of line that we send.

Lines are built as bytes around an already encoded body, so that a cached list costs one join and no encoding.
"""

from __future__ import annotations

from mcpgreen.text import jsontext

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Union

    RequestId = Union[str, int]  # noqa: UP007  (the runtime of this alias is type checking only)


MAX_ID_CHARS = 65_536  # each answer repeats it


def normal_id(value: Any) -> RequestId | None:
    """The id as we keep and echo it, or None when it is no valid id.

    `1.0` is the integer 1 (JSON knows no difference); null, booleans, fractions, containers and long texts are no ids.
    """
    kind = type(value)
    if kind is int or (kind is str and len(value) <= MAX_ID_CHARS):
        return value  # type: ignore[no-any-return]  # just checked
    if kind is float and value == value and abs(value) != float("inf") and value == int(value):
        return int(value)
    return None


def response(request_id: RequestId, body: bytes) -> bytes:
    if type(request_id) is int:
        return b'{"jsonrpc":"2.0","id":%d,"result":%b}' % (request_id, body)
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (jsontext.dumps(request_id), body)


def response_in_pieces(request_id: RequestId, body: list[bytes]) -> list[bytes]:
    """As `response`, without copying a large body together."""
    return [b'{"jsonrpc":"2.0","id":%b,"result":' % _encoded_id(request_id), *body, b"}"]


def error(request_id: RequestId | None, error_object: dict[str, Any]) -> bytes:
    """An error line. Without a usable id the member is left out: no revision's schema allows null there."""
    body = jsontext.dumps(error_object)
    if request_id is None:
        return b'{"jsonrpc":"2.0","error":%b}' % body
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (_encoded_id(request_id), body)


def error_code(line: bytes, request_id: RequestId) -> int | None:
    """The code of an error line of ours to this request; None for a result."""
    beginning = b'{"jsonrpc":"2.0","id":%b,"error":{"code":' % _encoded_id(request_id)
    if not line.startswith(beginning):
        return None
    digits = line[len(beginning) : len(beginning) + 12].partition(b",")[0]
    return int(digits)


def notification(method: str, params: dict[str, Any] | None = None) -> bytes:
    if params is None:
        return jsontext.dumps({"jsonrpc": "2.0", "method": method})
    return jsontext.dumps({"jsonrpc": "2.0", "method": method, "params": params})


def request(request_id: RequestId, method: str, params: dict[str, Any] | None = None) -> bytes:
    """A request of ours to the client."""
    if params is None:
        return jsontext.dumps({"jsonrpc": "2.0", "id": request_id, "method": method})
    return jsontext.dumps({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})


def _encoded_id(request_id: RequestId) -> bytes:
    if type(request_id) is int:
        return b"%d" % request_id
    return jsontext.dumps(request_id)
