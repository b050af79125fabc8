"""Pages of a list: which slice to send, and the cursor that asks for the next one.

A cursor is opaque to clients: a small JSON object with the collection, the hash of the listing and the offset, in
base64url without padding. It is not signed, because a forged cursor reads nothing that the list would not show.

Rule: a cursor is valid only for the listing that it came from. A stale, foreign or damaged one is refused with the
remedy in the message, because a page for it could silently skip or repeat items.
"""

from __future__ import annotations

from mcpgreen.errors import InvalidParams
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

VERSION = 1
MAX_CURSOR_CHARS = 1024
MAX_LIMIT_DIGITS = 9  # no page is that long


def page_length(limit: object, most: int) -> int:
    """Return how many items to send for this `limit`: a number, or its digits, because shell clients send those."""
    if isinstance(limit, str) and limit.isdecimal() and limit.isascii():
        return min(int(limit[:MAX_LIMIT_DIGITS]) or most, most)
    return min(limit, most) if type(limit) is int and limit >= 1 else most  # True is not a limit


def offset_in(cursor: object, collection: str, hash: str, total: float = float("inf")) -> int:
    """Return where the page begins that a client asks for: at 0 without a cursor, or with an empty one, which shell
    clients send. Raises InvalidParams for a cursor that does not belong to this listing of `total` items."""
    if cursor is None or cursor == "":
        return 0
    content = _decode(cursor)
    if content.get("collection") != collection:
        raise InvalidParams("This cursor belongs to another list; start again without a cursor.")
    if content.get("hash") != hash:
        raise InvalidParams("This cursor belongs to an older listing; start again without a cursor.")
    offset: int = content["offset"]
    if not 0 <= offset < total:
        raise InvalidParams("This cursor points outside the list; start again without a cursor.")
    return offset


def encode(collection: str, offset: int, hash: str, timestamp: str) -> str:
    """Return a cursor. `timestamp` tells people who decode it when the listing was made."""
    from base64 import urlsafe_b64encode  # here and below, because most lists have one page

    content = {"ver": VERSION, "collection": collection, "offset": offset, "hash": hash, "timestamp": timestamp}
    return urlsafe_b64encode(jsontext.dumps(content)).rstrip(b"=").decode("ascii")


def _decode(cursor: object) -> Json:
    from base64 import urlsafe_b64decode, urlsafe_b64encode

    try:
        if not isinstance(cursor, str) or len(cursor) > MAX_CURSOR_CHARS:
            raise ValueError
        raw = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        # The decoder skips characters that are not base64, so a cursor of ours has to encode back to the same text.
        if urlsafe_b64encode(raw).rstrip(b"=").decode("ascii") != cursor:
            raise ValueError
        content: Json = jsontext.loads(raw)
        if not isinstance(content, dict) or type(content.get("ver")) is not int or content["ver"] != VERSION:
            raise ValueError
        if type(content.get("offset")) is not int:
            raise ValueError
    except ValueError:  # also what the decoder and loads raise
        raise InvalidParams("The cursor was not issued by this server; start again without a cursor.") from None
    return content
