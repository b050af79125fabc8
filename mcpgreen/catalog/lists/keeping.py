"""Write what the next start can answer with: see `page_store`.

Rule: what is written has to be right at any later time at which the disk looks the same. So a listing is kept only when
everything that it was read from is part of its fingerprint, and nothing of that is younger than the coarsest clock of
a file system: two writes within one tick could look alike.
"""

from __future__ import annotations

import binascii
import os
import time
from contextlib import suppress

from mcpgreen import journal
from mcpgreen.catalog.item_kinds import SOURCES
from mcpgreen.catalog.lists.page_store import MAX_FILE_BYTES, MAX_FILES, PageStore, digest_of
from mcpgreen.catalog.lists.pages import FIT, Slice, Terms, encoded
from mcpgreen.catalog.snapshot import replace_file
from mcpgreen.protocol import pagination
from mcpgreen.protocol.revisions import BY_NAME, NEWEST_FIRST
from mcpgreen.text import jsontext

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from mcpgreen.catalog.catalog import Catalog
    from mcpgreen.catalog.snapshot import Snapshot

MIN_AGE_SECS = 2.0  # FAT, the coarsest, counts in steps of two seconds
STALE_DRAFT_SECS = 3600
MOST_WAITS = 10  # for files that are too young: the clock of another machine may be ahead for hours


class PageKeeper:
    """Keeps the pages of one server."""

    def __init__(self, store: PageStore, catalog: Catalog, terms: Terms) -> None:
        self._store = store
        self._catalog = catalog
        self._terms = terms
        self._known: dict[str, str] = {}  # the digests of what is kept already, by source
        self._is_given_up = False
        self._waits_left = MOST_WAITS

    def keep(self, turn: Callable[[], object]) -> float | None:
        """Write what is new. In how many seconds to look at the disk again, if something is too young yet. Others have
        their turn meanwhile."""
        wait_secs: list[float] = []
        for source in SOURCES:
            found = self._catalog.keepable(source)
            if self._is_given_up or found is None:
                continue
            fingerprint, age_secs, snapshots = found
            digest = digest_of(fingerprint)
            if source not in self._known:
                self._known[source] = self._kept_before(source)
            if self._known[source] == digest:
                continue
            if age_secs <= MIN_AGE_SECS:
                wait_secs.append(MIN_AGE_SECS - max(0.0, age_secs) + 0.1)
                continue
            self._known[source] = digest
            if not any(map(_has_embedded_icons, snapshots.values())):
                self._write(source, digest, snapshots, turn)
        if not wait_secs or not self._waits_left:
            return None
        self._waits_left -= 1
        return min(wait_secs)

    def _kept_before(self, source: str) -> str:
        kept = self._store.read(source)
        if kept is None:
            return ""
        with suppress(OSError):
            os.utime(self._store.path_of(source))  # it is in use
        return kept.fingerprint

    def _write(self, source: str, digest: str, snapshots: Mapping[str, Snapshot], turn: Callable[[], object]) -> None:
        content = _content(digest, snapshots, self._terms, turn)
        try:
            self._store.make_directory()
            replace_file(self._store.path_of(source), content)
            self._remove_oldest()
        except OSError as error:
            self._is_given_up = True
            journal.debug("lists are not kept for the next start: %s", error)

    def _remove_oldest(self) -> None:
        """Bounded, whatever was served here: 64 lists of 4 MB at the most."""
        ages: list[tuple[float, str]] = []
        with os.scandir(self._store.directory) as entries:
            for entry in entries:
                ages.append((entry.stat(follow_symlinks=False).st_mtime, entry.path))
        ages.sort(reverse=True)
        now = time.time()
        for rank, (written_at, path) in enumerate(ages):
            is_draft = os.path.basename(path).startswith(".")  # of a server that was killed while it wrote
            if rank >= MAX_FILES or (is_draft and now - written_at > STALE_DRAFT_SECS):
                os.unlink(path)


def _content(digest: str, snapshots: Mapping[str, Snapshot], terms: Terms, turn: Callable[[], object]) -> list[bytes]:
    """The file, in pieces: a line that says where the pages are, and the pages. The newest revisions first; what does
    not fit is left out."""
    bodies: dict[bytes, int] = {}  # and where each begins: revisions that need the same share it
    size = 0
    pages: dict[str, dict[str, list[Any]]] = {kind: {} for kind in snapshots if kind in FIT}
    for name in NEWEST_FIRST:
        for kind in pages:
            rows = []
            for some in _slices(snapshots[kind], terms.page_size):
                body = encoded(snapshots[kind], BY_NAME[name], some, terms)
                turn()
                if body not in bodies:
                    if size + len(body) > MAX_FILE_BYTES // 2:
                        continue
                    bodies[body] = size
                    size += len(body)
                rows.append([some.start, some.stop, bodies[body], len(body), binascii.crc32(body)])
            pages[kind][name] = rows
    listings = {kind: [each.hash, each.total, each.generated_at] for kind, each in snapshots.items()}
    head = {"fingerprint": digest, "listings": {kind: [*listings[kind], pages[kind]] for kind in pages}}
    return [jsontext.dumps(head), b"\n", *bodies]


def _slices(snapshot: Snapshot, page_size: int) -> Iterator[Slice]:
    """All regular pages. An empty list has one as well."""
    for start in range(0, max(snapshot.total, 1), page_size):
        stop = min(start + page_size, snapshot.total)
        cursor = None
        if stop < snapshot.total:
            cursor = pagination.encode(snapshot.kind, stop, snapshot.hash, snapshot.generated_at)
        yield Slice(start, stop, cursor, True)


def _has_embedded_icons(snapshot: Snapshot) -> bool:
    """Whose picture may lie anywhere in the project, where nobody looks for changes."""
    return any(
        icon.get("src", "").startswith("data:") for item in snapshot.items for icon in item.definition.get("icons", ())
    )
