"""Encode one page of a list: tools, resources, resource templates or prompts."""

from __future__ import annotations

from typing import NamedTuple

from mcpgreen.catalog.items import Item
from mcpgreen.catalog.snapshot import Snapshot
from mcpgreen.protocol import pagination, revision_fields
from mcpgreen.protocol.revisions import Revision
from mcpgreen.protocol.schemas.portable import portable
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

TOTAL_KEY = "mcpbash/total"
# Only FastMCP's client understands this in an outputSchema: it then returns the member `result` of the object.
WRAPPED = "x-fastmcp-wrap-result"
LIST_TTL_MS = 0  # a cached list would hide a change of the directory

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
    """Settings that pages depend on."""

    page_size: int
    limit_bytes: int  # of a response; 0: none
    info: Json  # the name and version of the server


def page(snapshot: Snapshot, revision: Revision, params: Json, terms: Terms, *, for_fastmcp: bool = False) -> bytes:
    """Encode the page that these parameters ask for. Raises InvalidParams for a cursor that this listing did not issue.

    A page of the regular size is kept with the snapshot; `limit` makes pages of any other size, which are not.
    """
    start, stop, next_cursor = pagination.page(
        snapshot.total,
        params.get("cursor", params.get("nextCursor")),
        limit=params.get("limit"),
        collection=snapshot.kind,
        hash=snapshot.hash,
        timestamp=snapshot.generated_at,
        page_size=terms.page_size,
    )
    key = (revision.name, start, stop, for_fastmcp)
    body: bytes | None = snapshot.cache.get(key)
    if body is None:
        body = _encoded(snapshot, revision, start, stop, next_cursor, terms, for_fastmcp=for_fastmcp)
        if start % terms.page_size == 0 and stop == min(start + terms.page_size, snapshot.total):
            snapshot.cache[key] = body
    return body


def _encoded(
    snapshot: Snapshot,
    revision: Revision,
    start: int,
    stop: int,
    next_cursor: str | None,
    terms: Terms,
    *,
    for_fastmcp: bool,
) -> bytes:
    """Encode the items, or as many of them as fit into a response, but at least one."""
    kind, fit = snapshot.kind, FIT[snapshot.kind]
    result: Json = {"ttlMs": LIST_TTL_MS, "_meta": {TOTAL_KEY: snapshot.total}}
    while True:
        items = snapshot.items[start:stop]
        definitions = [listed_definition(snapshot, item, for_fastmcp=for_fastmcp) for item in items]
        result[kind] = [fit(definition, revision) for definition in definitions]
        if next_cursor is not None:
            result["nextCursor"] = next_cursor
        body = jsontext.dumps(revision_fields.finish(result, revision, terms.info))
        if not terms.limit_bytes or len(body) <= terms.limit_bytes or stop - start <= 1:
            return body
        # About as many as fit, and fewer in each round.
        stop = start + max(1, min((stop - start) * terms.limit_bytes // len(body), stop - start - 1))
        next_cursor = pagination.encode(kind, stop, snapshot.hash, snapshot.generated_at)


def listed_definition(snapshot: Snapshot, item: Item, *, for_fastmcp: bool = False) -> Json:
    """The definition of an item for clients. The schemas of a tool are made portable once per snapshot."""
    if snapshot.kind != "tools":
        return item.definition
    known: dict[str, Json] = snapshot.cache.setdefault("listed definitions", {})
    definition = known.get(item.name)
    if definition is None:
        definition = {**item.definition, "name": snapshot.listed_names.get(item.name, item.name)}
        for key in ("inputSchema", "outputSchema"):
            if key in definition:
                definition[key] = portable(definition[key])
        if WRAPPED in definition.get("outputSchema", ()):
            definition["outputSchema"] = {**definition["outputSchema"]}
            del definition["outputSchema"][WRAPPED]
        known[item.name] = definition
    if for_fastmcp and _is_wrapped(item.definition.get("outputSchema", {})):
        return {**definition, "outputSchema": {**definition["outputSchema"], WRAPPED: True}}
    return definition


def _is_wrapped(schema: Json) -> bool:
    """Tell whether a result is an object with the one member `result`, as function tools return it."""
    if WRAPPED in schema:
        return schema[WRAPPED] is True
    is_plain = schema.keys() == {"type", "properties", "required"} and schema["required"] == ["result"]
    return is_plain and isinstance(schema["properties"], dict) and list(schema["properties"]) == ["result"]
