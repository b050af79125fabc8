"""All items of one kind at one point in time: how two snapshots are compared, and how a page of a list is encoded.

Each is also written to a file in `.registry/`, for people and other programs. The server reads these files only with a
static registry (`static_registry`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from mcpgreen import journal
from mcpgreen.catalog.item_kinds import registry_file
from mcpgreen.catalog.items import Item
from mcpgreen.files.regular_files import replacing
from mcpgreen.project.project import Project
from mcpgreen.protocol import pagination, revision_fields
from mcpgreen.protocol.revisions import Revision
from mcpgreen.protocol.schemas.portable import portable
from mcpgreen.running.scripts.scratch import Storage
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

NO_NAMES: Mapping[str, str] = {}
TOTAL_KEY = "mcpbash/total"
# Only FastMCP's client understands this in an outputSchema: it then returns the member `result` of the object.
WRAPPED = "x-fastmcp-wrap-result"
LIST_TTL_MS = 0  # a cached list would hide a change of the directory

KINDS = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
    "skills/list": "skills",
}
FIT: dict[str, Callable[[Json, Revision], Json]] = {
    "tools": revision_fields.fit_tool,
    "resources": revision_fields.fit_resource,
    "resourceTemplates": revision_fields.fit_resource,
    "prompts": revision_fields.fit_prompt,
    "skills": lambda definition, revision: definition,
}
FORMAT_VERSION = 1


class Snapshot(NamedTuple):
    """All items of one kind at one time. `cache` is for the layers above: values that they derive from the items.
    `is_found`: the items were found on disk, not registered by hand. `listed_names` has the items that clients know by
    another name; `by_name` has both names."""

    kind: str
    items: tuple[Any, ...]
    by_name: Mapping[str, Any]
    hash: str
    total: int
    generated_at: str
    cache: dict[Any, Any]
    is_found: bool = True
    listed_names: Mapping[str, str] = NO_NAMES

    def __repr__(self) -> str:
        return f"<Snapshot {self.kind}: {self.total} items, {self.hash[:12]}>"


def snapshot_of(
    kind: str, items: Sequence[Item], earlier: Snapshot | None, listed_names: Mapping[str, str], *, is_found: bool
) -> Snapshot:
    """Return a snapshot of these items, or the earlier one if nothing has changed, so that its `cache` stays valid."""
    digest = jsontext.digest([item.registry_entry for item in items])
    # The entries do not show everything: for example, a tool is started differently if it is executable.
    if earlier is not None and earlier.hash == digest and earlier.items == tuple(items):
        return earlier
    by_name = {item.name: item for item in reversed(items)}
    return Snapshot(
        kind=kind,
        items=tuple(items),
        by_name={**by_name, **{listed: by_name[name] for name, listed in listed_names.items()}},
        hash=digest,
        total=len(items),
        generated_at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        cache={},
        is_found=is_found,
        listed_names=listed_names,
    )


def without_dots(kind: str, items: Sequence[Item], warnings: list[str]) -> dict[str, str]:
    """Return the names without dots by which tools are listed, for clients that refuse dots. Tools that would get the
    same name keep their own."""
    by_listed: dict[str, list[str]] = {}
    for item in items if kind == "tools" else ():
        by_listed.setdefault(item.name.replace(".", "_"), []).append(item.name)
    for listed, alike in by_listed.items():
        if len(alike) > 1:
            warnings.append(f"replace_dots: {' and '.join(alike)} keep their names: both would be listed as {listed}")
    return {alike[0]: listed for listed, alike in by_listed.items() if alike != [listed] and len(alike) == 1}


def listing_changed(earlier: Snapshot, latest: Snapshot) -> bool:
    """Tell whether a client would see a difference. A new timeout or path makes a new hash, but the same listing."""
    if earlier.hash == latest.hash or earlier.total != latest.total:
        return earlier.hash != latest.hash
    # As text: in Python 1, 1.0 and True are equal, but not to a client.
    return _listing(earlier.items) != _listing(latest.items)


def _listing(items: Sequence[Item]) -> bytes:
    # A resource that has grown does not change the list; clients that want to know subscribe to it.
    return jsontext.dumps([{**item.definition, "size": None} for item in items])


class Terms(NamedTuple):
    """Settings that pages depend on."""

    page_size: int
    limit_bytes: int  # of a response; 0: none
    info: Json  # the name and version of the server


def page(snapshot: Snapshot, revision: Revision, params: Json, terms: Terms, *, for_fastmcp: bool = False) -> bytes:
    """Encode the page that these parameters ask for. Raises InvalidParams for a cursor that this listing did not issue.

    A page of the regular size is cached with the snapshot; pages of another size, by `limit`, are not.
    """
    cursor = params.get("cursor", params.get("nextCursor"))
    start = pagination.offset_in(cursor, snapshot.kind, snapshot.hash, snapshot.total)
    stop = min(start + pagination.page_length(params.get("limit"), terms.page_size), snapshot.total)
    key = (revision.name, start, stop, for_fastmcp)
    is_regular = start % terms.page_size == 0 and stop == min(start + terms.page_size, snapshot.total)
    body: bytes | None = snapshot.cache.get(key)
    while body is None:
        items = snapshot.items[start:stop]
        definitions = [listed_definition(snapshot, item, for_fastmcp=for_fastmcp) for item in items]
        result: Json = {"ttlMs": LIST_TTL_MS, "_meta": {TOTAL_KEY: snapshot.total}}
        result[snapshot.kind] = [FIT[snapshot.kind](definition, revision) for definition in definitions]
        if stop < snapshot.total:
            result["nextCursor"] = pagination.encode(snapshot.kind, stop, snapshot.hash, snapshot.generated_at)
        encoded = jsontext.dumps(revision_fields.finish(result, revision, terms.info))
        if not terms.limit_bytes or len(encoded) <= terms.limit_bytes or stop - start <= 1:
            body = encoded
        else:  # about as many items as fit into a response, and fewer in each round
            stop = start + max(1, min((stop - start) * terms.limit_bytes // len(encoded), stop - start - 1))
    if is_regular:
        snapshot.cache[key] = body
    return body


def listed_definition(snapshot: Snapshot, item: Item, *, for_fastmcp: bool = False) -> Json:
    """Return the definition of an item for clients. The schemas of a tool are made portable once per snapshot."""
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


class RegistryFiles:
    """Writes the files of one project. The server does not need them, so failures are reported only once. On a full
    disk, writing is tried again, and `storage` informs clients."""

    def __init__(self, project: Project, storage: Storage | None = None) -> None:
        self._project = project
        self._storage = storage
        self._is_unwritable = False
        self._due: set[str] = set()  # kinds that did not fit on the disk

    def write(self, snapshot: Snapshot, text: bytes | None) -> None:
        """Write the file of a snapshot. Without `text`, only if the file is due or missing."""
        kind, directory = snapshot.kind, self._project.registry_dir
        path = registry_file(self._project, kind)
        if text is None and kind not in self._due and (self._is_unwritable or os.path.exists(path)):
            return
        try:
            os.makedirs(directory, mode=0o700, exist_ok=True)
            with replacing(path) as file:
                file.write(text or file_text(snapshot))
        except OSError as error:
            storage = self._storage
            if storage is not None and storage.failed(error, directory=directory, what="the registry") is not None:
                self._due.add(kind)
            elif not self._is_unwritable:
                journal.warning("%s cannot be written: %s; the server works without it", path, error.strerror)
            self._is_unwritable = True
        else:
            self._is_unwritable = False
            self._due.discard(kind)
            if self._storage is not None:
                self._storage.succeeded(directory)


def file_text(snapshot: Snapshot) -> bytes:
    """Return the content of the file. For a registration it has no format version: a static server must not read it."""
    envelope = {
        **({"format_version": FORMAT_VERSION} if snapshot.is_found else {}),
        "version": 1,
        "generatedAt": snapshot.generated_at,
        "items": [item.registry_entry for item in snapshot.items],
        "hash": snapshot.hash,
        "total": snapshot.total,
    }
    # A lone surrogate has no UTF-8; its backslash form happens to be the JSON escape for it.
    return jsontext.pretty(envelope).encode("utf-8", "backslashreplace")
