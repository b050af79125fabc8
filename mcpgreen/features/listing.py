"""The four lists: one page of a snapshot, encoded once for each revision that asks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mcpgreen.catalog.snapshot import Snapshot
from mcpgreen.features.call import Call
from mcpgreen.protocol import pagination, shapes
from mcpgreen.protocol.revisions import Revision
from mcpgreen.text import jsontext

Json = dict[str, Any]

TOTAL_KEY = "mcpbash/total"
LIST_TTL_MS = 0  # a changed directory shows in the next list; a cached one would hide it


def list_tools(call: Call) -> bytes:
    return _page(call, "tools", shapes.fit_tool)


def list_resources(call: Call) -> bytes:
    return _page(call, "resources", shapes.fit_resource)


def list_resource_templates(call: Call) -> bytes:
    return _page(call, "resourceTemplates", shapes.fit_resource)


def list_prompts(call: Call) -> bytes:
    return _page(call, "prompts", shapes.fit_prompt)


def _page(call: Call, kind: str, fit: Callable[[Json, Revision], Json]) -> bytes:
    """One page, encoded. A regular page is built once per snapshot and revision; clients may invent any other."""
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
        return _encoded(call, snapshot, fit, start, stop, next_cursor)
    key = (call.view.revision.name, start, stop)
    body: bytes | None = snapshot.cache.get(key)
    if body is None:
        body = snapshot.cache[key] = _encoded(call, snapshot, fit, start, stop, next_cursor)
    return body


def _encoded(
    call: Call,
    snapshot: Snapshot,
    fit: Callable[[Json, Revision], Json],
    start: int,
    stop: int,
    next_cursor: str | None,
) -> bytes:
    """The page, or as much of it as fits into a response; one item does in any case."""
    kind, revision = snapshot.kind, call.view.revision
    page: Json = {"ttlMs": LIST_TTL_MS, "_meta": {TOTAL_KEY: snapshot.total}}
    limit_bytes = call.services.settings.max_response_bytes
    while True:
        page[kind] = [fit(item.definition, revision) for item in snapshot.items[start:stop]]
        if next_cursor is not None:
            page["nextCursor"] = next_cursor
        body = jsontext.dumps(shapes.finish(page, revision, call.services.identity.info))
        if not limit_bytes or len(body) <= limit_bytes or stop - start <= 1:
            return body
        # About as many as fit; each round is shorter than the one before.
        stop = start + max(1, min((stop - start) * limit_bytes // len(body), stop - start - 1))
        next_cursor = pagination.encode(kind, stop, snapshot.hash, snapshot.generated_at)
