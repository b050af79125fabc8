"""Answer the first lists before the engine is there, from what an earlier start kept or by a look at the project.

Nothing here waits: what would have to (`register.sh`), and whatever is odd, is left to the engine. It goes on with the
same `Catalog`, so what was seen here is not read again, and what changes from now on is noticed by the same comparison.

Rule: a list is as of the moment in which it was asked for, so each answer looks at the disk.
"""

from __future__ import annotations

import os

from mcpgreen.catalog.item_kinds import SOURCE_OF, SOURCES, look_at_disk, look_at_kept, registry_file
from mcpgreen.catalog.lists.page_store import KeptPages, PageStore, digest_of, page_store
from mcpgreen.catalog.lists.pages import KINDS, Terms, page, wanted
from mcpgreen.catalog.pace import Pace
from mcpgreen.errors import RpcError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from mcpgreen.catalog.catalog import Catalog
    from mcpgreen.catalog.manual.current import Registrar
    from mcpgreen.project.project import Project
    from mcpgreen.protocol.revisions import Revision
    from mcpgreen.settings.settings import Settings


class EarlyLists:
    """The lists of one project until the engine takes over, and then what it has to know of them."""

    def __init__(self, project: Project, settings: Settings, info: dict[str, Any], environ: Mapping[str, str]) -> None:
        """`environ` is that of whoever started the server, without the project's own variables."""
        self.project = project
        self.settings = settings
        self.terms = Terms(settings.page_size, settings.max_response_bytes, info)
        self.store = _store(project, settings, self.terms, environ)
        self.catalog: Catalog | None = None  # once something had to be read
        self.registrar: Registrar | None = None
        self.answered: dict[str, str] = {}  # by kind: the hash of a listing that was answered by what was kept
        self.warnings: list[str] = []  # that no client has heard of
        self.changed: dict[str, int] = {}  # sources that were listed otherwise since, and how much is listed now
        self._kept: dict[str, KeptPages | None] = {}

    def page(self, method: str, params: dict[str, Any], revision: Revision, turn: Callable[[], object]) -> bytes | None:
        """The result, encoded; None if it is for the engine to say. `turn` is called now and then, and may raise."""
        kind = KINDS[method]
        try:
            if not self._is_registered():
                kept = self._kept_page(kind, params, revision, turn)
                if kept is not None:
                    return kept
            elif self.registrar is None:
                from mcpgreen.catalog.manual.current import Registrar

                self.registrar = Registrar(self.project, settings=self.settings)
            if self.registrar is not None and self.registrar.is_hook_due():
                return None
            return self._page_now(kind, params, revision, turn)
        except (RpcError, OSError):
            return None

    def _is_registered(self) -> bool:
        """Whether the project may register items by hand: of that nothing is kept."""
        names = ("register.json", "register.sh") if self.settings.allow_project_hooks else ("register.json",)
        return any(os.path.lexists(self.project.server_file(name)) for name in names)

    def _kept_page(
        self, kind: str, params: dict[str, Any], revision: Revision, turn: Callable[[], object]
    ) -> bytes | None:
        source = SOURCE_OF[kind]
        if self.catalog is not None and self.catalog.is_known(source):
            return None
        kept = self._kept_of(source)
        listing = kept.listings.get(kind) if kept is not None else None
        if kept is None or listing is None:
            return None
        some = wanted(listing, params, self.terms.page_size)
        body = kept.page(listing, revision.name, some.start, some.stop) if some.is_regular else None
        if body is None or digest_of(self._fingerprint(source, Pace(turn))) != kept.fingerprint:
            return None
        self.answered[kind] = listing.hash
        return body

    def _kept_of(self, source: str) -> KeptPages | None:
        if source not in self._kept:
            self._kept[source] = self.store.read(source) if self.store is not None else None
        return self._kept[source]

    def _fingerprint(self, source: str, pace: Pace) -> tuple[Any, ...]:
        project, place = self.project, SOURCES[source]
        if not self.settings.static_registry:
            return look_at_disk(project, place, pace=pace).fingerprint
        ground = project.ground(project.registry_dir)
        for kind in place.kinds:
            if ground.problem_with(registry_file(project, kind), may_be_link=False):
                return ()
        return look_at_kept(project, place, pace=pace).fingerprint

    def _page_now(self, kind: str, params: dict[str, Any], revision: Revision, turn: Callable[[], object]) -> bytes:
        catalog = self.catalog
        if catalog is None:
            catalog = self.catalog = catalog_of(self.project, self.settings, answered=self.answered)
            catalog.on_change = self.changed.__setitem__
            catalog.on_warning = self.warnings.append
        catalog.registrar = self.registrar
        catalog.refresh(SOURCE_OF[kind], turn=turn, writes_files=False)
        return page(catalog.snapshot(kind), revision, params, self.terms)


def catalog_of(project: Project, settings: Settings, *, answered: Mapping[str, str] | None = None) -> Catalog:
    """As a server needs it. `answered`: see `Catalog`."""
    from mcpgreen.catalog.catalog import Catalog

    return Catalog(
        project,
        ttl_secs=settings.tools_ttl,
        max_bytes=settings.registry_max_bytes,
        is_static=settings.static_registry,
        answered=answered,
    )


def _store(project: Project, settings: Settings, terms: Terms, environ: Mapping[str, str]) -> PageStore | None:
    if not settings.list_cache:
        return None
    depends_on = [*terms, settings.registry_max_bytes, settings.static_registry]
    return page_store(environ, project, depends_on=depends_on)
