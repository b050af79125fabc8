"""The four lists: one page of a snapshot, encoded once for each revision that asks."""

from __future__ import annotations

from typing import Any

from mcpgreen.catalog.snapshot import Snapshot
from mcpgreen.features.call import Call
from mcpgreen.protocol import pagination, revision_fields
from mcpgreen.text import jsontext

Json = dict[str, Any]

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


def list_page(call: Call) -> bytes:
    """One page, encoded. A regular page is built once per snapshot and revision; clients may invent any other."""
    kind = KINDS[call.method]
    snapshot = call.services.snapshot(kind)
    page_size = call.services.settings.page_size
    cursor = call.params.get("cursor", call.params.get("nextCursor"))
    start, stop, next_cursor = pagination.page(
        snapshot.total,
        cursor,
        limit=call.params.get("limit"),
        collection=kind,
        hash=snapshot.hash,
        timestamp=snapshot.generated_at,
        page_size=page_size,
    )
    if start % page_size or stop != min(start + page_size, snapshot.total):
        return _encoded(call, snapshot, start, stop, next_cursor)
    key = (call.view.revision.name, start, stop)
    body: bytes | None = snapshot.cache.get(key)
    if body is None:
        body = snapshot.cache[key] = _encoded(call, snapshot, start, stop, next_cursor)
    return body


def _encoded(call: Call, snapshot: Snapshot, start: int, stop: int, next_cursor: str | None) -> bytes:
    """The page, or as much of it as fits into a response; one item does in any case."""
    kind, fit, revision = snapshot.kind, FIT[snapshot.kind], call.view.revision
    page: Json = {"ttlMs": LIST_TTL_MS, "_meta": {TOTAL_KEY: snapshot.total}}
    limit_bytes = call.services.settings.max_response_bytes
    while True:
        page[kind] = [fit(item.definition, revision) for item in snapshot.items[start:stop]]
        if next_cursor is not None:
            page["nextCursor"] = next_cursor
        body = jsontext.dumps(revision_fields.finish(page, revision, call.services.identity.info))
        if not limit_bytes or len(body) <= limit_bytes or stop - start <= 1:
            return body
        # About as many as fit; each round is shorter than the one before.
        stop = start + max(1, min((stop - start) * limit_bytes // len(body), stop - start - 1))
        next_cursor = pagination.encode(kind, stop, snapshot.hash, snapshot.generated_at)
