"""Serve a project's items from immutable snapshots, and check the disk when they may have changed.

`Catalog` decides when to look (time to live, stale marks, back-off after a failure); `tree_scan` looks, and `tools`,
`resources` and `prompts` read, unless the project registers its items by hand (`manual`). When the disk fails, the
last good snapshot is still served. A registration that cannot be used is an error for each request. A static catalog
serves the files in `.registry/` (`static_registry`).

Rule: nothing in here switches greenlets, apart from the `turn` that `refresh` may be given: the scan of a large project
takes a second, and other requests must not wait for it. The scan changes no shared state until it is complete. The
callbacks run when the new state is in place.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from mcpgreen import journal
from mcpgreen.catalog.item_kinds import SOURCE_OF, SOURCES, TITLE_OF, Source, look_at_disk
from mcpgreen.catalog.items import Discovery, comparable
from mcpgreen.catalog.manual.registration import Registrar, Registration
from mcpgreen.catalog.snapshot import RegistryFiles, Snapshot, file_text, listing_changed, snapshot_of, without_dots
from mcpgreen.catalog.tree_scan import UNPACED, Loss, Pace, Tree, nearest, subdirectory
from mcpgreen.errors import InternalError, OutputTooLarge, ProjectError
from mcpgreen.project.project import Project
from mcpgreen.running.scripts.scratch import Storage
from mcpgreen.text.json_types import Json

if TYPE_CHECKING:
    from mcpgreen.catalog.manual.items import CompletionScript

OVERSIZED_ABOVE = 500
FIRST_RETRY_SECS = 1.0
LAST_RETRY_SECS = 60.0


class Scan(NamedTuple):
    """What one scan of a source found. `left_out` counts the items that were left out, by kind; `warnings` is None if
    no file has changed; `texts` are the registry files to write."""

    tree: Tree
    snapshots: dict[str, Snapshot]
    left_out: dict[str, int]
    warnings: list[str] | None = None
    texts: dict[str, bytes] = {}
    hidden: tuple[str, ...] = ()  # see `Loss.hides`


NOTHING = Tree([], (), False, [], {}, UNPACED, 0)


class SourceState:
    """What the catalog knows about one source."""

    def __init__(self) -> None:
        self.scan = Scan(NOTHING, {}, {})  # the last one that succeeded
        self.checked_at = 0.0
        self.changes = 0  # how often the disk may have changed
        self.changes_seen = 0  # by the last scan that succeeded: those before its beginning
        self.failure: str | None = None
        self.refusal: str | None = None  # why the registration cannot be used
        self.has_refused = False  # a client has got this refusal
        self.failures_in_a_row = 0
        self.retry_at: float | None = None
        self.reported: set[str] = set()
        self.oversized: set[str] = set()

    @property
    def snapshots(self) -> dict[str, Snapshot]:
        return self.scan.snapshots


class Catalog:
    """The current items of a project. `on_change` gets a source, its number of items and the snapshots before, when its
    listing changes."""

    def __init__(
        self,
        project: Project,
        *,
        ttl_secs: float,
        max_bytes: int,
        on_change: Callable[[str, int, Mapping[str, Snapshot]], object] = lambda source, total, earlier: None,
        on_warning: Callable[[str], object] = lambda warning: None,
        on_hint: Callable[[str], object] = lambda hint: None,
        clock: Callable[[], float] = time.monotonic,
        only_below: str | None = None,
        storage: Storage | None = None,
        registrar: Registrar | None = None,
        is_static: bool = False,
        writes_files: bool = True,
        replaces_dots: bool = False,
    ) -> None:
        """`is_static`: serve the files in `.registry/`, or what the first scan found, and never look again.
        `replaces_dots`: list tools without the dots in their names."""
        self.project = project
        self.ttl_secs = ttl_secs
        self.max_bytes = max_bytes
        self.on_change = on_change
        self.on_warning = on_warning
        self.on_hint = on_hint
        self.logs_warnings = True
        self.on_look: Callable[[], object] = lambda: None  # called after each scan, before it is used for an answer
        self.only_below = only_below
        self.registrar = registrar
        self.is_static = is_static
        self._writes_files = writes_files
        self._replaces_dots = replaces_dots
        self._clock = clock
        self.is_watched = False  # a file watcher reports changes, so the time to live need not be observed
        self._files = RegistryFiles(project, storage)
        self._states = {name: SourceState() for name in SOURCES}

    def snapshot(self, kind: str) -> Snapshot:
        """Return the items as last seen; call `refresh` first if they have to be current. Scans the disk if that has
        never been done. Raises InternalError if no scan has succeeded, or if the registration cannot be used."""
        source = SOURCE_OF[kind]
        state = self._states[source]
        if not state.snapshots:
            self.refresh(source)
        if state.refusal is not None:
            state.has_refused = True
            raise InternalError(f"Unable to load {TITLE_OF.get(kind, kind)}", data=state.refusal)
        return state.snapshots[kind]

    def hides(self, uri: str, *, is_listed: bool) -> bool:
        """Tell whether a resource or prompt was left out because it may need scopes, or a template that fits."""
        hidden = (*self._states["resources"].scan.hidden, *self._states["prompts"].scan.hidden)
        key = comparable(uri, self.project.root) if hidden else ""
        return key in hidden or (not is_listed and key.startswith(hidden))

    def is_known(self, source: str) -> bool:
        """Tell whether a scan of this source has ever succeeded."""
        return bool(self._states[source].snapshots)

    def is_current(self, source: str) -> bool:
        """Tell whether the result of the last scan may still be used."""
        state = self._states[source]
        if not state.snapshots or self.is_static:
            return bool(state.snapshots)
        is_fresh = self.is_watched or self._clock() - state.checked_at < self.ttl_secs
        return is_fresh and state.changes_seen == state.changes

    def refresh(self, source: str, *, force: bool = False, turn: Callable[[], object] | None = None) -> bool:
        """Look at the disk now; return True if a listing differs from the one before. The first scan is not a change.

        `force` reads everything even if no file seems changed, and does not wait for the end of a back-off. `turn` lets
        other greenlets run meanwhile; the caller makes sure that no second look begins before the first one ends.
        """
        state = self._states[source]
        if self.is_static and state.snapshots and not force:
            return False
        if not force and state.retry_at is not None and self._clock() < state.retry_at:
            return _keep_earlier(state)
        changes = state.changes  # until the end of the scan, and if more come meanwhile, its result is not current
        try:
            registration = self.registrar.current() if self.registrar is not None else None
            scan = self._scan(SOURCES[source], state, registration, Pace(turn), force=force)
            is_changed = state.has_refused or any(
                listing_changed(earlier, scan.snapshots[kind]) for kind, earlier in state.snapshots.items()
            )
        except OSError as error:
            return self._fail(source, f"Unable to list {source}: {error.strerror}", detail=str(error))
        except OutputTooLarge as error:
            return self._fail(source, error.message, detail=error.message)
        except ProjectError as error:
            return self._refuse(source, error)
        before, state.scan = state.snapshots, scan
        state.changes_seen = changes
        state.checked_at = self._clock()
        state.failure = state.refusal = state.retry_at = None
        state.has_refused = False
        state.failures_in_a_row = 0
        self.on_look()
        self._report(state, scan)
        if is_changed:
            self.on_change(source, sum(snapshot.total for snapshot in scan.snapshots.values()), before)
        for kind in TITLE_OF.keys() & scan.snapshots.keys() if self._writes_files else ():
            self._files.write(scan.snapshots[kind], scan.texts.get(kind))
        return is_changed

    def completions(self) -> Mapping[str, CompletionScript]:
        """Return the registered completion scripts by name. Raises InternalError if the registration cannot be used."""
        try:
            registration = self.registrar.current() if self.registrar is not None else None
        except ProjectError as error:
            raise InternalError("Unable to load completion registry", data=self._reason_of(error)) from error
        if registration is None:
            return {}
        from mcpgreen.catalog.manual.items import registered_completions

        return registered_completions(self.project, registration)

    def mark_stale(self) -> None:
        """Look at the disk again before the next answer, whatever the time to live says."""
        for state in self._states.values():
            state.changes += 1

    def retry_at(self) -> float | None:
        """Return when the next scan is due after a failure, by the catalog's clock; None if there was none."""
        return min((state.retry_at for state in self._states.values() if state.retry_at is not None), default=None)

    def watched_directories(self) -> list[str]:
        """Return the directories to watch for changes of the items: those of the last scans, and for a source without a
        directory the place where it would appear."""
        watched: list[str] = []
        for name, state in self._states.items():
            watched += [directory.path for directory in state.scan.tree.directories]
            watched += [nearest(place) for place in SOURCES[name].directories(self.project)]
        return watched if self.registrar is None else [*watched, nearest(self.project.server_dir)]

    def sources_of(self, path: str) -> list[str]:
        """Return the sources that have this subdirectory. Raises ProjectError if there is none."""
        found = []
        for name, source in SOURCES.items():
            try:
                subdirectory(self.project, source.directories(self.project)[0], path)
                found.append(name)
            except ProjectError as error:
                fault = error
        if not found:
            raise fault
        return found

    def status(self, kind: str) -> Json:
        """Return how the last scan went, with `skipped` if items were left out. Does not look at the disk."""
        state = self._states[SOURCE_OF[kind]]
        count = state.snapshots[kind].total if state.snapshots else 0
        verdict = "failed" if state.failure else "ok" if state.snapshots else "skipped"
        status = {"status": verdict, "count": count, "error": state.failure}
        return {**status, "skipped": state.scan.left_out[kind]} if state.scan.left_out.get(kind) else status

    def _scan(
        self, source: Source, state: SourceState, registration: Registration | None, pace: Pace, *, force: bool
    ) -> Scan:
        is_found = registration is None or all(registration.items.get(kind) is None for kind in source.kinds)
        kept = self._kept_items(source, pace) if self.is_static and is_found and not force else None
        earlier_tree = state.scan.tree
        if kept is not None:
            tree, items = NOTHING, kept
        else:
            registered = registration.hash if registration is not None else None
            memory = {} if force else earlier_tree.memory
            tree = look_at_disk(self.project, source, registered, only_below=self.only_below, pace=pace, earlier=memory)
            # A file that was just written may be written again without a new time, so the next look must read it again.
            if not force and earlier_tree.is_settled and tree.fingerprint == earlier_tree.fingerprint:
                return state.scan._replace(tree=tree._replace(memory=earlier_tree.memory), warnings=None, texts={})
            items = source.read(self.project, tree, registration)
        warnings = [warning for found in items.values() for warning in found.warnings]
        hidden = {uri for warning in warnings if isinstance(warning, Loss) for uri in warning.hides}
        scan = Scan(tree, {}, {}, warnings, {}, tuple(comparable(uri, self.project.root) for uri in hidden))
        for kind, found in items.items():
            scan.left_out[kind] = sum(type(warning) is Loss for warning in found.warnings)
            for hint in found.hints:
                self.on_hint(hint)
            earlier = state.snapshots.get(kind)
            names = without_dots(kind, found.items, warnings) if self._replaces_dots else {}
            snapshot = scan.snapshots[kind] = snapshot_of(kind, found.items, earlier, names, is_found=is_found)
            if snapshot is not earlier and kept is None:
                scan.texts[kind] = file_text(snapshot)
                if len(scan.texts[kind]) > self.max_bytes:
                    raise OutputTooLarge(f"Unable to list {kind}: the registry is larger than {self.max_bytes} bytes")
        return scan

    def _kept_items(self, source: Source, pace: Pace) -> dict[str, Discovery] | None:
        """Read the items that are listed in `.registry/`. If the files cannot be used, log why and return None."""
        from mcpgreen.catalog.static_registry import kept_items

        try:
            return {kind: kept_items(self.project, kind, max_bytes=self.max_bytes, pace=pace) for kind in source.kinds}
        except ProjectError as error:
            remedy = "scanning the project instead; to write the file, run mcpgreen scan"
            journal.warning("static_registry: %s; %s", self._reason_of(error), remedy)
            return None

    def _fail(self, source: str, message: str, *, detail: str) -> bool:
        state = self._states[source]
        # The exponent is bounded as well: a server may fail for weeks.
        delay_secs = min(LAST_RETRY_SECS, FIRST_RETRY_SECS * 2 ** min(state.failures_in_a_row, 10))
        state.failures_in_a_row += 1
        state.retry_at = self._clock() + delay_secs
        state.changes += 1
        if state.failure != message:
            journal.error("cannot scan %s; trying again in %g s: %s", source, delay_secs, detail)
        state.failure = message
        return _keep_earlier(state)

    def _refuse(self, source: str, error: ProjectError) -> bool:
        state = self._states[source]
        reason = self._reason_of(error)
        if state.refusal != reason:
            journal.error("unable to load %s: %s", TITLE_OF[source], reason)
        state.failure = state.refusal = reason
        state.changes += 1  # so that each request checks whether it has been corrected
        return False

    def _reason_of(self, error: ProjectError) -> str:
        return f"{self.project.shown(error.path)}: {error.reason}"

    def _report(self, state: SourceState, scan: Scan) -> None:
        """Report the warnings that were not there at the last scan."""
        if scan.warnings is None:
            return
        news = [warning for warning in scan.warnings if warning not in state.reported]
        state.reported = set(scan.warnings)
        oversized = {kind for kind, snapshot in scan.snapshots.items() if snapshot.total > OVERSIZED_ABOVE}
        for kind in oversized - state.oversized:
            what, total = kind[0].upper() + kind[1:], scan.snapshots[kind].total
            news.append(f"{what} registry contains {total} entries; consider manual registration")
        state.oversized = oversized
        for warning in news:
            if self.logs_warnings:
                journal.warning("%s", warning)
            self.on_warning(warning)


def _keep_earlier(state: SourceState) -> bool:
    """Return False, for no change: the earlier snapshots stay in use. Raises InternalError if there are none."""
    if not state.snapshots:
        raise InternalError(state.failure)
    return False
