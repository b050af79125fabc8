"""Serve the catalogue from immutable snapshots, and notice when the disk has something else to offer.

`Catalog` decides when to look (time to live, stale marks, back-off after a failure); `tree_scan` looks, and `tools`,
`resources` and `prompts` read, unless the project registers its items by hand (`manual`). Whatever goes wrong with
the disk, the last good snapshot goes on serving; a registration that cannot be used is an error for whoever asks.
`.registry/<kind>.json` is an output for people and other programs. Only a static catalog reads it (`kept`), if it is to
be trusted as a tool is; else a planted one has no effect.

Rule: nothing in here switches greenlets, apart from the `turn` that `refresh` may be given: a look at a large project
takes a second, which nobody should have to wait for. Such a look works on what nobody else has, and a second one may
begin meanwhile; of two, the one that began last counts. The callbacks run when the new state stands.
"""

from __future__ import annotations

import time

from mcpgreen import journal
from mcpgreen.catalog.item_kinds import SOURCE_OF, SOURCES, TITLE_OF, Source, look_at_disk, look_at_kept, registry_file
from mcpgreen.catalog.items import Discovery, Loss
from mcpgreen.catalog.lists.registry_files import RegistryFiles
from mcpgreen.catalog.pace import Pace
from mcpgreen.catalog.shelf import Look, Shelf
from mcpgreen.catalog.snapshot import Snapshot, file_text, is_listed_otherwise, snapshot_of
from mcpgreen.catalog.tree_scan import Tree, nearest, subdirectory
from mcpgreen.errors import InternalError, OutputTooLarge, ProjectError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from mcpgreen.catalog.manual.current import Registrar
    from mcpgreen.catalog.manual.items import CompletionScript
    from mcpgreen.catalog.manual.rules import Registration
    from mcpgreen.project.project import Project
    from mcpgreen.running.storage import Storage

CROWDED_ABOVE = 500
FIRST_RETRY_SECS = 1.0
LAST_RETRY_SECS = 60.0
LONG_SECS = 0.03  # what nobody should wait for who has not asked for it


class Catalog:
    """The living view of a project's items. `on_change` hears of a source whose listing differs from the last one, and
    how much is listed now."""

    def __init__(
        self,
        project: Project,
        *,
        ttl_secs: float,
        max_bytes: int,
        on_change: Callable[[str, int], object] = lambda source, total: None,
        on_warning: Callable[[str], object] = lambda warning: None,
        on_hint: Callable[[str], object] = lambda hint: None,
        clock: Callable[[], float] = time.monotonic,
        only_below: str | None = None,
        storage: Storage | None = None,
        registrar: Registrar | None = None,
        is_static: bool = False,
        answered: Mapping[str, str] | None = None,
    ) -> None:
        """`is_static`: what `.registry/` has is served, or what has been read once, and never looked at again.
        `answered`: the hashes of listings, by kind, that clients have been given before the first look here."""
        self.project = project
        self.ttl_secs = ttl_secs
        self.max_bytes = max_bytes
        self.on_change = on_change
        self.on_warning = on_warning
        self.on_hint = on_hint
        self.on_look: Callable[[], object] = lambda: None  # hears of each look, before anybody is answered by it
        self.only_below = only_below
        self.registrar = registrar
        self.is_static = is_static
        self._clock = clock
        self.files = RegistryFiles(project, storage)
        self._answered = answered or {}
        self._shelves = {name: Shelf() for name in SOURCES}

    def snapshot(self, kind: str) -> Snapshot:
        """The items, looked at no longer ago than `ttl_secs`, unless a look takes long: then those that are known, and
        whoever wants the latest refreshes first. Raises InternalError if no scan has ever succeeded, or if the
        project's registration cannot be used."""
        source = SOURCE_OF[kind]
        shelf = self._shelves[source]
        if not shelf.snapshots or (self._is_old(shelf) and shelf.busy_secs < LONG_SECS):
            self.refresh(source)
        if shelf.refusal is not None:
            shelf.has_refused = True
            raise InternalError(f"Unable to load {TITLE_OF[kind]}", data=shelf.refusal)
        return shelf.snapshots[kind]

    def is_known(self, source: str) -> bool:
        """Whether there is anything to answer with."""
        return bool(self._shelves[source].snapshots)

    def takes_long(self, source: str) -> bool:
        """Whether it would hold up others to look now, and a look is due."""
        shelf = self._shelves[source]
        if not shelf.snapshots:
            return True
        return not self.is_static and shelf.busy_secs >= LONG_SECS and self._is_old(shelf)

    def has_looked_since(self, source: str, began_at: float) -> bool:
        """Whether a look that counts began then or later, by the catalog's clock."""
        return self._shelves[source].began_at >= began_at

    def refresh(
        self,
        source: str,
        *,
        force: bool = False,
        turn: Callable[[], object] | None = None,
        writes_files: bool = True,
    ) -> bool:
        """Look at the disk now; true if a listing differs from the one before. The first scan is no change, unless
        somebody has been answered otherwise already.

        `force` reads everything even if no file seems changed, and does not wait for the end of a back-off. With a
        `turn` others have theirs meanwhile. Without `writes_files` the next look writes them.
        """
        shelf = self._shelves[source]
        if self.is_static and shelf.snapshots and not force:
            return False
        if not force and shelf.retry_at is not None and self._clock() < shelf.retry_at:
            return _make_do(shelf)
        began_at = self._clock()
        shelf.looks += 1
        number, times_stale = shelf.looks, shelf.times_stale
        try:
            registration = self.registrar.current() if self.registrar is not None else None
            pace = Pace(turn)  # only now: a server runs the hook elsewhere, so its time says nothing of the next look
            look = self._look(source, shelf, registration, pace, force=force)
            is_changed = shelf.has_refused or self._is_news(shelf, look, pace)
        except OSError as error:
            return self._fail(source, f"Unable to list {source}: {error.strerror}", detail=str(error))
        except OutputTooLarge as error:
            return self._fail(source, error.message, detail=error.message)
        except ProjectError as error:
            return self._refuse(source, error)
        if number != shelf.looks and shelf.began_at >= began_at:
            return False  # a look that began later is over already
        self._keep(shelf, look)
        shelf.began_at = began_at
        # A look that finds nothing new is quick; the next one may not be.
        shelf.busy_secs = pace.busy_secs if look.warnings is not None else max(shelf.busy_secs, pace.busy_secs)
        shelf.is_stale = shelf.times_stale != times_stale  # what has happened since the look began is not in it
        self.on_look()
        self._tell(shelf, look)
        if is_changed:
            self.on_change(source, sum(snapshot.total for snapshot in look.snapshots.values()))
        # Last, as it may take turns, and whoever looks may be stopped meanwhile.
        for snapshot in look.snapshots.values():
            if writes_files:
                self.files.write(shelf, snapshot, look.texts.get(snapshot.kind), pace)
            elif snapshot.kind in look.texts:
                shelf.files_due.add(snapshot.kind)
        return is_changed

    def write_files(self) -> None:
        """Those that are due: of a catalog that will not look again."""
        for shelf in self._shelves.values():
            self.files.write_due(shelf)

    def keepable(self, source: str) -> tuple[tuple[Any, ...], float, Mapping[str, Snapshot]] | None:
        """The fingerprint of the last look, how many seconds old the youngest file was, and the snapshots; None if they
        depend on anything else."""
        shelf = self._shelves[source]
        if shelf.fingerprint is None or shelf.is_registered or shelf.failure is not None:
            return None
        from mcpgreen.project.icons import LEFT_OUT

        if any(LEFT_OUT in warning for warning in shelf.told):
            return None  # its picture may appear anywhere in the project
        return shelf.fingerprint, shelf.age_ns / 1e9, shelf.snapshots

    def completions(self) -> Mapping[str, CompletionScript]:
        """The registered completion scripts by name. Raises InternalError if the registration cannot be used."""
        try:
            registration = self.registrar.current() if self.registrar is not None else None
        except ProjectError as error:
            raise InternalError("Unable to load completion registry", data=self._reason_of(error)) from error
        if registration is None:
            return {}
        from mcpgreen.catalog.manual.items import registered_completions

        return registered_completions(self.project, registration)

    def mark_stale(self) -> None:
        """Something happened on disk: look again before the next answer, whatever the time."""
        for shelf in self._shelves.values():
            shelf.is_stale = True
            shelf.times_stale += 1

    def trust_until_stale(self, is_trusted: bool) -> None:
        """Whether a file watcher reports changes, so that the time to live need not be observed."""
        for shelf in self._shelves.values():
            shelf.is_watched = is_trusted

    def retry_at(self) -> float | None:
        """When the next scan is due after a failed one, by the catalog's clock; None if all went well."""
        return min((shelf.retry_at for shelf in self._shelves.values() if shelf.retry_at is not None), default=None)

    def watched_directories(self) -> list[str]:
        """The directories in which a change may change the items: those of the last walks, or where the first of them
        would have to appear."""
        watched: list[str] = []
        for name, shelf in self._shelves.items():
            watched += shelf.directories
            watched += [nearest(place) for place in SOURCES[name].directories(self.project)]
        return watched if self.registrar is None else [*watched, nearest(self.project.server_dir)]

    def sources_of(self, path: str) -> list[str]:
        """The sources in whose directory this subdirectory lies. Raises ProjectError if there is none."""
        faults: list[ProjectError] = []
        found = []
        for name, source in SOURCES.items():
            try:
                subdirectory(self.project, source.directories(self.project)[0], path)
                found.append(name)
            except ProjectError as error:
                faults.append(error)
        if not found:
            raise faults[0]
        return found

    def status(self, kind: str) -> dict[str, Any]:
        """How the last scan went; `skipped` only if items were left out. Looks at nothing."""
        shelf = self._shelves[SOURCE_OF[kind]]
        count = shelf.snapshots[kind].total if shelf.snapshots else 0
        verdict = "failed" if shelf.failure else "ok" if shelf.snapshots else "skipped"
        status = {"status": verdict, "count": count, "error": shelf.failure}
        return {**status, "skipped": shelf.left_out[kind]} if shelf.left_out.get(kind) else status

    def _is_old(self, shelf: Shelf) -> bool:
        return shelf.is_stale or (not shelf.is_watched and self._clock() - shelf.checked_at >= self.ttl_secs)

    def _is_news(self, shelf: Shelf, look: Look, pace: Pace) -> bool:
        """Whether a client that asked before would see a difference."""
        if shelf.snapshots:
            return any(is_listed_otherwise(each, look.snapshots[kind], pace) for kind, each in shelf.snapshots.items())
        return any(self._answered.get(kind, each.hash) != each.hash for kind, each in look.snapshots.items())

    def _look(self, name: str, shelf: Shelf, registration: Registration | None, pace: Pace, *, force: bool) -> Look:
        source = SOURCES[name]
        is_found = registration is None or all(registration.items.get(kind) is None for kind in source.kinds)
        kept = self._kept(source, pace) if self.is_static and is_found and not force else None
        if kept is not None:
            tree, items = kept
        else:
            registered = registration.hash if registration is not None else None
            tree = look_at_disk(self.project, source, registered=registered, only_below=self.only_below, pace=pace)
            if not force and shelf.snapshots and tree.fingerprint == shelf.fingerprint:
                return Look(tree, shelf.snapshots, None, {}, shelf.left_out, shelf.is_registered)
            items = source.read(self.project, tree, registration)
        warnings = [warning for found in items.values() for warning in found.warnings]
        seen = Look(tree, {}, warnings, {}, {}, registration is not None)
        for kind, found in items.items():
            seen.left_out[kind] = sum(type(warning) is Loss for warning in found.warnings)
            for hint in found.hints:
                self.on_hint(hint)
            earlier = shelf.snapshots.get(kind)
            snapshot = seen.snapshots[kind] = snapshot_of(kind, found.items, earlier, pace, is_found=is_found)
            if snapshot is not earlier and kept is None:
                seen.texts[kind] = file_text(snapshot, pace)
                if sum(map(len, seen.texts[kind])) > self.max_bytes:
                    raise OutputTooLarge(f"Unable to list {kind}: the registry is larger than {self.max_bytes} bytes")
        return seen

    def _kept(self, source: Source, pace: Pace) -> tuple[Tree, dict[str, Discovery]] | None:
        """What an earlier look left in `.registry/`; None, and a word of why, if one has to look again."""
        from mcpgreen.catalog.kept import kept_items

        try:
            try:
                tree = look_at_kept(self.project, source, pace=pace)
            except OSError:
                tree = Tree([], (), False, [], {}, pace)  # as strange as a missing file, which is told below
            return tree, {
                kind: kept_items(
                    self.project, kind, registry_file(self.project, kind), max_bytes=self.max_bytes, pace=pace
                )
                for kind in source.kinds
            }
        except ProjectError as error:
            remedy = "the project is read instead; mcpgreen scan writes the file"
            journal.warning("static_registry: %s; %s", self._reason_of(error), remedy)
            return None

    def _keep(self, shelf: Shelf, look: Look) -> None:
        shelf.snapshots = look.snapshots
        shelf.left_out = look.left_out
        # A file written in the very tick of our look may be written again without its times changing: look again.
        shelf.fingerprint = look.tree.fingerprint if look.tree.is_settled else None
        shelf.age_ns = look.tree.age_ns
        shelf.is_registered = look.is_registered
        shelf.directories = [directory.path for directory in look.tree.directories]
        shelf.checked_at = self._clock()
        shelf.failure = shelf.refusal = shelf.retry_at = None
        shelf.has_refused = False
        shelf.failures_in_a_row = 0

    def _fail(self, source: str, message: str, *, detail: str) -> bool:
        shelf = self._shelves[source]
        # The exponent is bounded as well: a server may fail for weeks.
        delay_secs = min(LAST_RETRY_SECS, FIRST_RETRY_SECS * 2 ** min(shelf.failures_in_a_row, 10))
        shelf.failures_in_a_row += 1
        shelf.retry_at = self._clock() + delay_secs
        shelf.is_stale = True
        if shelf.failure != message:
            journal.error("scan of %s failed, next try in %g s: %s", source, delay_secs, detail)
        shelf.failure = message
        return _make_do(shelf)

    def _refuse(self, source: str, error: ProjectError) -> bool:
        shelf = self._shelves[source]
        reason = self._reason_of(error)
        if shelf.refusal != reason:
            journal.error("unable to load %s: %s", TITLE_OF[source], reason)
        shelf.failure = shelf.refusal = reason
        shelf.is_stale = True  # whether it has been mended is looked at each time
        return False

    def _reason_of(self, error: ProjectError) -> str:
        return f"{self.project.shown(error.path)}: {error.reason}"

    def _tell(self, shelf: Shelf, look: Look) -> None:
        """Report what has not been reported yet; what was mended and breaks again is news."""
        if look.warnings is None:
            return
        news = [warning for warning in look.warnings if warning not in shelf.told]
        shelf.told = set(look.warnings)
        crowded = {kind: snapshot.total for kind, snapshot in look.snapshots.items() if snapshot.total > CROWDED_ABOVE}
        for kind in crowded.keys() - shelf.crowded:
            what = kind[0].upper() + kind[1:]
            news.append(f"{what} registry contains {crowded[kind]} entries; consider manual registration")
        shelf.crowded = set(crowded)
        for warning in news:
            journal.warning("%s", warning)
            self.on_warning(warning)


def _make_do(shelf: Shelf) -> bool:
    if not shelf.snapshots:
        raise InternalError(shelf.failure)
    return False
