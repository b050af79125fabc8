"""All items of one kind at one time, how two such listings are told apart, and the file that shows one."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from mcpgreen import jsontext
from mcpgreen.catalog.items import Item
from mcpgreen.regular_files import new_file, unguessable


class Snapshot(NamedTuple):
    """All items of one kind at one time. `cache` belongs to the layers above: what they derive dies with the items."""

    kind: str
    items: tuple[Any, ...]
    by_name: Mapping[str, Any]
    hash: str
    total: int
    generated_at: str
    cache: dict[Any, Any]

    def __repr__(self) -> str:
        return f"<Snapshot {self.kind}: {self.total} items, {self.hash[:12]}>"


def snapshot_of(kind: str, items: Sequence[Item], earlier: Snapshot | None) -> Snapshot:
    """The earlier one if nothing is different: what was derived from it stays valid."""
    digest = jsontext.digest([item.registry_entry for item in items])
    # Not everything is part of a registry entry: the executable bit, for one, decides how a tool is started.
    if earlier is not None and earlier.hash == digest and earlier.items == tuple(items):
        return earlier
    return Snapshot(
        kind=kind,
        items=tuple(items),
        by_name={item.name: item for item in reversed(items)},
        hash=digest,
        total=len(items),
        generated_at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        cache={},
    )


def is_listed_otherwise(earlier: Snapshot, latest: Snapshot) -> bool:
    """Whether a client would see a difference. A new timeout or path makes a new hash, but not a new listing."""
    # As text, because to Python 1, 1.0 and True are equal, and to a client they are not.
    return earlier.hash != latest.hash and (_listing(earlier) != _listing(latest))


def _listing(snapshot: Snapshot) -> bytes:
    # Whoever wants to know that a resource has grown subscribes to it; it is the same list.
    return jsontext.dumps([{**item.definition, "size": None} for item in snapshot.items])


def file_text(snapshot: Snapshot) -> bytes:
    envelope = {
        "format_version": 1,
        "version": 1,
        "generatedAt": snapshot.generated_at,
        "items": [item.registry_entry for item in snapshot.items],
        "hash": snapshot.hash,
        "total": snapshot.total,
    }
    # A lone surrogate has no UTF-8; its backslash form happens to be the JSON escape for it.
    return jsontext.pretty(envelope).encode("utf-8", "backslashreplace")


def replace_file(path: str, text: bytes) -> None:
    """Readers see the old file or the new one, never a part."""
    directory, name = os.path.split(path)
    draft = os.path.join(directory, f".{name}.{unguessable()}")
    descriptor = new_file(draft)
    try:
        with open(descriptor, "wb") as file:
            file.write(text)
        os.replace(draft, path)
    except OSError:
        os.unlink(draft)  # a full disk should not keep half a file as well
        raise
