"""The four lists: one page of a listing, encoded once for each revision that asks.

Below the features because the first lists are answered before they are imported (`early`); one text for both.
"""

from __future__ import annotations

from mcpgreen.protocol import pagination, revision_fields
from mcpgreen.text import jsontext
from mcpgreen.text.records import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    from mcpgreen.catalog.snapshot import Snapshot
    from mcpgreen.protocol.revisions import Revision

    Json = dict[str, Any]

    class Listing(Protocol):
        """What is known of a list without its items."""

        @property
        def kind(self) -> str: ...

        @property
        def hash(self) -> str: ...

        @property
        def total(self) -> int: ...

        @property
        def generated_at(self) -> str: ...


TOTAL_KEY = "mcpbash/total"
LIST_TTL_MS = 0  # a changed directory shows in the next list; a cached one would hide it

KINDS = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}
FIT = {
    "tools": revision_fields.fit_tool,
    "resources": revision_fields.fit_resource,
    "resourceTemplates": revision_fields.fit_resource,
    "prompts": revision_fields.fit_prompt,
}


class Terms(NamedTuple):
    """What pages depend on besides items and revision."""

    page_size: int
    limit_bytes: int  # of a response; 0: none
    info: Json  # how the server introduces itself


class Slice(NamedTuple):
    """Which items a client wants. A regular one is a page as we cut it; clients may invent any other."""

    start: int
    stop: int
    next_cursor: str | None
    is_regular: bool


def wanted(listing: Listing, params: Json, page_size: int) -> Slice:
    """Raises InvalidParams for a cursor that this listing did not issue."""
    start, stop, next_cursor = pagination.page(
        listing.total,
        params.get("cursor", params.get("nextCursor")),
        limit=params.get("limit"),
        collection=listing.kind,
        hash=listing.hash,
        timestamp=listing.generated_at,
        page_size=page_size,
    )
    is_regular = start % page_size == 0 and stop == min(start + page_size, listing.total)
    return Slice(start, stop, next_cursor, is_regular)


def page(snapshot: Snapshot, revision: Revision, params: Json, terms: Terms) -> bytes:
    """The page that these parameters ask for. A regular one is encoded once per snapshot and revision."""
    some = wanted(snapshot, params, terms.page_size)
    if not some.is_regular:
        return encoded(snapshot, revision, some, terms)
    key = (revision.name, some.start, some.stop)
    body: bytes | None = snapshot.cache.get(key)
    if body is None:
        body = snapshot.cache[key] = encoded(snapshot, revision, some, terms)
    return body


def encoded(snapshot: Snapshot, revision: Revision, some: Slice, terms: Terms) -> bytes:
    """The page, or as much of it as fits into a response; one item does in any case."""
    kind, fit = snapshot.kind, FIT[snapshot.kind]
    start, stop, next_cursor, _ = some
    result: Json = {"ttlMs": LIST_TTL_MS, "_meta": {TOTAL_KEY: snapshot.total}}
    while True:
        result[kind] = [fit(item.definition, revision) for item in snapshot.items[start:stop]]
        if next_cursor is not None:
            result["nextCursor"] = next_cursor
        body = jsontext.dumps(revision_fields.finish(result, revision, terms.info))
        if not terms.limit_bytes or len(body) <= terms.limit_bytes or stop - start <= 1:
            return body
        # About as many as fit; each round is shorter than the one before.
        stop = start + max(1, min((stop - start) * terms.limit_bytes // len(body), stop - start - 1))
        next_cursor = pagination.encode(kind, stop, snapshot.hash, snapshot.generated_at)
