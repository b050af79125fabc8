"""All items of one kind at one time, and how two such snapshots are compared."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from mcpgreen.catalog.items import Item
from mcpgreen.text import jsontext

NO_NAMES: Mapping[str, str] = {}


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
    kind: str,
    items: Sequence[Item],
    earlier: Snapshot | None,
    listed_names: Mapping[str, str] = NO_NAMES,
    *,
    is_found: bool = True,
) -> Snapshot:
    """A snapshot of these items; the earlier one if nothing is different, so that its `cache` stays valid."""
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
    """The names without dots by which tools are listed, for clients that refuse dots. Two tools that would get the same
    name keep their own."""
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
