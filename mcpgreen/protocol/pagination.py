"""Pages of a list: which slice to send, and the cursor that asks for the next one.

A cursor is opaque to clients: base64url, without padding, of a small JSON object that names the collection, the hash
of the listing and the offset. It is not signed, because a forged one reads nothing that the list would not show.

Rule: a cursor is good for exactly the listing that it came from. Anything else, be it stale, foreign or damaged, is
refused with the remedy in the message, and never answered with a page that silently skips or repeats items.
"""

from __future__ import annotations

from binascii import a2b_base64, b2a_base64

from mcpgreen.errors import InvalidParams
from mcpgreen.text import jsontext

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

VERSION = 1
MAX_CURSOR_CHARS = 1024
MAX_LIMIT_DIGITS = 9  # more than any page has

_TO_URL = bytes.maketrans(b"+/", b"-_")
_FROM_URL = bytes.maketrans(b"-_", b"+/")


def page(
    items_total: int,
    cursor: Any,
    *,
    limit: Any = None,
    collection: str,
    hash: str,
    page_size: int,
    timestamp: str,
) -> tuple[int, int, str | None]:
    """Start and stop of the slice to send, and the cursor for what follows it, None at the end.

    `cursor` and `limit` are what the client sent, of any type; None stands for absent, and so does an empty cursor,
    which shell clients send before they have one. `timestamp`, when the listing was made, is for people who decode a
    cursor; nobody reads it back. Raises InvalidParams for a cursor that this listing did not issue.
    """
    start = 0 if is_first(cursor) else offset_in(cursor, collection, hash)
    if not is_first(cursor) and not 0 <= start < items_total:
        raise InvalidParams("This cursor points outside the list; start again without a cursor.")
    stop = min(start + within(limit, page_size), items_total)
    if stop >= items_total:
        return start, stop, None
    return start, stop, encode(collection, stop, hash, timestamp)


def is_first(cursor: Any) -> bool:
    return cursor is None or cursor == ""


def within(limit: Any, most: int) -> int:
    """How many items a client wants that sent this as `limit`: a number, or its digits, as shell clients send them."""
    if type(limit) is str and limit.isdecimal() and limit.isascii():
        return min(int(limit[:MAX_LIMIT_DIGITS]) or most, most)
    return min(limit, most) if type(limit) is int and limit >= 1 else most


def offset_in(cursor: Any, collection: str, hash: str) -> int:
    """Where a cursor of this collection and hash points to. Raises InvalidParams for any other."""
    content = _decode(cursor)
    if content.get("collection") != collection:
        raise InvalidParams("This cursor belongs to another list; start again without a cursor.")
    if content.get("hash") != hash:
        raise InvalidParams("This cursor belongs to an older listing; start again without a cursor.")
    offset: int = content["offset"]
    return offset


def encode(collection: str, offset: int, hash: str, timestamp: str) -> str:
    content = {"ver": VERSION, "collection": collection, "offset": offset, "hash": hash, "timestamp": timestamp}
    encoded = b2a_base64(jsontext.dumps(content), newline=False)
    return encoded.rstrip(b"=").translate(_TO_URL).decode("ascii")


def _decode(cursor: Any) -> dict[str, Any]:
    try:
        if not isinstance(cursor, str) or len(cursor) > MAX_CURSOR_CHARS:
            raise ValueError
        encoded = cursor.encode("ascii").translate(_FROM_URL)
        raw = a2b_base64(encoded + b"=" * (-len(encoded) % 4))
        # The decoder skips characters that are not base64; only what encodes back to the same text is ours.
        if b2a_base64(raw, newline=False).rstrip(b"=").translate(_TO_URL) != cursor.encode("ascii"):
            raise ValueError
        content: dict[str, Any] = jsontext.loads(raw)
        if not isinstance(content, dict) or type(content.get("ver")) is not int or content["ver"] != VERSION:
            raise ValueError
        if type(content.get("offset")) is not int:
            raise ValueError
    except ValueError:  # also what a2b_base64, encode and loads raise
        raise InvalidParams("This is not a cursor of this server; start again without a cursor.") from None
    return content
