"""Serve the catalogue from immutable snapshots, and notice when the disk has something else to offer.

`Catalog` decides when to look (time to live, stale marks, back-off after a failure), `discovery` looks. Whatever goes
wrong, the last good snapshot goes on serving. `.registry/<kind>.json` is an output for people and other programs; it is
never read, so a planted one has no effect.

Rule: no call in here may switch greenlets. It is all plain file I/O, which is why a refresh needs no lock: nobody can
see a half-made snapshot or start a second scan meanwhile. The callbacks run last, when the new state stands.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from mcpgreen import journal, jsontext
from mcpgreen.catalog import discovery
from mcpgreen.catalog.discovery import Discovery, Tool, Tree
from mcpgreen.catalog.project import Project
from mcpgreen.errors import InternalError, OutputTooLarge

CROWDED_ABOVE = 500
FIRST_RETRY_SECS = 1.0
LAST_RETRY_SECS = 60.0


class Snapshot(NamedTuple):
    """All items of one kind at one time. `cache` belongs to the layers above: what they derive dies with the items."""

    kind: str
    items: tuple[Tool, ...]
    by_name: Mapping[str, Tool]
    hash: str
    total: int
    generated_at: str
    cache: dict[Any, Any]

    def __repr__(self) -> str:
        return f"<Snapshot {self.kind}: {self.total} items, {self.hash[:12]}>"


class Source(NamedTuple):
    """How one kind is found: a cheap look, the full reading, and the attribute of its directory in `Project`."""

    survey: Callable[..., Tree]
    discover: Callable[..., Discovery]
    directory: str


class Look(NamedTuple):
    """What one refresh found. Without `warnings` the files are as they were; with `text` the registry file is not."""

    tree: Tree
    snapshot: Snapshot
    warnings: list[str] | None
    text: bytes | None


SOURCES = {"tools": Source(discovery.survey, discovery.discover_tools, "tools_dir")}


class Shelf:
    """What the catalog remembers of one kind."""

    def __init__(self) -> None:
        self.snapshot: Snapshot | None = None
        self.fingerprint: tuple[Any, ...] | None = None
        self.directories: list[str] = []
        self.checked_at = 0.0
        self.is_stale = False
        self.is_watched = False
        self.failure: str | None = None
        self.failures_in_a_row = 0
        self.retry_at: float | None = None
        self.told: set[str] = set()
        self.is_crowded = False
        self.is_unwritable = False


class Catalog:
    """The living view of a project's items. `on_change` hears of a kind whose listing differs from the last one."""

    def __init__(
        self,
        project: Project,
        *,
        ttl_secs: float,
        max_bytes: int,
        on_change: Callable[[str, Snapshot], None] | None = None,
        on_warning: Callable[[str], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
        only_below: str | None = None,
    ) -> None:
        self.project = project
        self.ttl_secs = ttl_secs
        self.max_bytes = max_bytes
        self.on_change = on_change
        self.on_warning = on_warning
        self.only_below = only_below
        self._clock = clock
        self._shelves = {kind: Shelf() for kind in SOURCES}

    def snapshot(self, kind: str) -> Snapshot:
        """The items, looked at no longer ago than `ttl_secs`. Raises InternalError if no scan has ever succeeded."""
        shelf = self._shelves[kind]
        if shelf.snapshot is None or shelf.is_stale or self._is_expired(shelf):
            self.refresh(kind)
        assert shelf.snapshot is not None, "refresh raises when it has nothing to serve"
        return shelf.snapshot

    def refresh(self, kind: str, *, force: bool = False) -> bool:
        """Look at the disk now; true if the listing differs from the one before. The first scan is no change.

        `force` reads everything even if no file seems changed, and does not wait for the end of a back-off.
        """
        shelf = self._shelves[kind]
        if not force and shelf.retry_at is not None and self._clock() < shelf.retry_at:
            return _make_do(shelf)
        try:
            look = self._look(kind, shelf, force=force)
        except OSError as error:
            return self._fail(kind, f"Unable to list {kind}: {error.strerror}", detail=str(error))
        except OutputTooLarge as error:
            return self._fail(kind, error.message, detail=error.message)
        is_changed = shelf.snapshot is not None and _is_listed_otherwise(shelf.snapshot, look.snapshot)
        self._keep(shelf, look)
        self._write_file(shelf, look)
        self._tell(shelf, look)
        if is_changed and self.on_change is not None:
            self.on_change(kind, look.snapshot)
        return is_changed

    def mark_stale(self, kind: str) -> None:
        """Something happened on disk: look again before the next answer, whatever the time."""
        self._shelves[kind].is_stale = True

    def trust_until_stale(self, kind: str, is_trusted: bool) -> None:
        """Whether a file watcher reports changes, so that the time to live need not be observed."""
        self._shelves[kind].is_watched = is_trusted

    def retry_at(self, kind: str) -> float | None:
        """When the next scan is due after a failed one, by the catalog's clock; None if the last one went well."""
        return self._shelves[kind].retry_at

    def watched_directories(self, kind: str) -> list[str]:
        """The directories in which a change may change the items: those of the last walk, or where the first of them
        would have to appear."""
        place: str = getattr(self.project, SOURCES[kind].directory)
        while not os.path.isdir(place) and place != os.path.dirname(place):
            place = os.path.dirname(place)
        return list(self._shelves[kind].directories) or [place]

    def status(self, kind: str) -> dict[str, Any]:
        """How the last scan went. Looks at nothing."""
        shelf = self._shelves[kind]
        count = shelf.snapshot.total if shelf.snapshot else 0
        verdict = "failed" if shelf.failure else "ok" if shelf.snapshot else "skipped"
        return {"status": verdict, "count": count, "error": shelf.failure}

    def _is_expired(self, shelf: Shelf) -> bool:
        return not shelf.is_watched and self._clock() - shelf.checked_at >= self.ttl_secs

    def _look(self, kind: str, shelf: Shelf, *, force: bool) -> Look:
        source = SOURCES[kind]
        tree = source.survey(self.project, only_below=self.only_below)
        if not force and shelf.snapshot is not None and tree.fingerprint == shelf.fingerprint:
            return Look(tree, shelf.snapshot, None, None)
        found = source.discover(self.project, tree=tree)
        digest = jsontext.digest([item.registry_entry for item in found.items])
        if shelf.snapshot is not None and _is_same(shelf.snapshot, digest, found.items):
            return Look(tree, shelf.snapshot, found.warnings, None)
        snapshot = _snapshot_of(kind, found.items, digest)
        text = _file_text(snapshot)
        if len(text) > self.max_bytes:
            raise OutputTooLarge(f"Unable to list {kind}: the registry is larger than {self.max_bytes} bytes")
        return Look(tree, snapshot, found.warnings, text)

    def _keep(self, shelf: Shelf, look: Look) -> None:
        shelf.snapshot = look.snapshot
        # A file written in the very tick of our look may be written again without its times changing: look again.
        shelf.fingerprint = look.tree.fingerprint if look.tree.is_settled else None
        shelf.directories = [directory.path for directory in look.tree.directories]
        shelf.checked_at = self._clock()
        shelf.is_stale = False
        shelf.failure = shelf.retry_at = None
        shelf.failures_in_a_row = 0

    def _fail(self, kind: str, message: str, *, detail: str) -> bool:
        shelf = self._shelves[kind]
        # The exponent is bounded as well: a server may fail for weeks.
        delay_secs = min(LAST_RETRY_SECS, FIRST_RETRY_SECS * 2 ** min(shelf.failures_in_a_row, 10))
        shelf.failures_in_a_row += 1
        shelf.retry_at = self._clock() + delay_secs
        shelf.is_stale = True
        if shelf.failure != message:
            journal.error("scan of %s failed, next try in %g s: %s", kind, delay_secs, detail)
        shelf.failure = message
        return _make_do(shelf)

    def _write_file(self, shelf: Shelf, look: Look) -> None:
        path = os.path.join(self.project.registry_dir, f"{look.snapshot.kind}.json")
        if look.text is None and (shelf.is_unwritable or os.path.exists(path)):
            return
        try:
            os.makedirs(self.project.registry_dir, mode=0o700, exist_ok=True)
            _replace_file(path, look.text or _file_text(look.snapshot))
        except OSError as error:
            if not shelf.is_unwritable:
                journal.warning("%s cannot be written: %s; the server does not need it", path, error.strerror)
            shelf.is_unwritable = True
        else:
            shelf.is_unwritable = False

    def _tell(self, shelf: Shelf, look: Look) -> None:
        """Report what has not been reported yet; what was mended and breaks again is news."""
        if look.warnings is None:
            return
        news = [warning for warning in look.warnings if warning not in shelf.told]
        shelf.told = set(look.warnings)
        kind, total = look.snapshot.kind, look.snapshot.total
        if total > CROWDED_ABOVE and not shelf.is_crowded:
            news.append(f"{kind.capitalize()} registry contains {total} entries; consider manual registration")
        shelf.is_crowded = total > CROWDED_ABOVE
        for warning in news:
            journal.warning("%s", warning)
            if self.on_warning is not None:
                self.on_warning(warning)


def _make_do(shelf: Shelf) -> bool:
    if shelf.snapshot is None:
        raise InternalError(shelf.failure)
    return False


def _is_listed_otherwise(earlier: Snapshot, latest: Snapshot) -> bool:
    """Whether a client would see a difference. A new timeout or path makes a new hash, but not a new listing."""
    # As text, because to Python 1, 1.0 and True are equal, and to a client they are not.
    return earlier.hash != latest.hash and (
        jsontext.dumps([item.definition for item in earlier.items])
        != jsontext.dumps([item.definition for item in latest.items])
    )


def _is_same(snapshot: Snapshot, digest: str, items: list[Tool]) -> bool:
    # The executable bit is no part of a registry entry, but it decides how the tool is started.
    return snapshot.hash == digest and [item.command for item in snapshot.items] == [item.command for item in items]


def _snapshot_of(kind: str, items: list[Tool], digest: str) -> Snapshot:
    return Snapshot(
        kind=kind,
        items=tuple(items),
        by_name={item.name: item for item in items},
        hash=digest,
        total=len(items),
        generated_at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        cache={},
    )


def _file_text(snapshot: Snapshot) -> bytes:
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


def _replace_file(path: str, text: bytes) -> None:
    """Readers see the old file or the new one, never a part."""
    directory, name = os.path.split(path)
    draft = os.path.join(directory, f".{name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with open(descriptor, "wb") as file:
            file.write(text)
        os.replace(draft, path)
    except OSError:
        os.unlink(draft)  # a full disk should not keep half a file as well
        raise
