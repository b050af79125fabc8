"""All items of one kind at one time, how two such listings are told apart, and the file that shows one."""

from __future__ import annotations

import os
import time

from mcpgreen.catalog.pace import UNPACED, Pace
from mcpgreen.files.regular_files import new_file, unguessable
from mcpgreen.text import jsontext
from mcpgreen.text.records import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from mcpgreen.catalog.items import Item

FORMAT_VERSION = 1


class Snapshot(NamedTuple):
    """All items of one kind at one time. `cache` belongs to the layers above: what they derive dies with the items.
    `is_found`: they were looked for on disk, and not registered by hand."""

    kind: str
    items: tuple[Any, ...]
    by_name: Mapping[str, Any]
    hash: str
    total: int
    generated_at: str
    cache: dict[Any, Any]
    is_found: bool = True

    def __repr__(self) -> str:
        return f"<Snapshot {self.kind}: {self.total} items, {self.hash[:12]}>"


def snapshot_of(
    kind: str, items: Sequence[Item], earlier: Snapshot | None, pace: Pace = UNPACED, *, is_found: bool = True
) -> Snapshot:
    """The earlier one if nothing is different: what was derived from it stays valid."""
    digest = jsontext.digest_of_list([item.registry_entry for item in some] for some in pace.slices(items))
    # Not everything is part of a registry entry: the executable bit, for one, decides how a tool is started.
    if earlier is not None and earlier.hash == digest and _are_equal(earlier.items, items, pace):
        return earlier
    return Snapshot(
        kind=kind,
        items=tuple(items),
        by_name={item.name: item for item in reversed(items)},
        hash=digest,
        total=len(items),
        generated_at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        cache={},
        is_found=is_found,
    )


def _are_equal(earlier: Sequence[Item], latest: Sequence[Item], pace: Pace) -> bool:
    if len(earlier) != len(latest):
        return False
    pairs = zip(pace.slices(earlier), pace.slices(tuple(latest)), strict=True)
    return all(before == after for before, after in pairs)


def is_listed_otherwise(earlier: Snapshot, latest: Snapshot, pace: Pace = UNPACED) -> bool:
    """Whether a client would see a difference. A new timeout or path makes a new hash, but not a new listing."""
    if earlier.hash == latest.hash or earlier.total != latest.total:
        return earlier.hash != latest.hash
    # As text, because to Python 1, 1.0 and True are equal, and to a client they are not.
    pairs = zip(pace.slices(earlier.items), pace.slices(latest.items), strict=True)
    return any(_listing(before) != _listing(after) for before, after in pairs)


def _listing(items: Sequence[Item]) -> bytes:
    # Whoever wants to know that a resource has grown subscribes to it; it is the same list.
    return jsontext.dumps([{**item.definition, "size": None} for item in items])


def file_text(snapshot: Snapshot, pace: Pace = UNPACED) -> list[bytes]:
    """The file, in pieces. What was registered has no format version: it has to be asked for again."""
    envelope = {
        **({"format_version": FORMAT_VERSION} if snapshot.is_found else {}),
        "version": 1,
        "generatedAt": snapshot.generated_at,
        "items": [],
        "hash": snapshot.hash,
        "total": snapshot.total,
    }
    head, _, rest = jsontext.pretty(envelope).partition("[]")
    pieces = [head, "["]
    for some in pace.slices(snapshot.items):
        # Without the brackets around them, and one level deeper.
        entries = jsontext.pretty([item.registry_entry for item in some])[1:].rstrip().removesuffix("]").rstrip()
        pieces += ["," if len(pieces) > 2 else "", entries.replace("\n", "\n  ")]
    pieces += ["\n  ]" if snapshot.items else "]", rest]
    # A lone surrogate has no UTF-8; its backslash form happens to be the JSON escape for it.
    return [piece.encode("utf-8", "backslashreplace") for piece in pace.over(pieces)]


def replace_file(path: str, text: Sequence[bytes], pace: Pace = UNPACED) -> None:
    """Readers see the old file or the new one, never a part."""
    directory, name = os.path.split(path)
    draft = os.path.join(directory, f".{name}.{unguessable()}")
    descriptor = new_file(draft)
    try:
        with open(descriptor, "wb") as file:
            for piece in pace.over(text):
                file.write(piece)
        os.replace(draft, path)
    except BaseException:
        os.unlink(draft)  # a full disk should not keep half a file as well, nor who is stopped in between
        raise
