"""The whole server: builds its parts from settings and project, opens sessions and links, and shuts down cleanly.

No file descriptors, sockets or signals: a transport calls `connect` with a stream and feeds the link. There is no
module-level state, so two servers can run in one process.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property, partial
from typing import TYPE_CHECKING, NamedTuple

import gevent

from mcpgreen import journal
from mcpgreen.catalog.catalog import Catalog
from mcpgreen.catalog.manual.registration import Registrar
from mcpgreen.catalog.snapshot import Snapshot
from mcpgreen.catalog.tree_scan import Loss
from mcpgreen.engine.changes import ChangeWatch
from mcpgreen.engine.link import Link, stop_stream
from mcpgreen.engine.router import Router
from mcpgreen.errors import Denied, RpcError
from mcpgreen.features.services import Services
from mcpgreen.links.session import Session, Stream
from mcpgreen.links.sink import MemorySink
from mcpgreen.project.project import Project
from mcpgreen.project.roots import Roots, configured_roots, refused_directories
from mcpgreen.protocol.admission import Handshake, Identity
from mcpgreen.running.disk_watcher import DiskWatcher
from mcpgreen.running.scripts import temporary
from mcpgreen.running.scripts.scratch import Storage
from mcpgreen.running.system import descriptor_limit, scripts_that_fit
from mcpgreen.settings.settings import Settings

if TYPE_CHECKING:
    from mcpgreen.engine.observing import Observation
    from mcpgreen.protocol.token import RemoteToken

OBSERVED_AFTER_SECS = 0.2  # the client's first requests go first
MAX_NAMES = 20  # of items, in an event


class Load(NamedTuple):
    """How many calls run, how many wait for a slot, and how many listens and links are open."""

    running: int
    waiting: int
    listens: int
    links: int


class Server:
    """One project, served."""

    def __init__(
        self,
        settings: Settings,
        project: Project,
        *,
        environ: Mapping[str, str],
        identity: Identity | None = None,
        roots: Roots | None = None,
    ) -> None:
        identity = identity or Identity(project.server_info(), project.instructions())
        settings = _within_descriptors(settings)
        environ = temporary.with_usable_tmpdir(environ)
        storage = Storage(on_news=partial(self._log, "mcp.storage"))
        self._links: dict[Link, None] = {}
        self._sessions: set[Session] = set()
        registrar = Registrar(project, settings=settings)
        catalog = Catalog(
            project,
            ttl_secs=settings.tools_ttl,
            max_bytes=settings.registry_max_bytes,
            is_static=settings.is_static,
            on_change=self._on_change,
            on_warning=self._on_warning,
            storage=storage,
            registrar=registrar,
            replaces_dots=settings.replace_dots,
        )
        self._disk = DiskWatcher(uses_events=settings.watch_files != "poll")
        self._changes = ChangeWatch(
            catalog, settings, registrar=registrar, run_hook=lambda hook: self.services.shell.run(hook), disk=self._disk
        )
        self.services = Services(
            settings=settings,
            project=project,
            environ=environ,
            identity=identity,
            roots=roots or configured_roots(project.root, settings.roots),
            catalog=catalog,
            snapshot=self._changes.snapshot,
            disk=self._disk,
            storage=storage,
        )
        self._router = Router(self.services, self._changes)
        self.transport = "in-process"  # how clients reach it
        self._observing: gevent.Greenlet | None = None
        if settings.tasks == "off":  # looked up apart: what is seen before the hook has run is no change for clients
            apart = Catalog(project, ttl_secs=0, max_bytes=settings.registry_max_bytes, writes_files=False)
            apart.is_static, apart.registrar, apart.logs_warnings = settings.is_static, registrar, False
            self._offer_tasks(apart)
        for path in refused_directories(project, settings):
            journal.warning("resources_roots: %s is ignored: files in /proc, /sys and /dev are never served", path)

    @cached_property
    def observation(self) -> Observation:
        from mcpgreen.engine.observing import Observation

        return Observation(self)

    def observe(self, transport: str) -> None:
        """Let viewers look into the server, soon, as far as the settings allow it."""
        self.transport, settings = transport, self.services.settings
        if settings.observe == "on" or settings.otel:
            self._observing = gevent.spawn_later(OBSERVED_AFTER_SECS, lambda: self.observation.begin())
        else:
            self.services.events.take_early()

    def add_session(self, session: Session) -> None:
        """Serve a new session, until `close_session`."""
        self._sessions.add(session)
        session.link = self.services.next_link()
        self.services.subscriptions.add_session(session)

    def close_session(self, session: Session) -> None:
        """Close a session; a closed one is left alone."""
        if session not in self._sessions:
            return
        self._sessions.remove(session)
        session.close()
        self.services.subscriptions.remove_session(session)
        self.services.end_session(session)
        why = str(session.ended.value) if session.ended.ready() else "closed"
        self.services.events.tell("closed", None, {"link": session.link, "why": why})

    def end_session(self, session: Session) -> None:
        """End a session as its client wants: stop everything on all of its streams, then close it."""
        for stream in list(session.streams):
            stop_stream(stream, self.services.subscriptions)
        self.close_session(session)

    def connect(
        self,
        stream: Stream,
        session: Session | None = None,
        *,
        token: RemoteToken | None = None,
        handshake: Handshake | None = None,
    ) -> Link:
        """Open another stream of a session, or the only one of a new session, which ends with it. Raises Denied for the
        session of another caller."""
        is_own = session is None
        if session is None:
            settings, roots, principal = self.services.settings, self.services.roots, stream.principal
            session = Session(stream.sink, settings, roots, handshake, needs_token=bool(token), principal=principal)
            self.add_session(session)
        elif session.principal != stream.principal:
            raise Denied("This session belongs to another caller.")
        session.streams.add(stream)
        stream.link = session.link
        if handshake is not None and handshake.view is not None:
            self.services.meet(stream, handshake.view, session)
        return self._linked(session, stream, token, owns_session=is_own)

    def connect_stateless(self, stream: Stream, token: RemoteToken | None) -> Link:
        """Open a stream without a session: each request on it describes its client."""
        return self._linked(self._without_session, stream, token, owns_session=False)

    def _linked(self, session: Session, stream: Stream, token: RemoteToken | None, *, owns_session: bool) -> Link:
        link = Link(self._router, session, stream, token=token, owns_session=owns_session)
        self._links[link] = None
        return link

    @cached_property
    def _without_session(self) -> Session:
        """Stands for a session where there is none: it has no handshake, and no streams that could be mixed up."""
        return Session(MemorySink(), self.services.settings, self.services.roots)

    def watch(self) -> None:
        """Begin to notice changes on disk, and recover tasks, unless the server offers nothing that is on disk."""
        if "tools" in self.services.offered:
            self._changes.start()
            self.services.recover_tasks()

    def disconnect(self, link: Link) -> None:
        """Close a link and cancel what it has in flight; a closed one is left alone. Parked calls stay, because the
        client may come back by another link."""
        if link not in self._links:
            return
        del self._links[link]
        link.close()
        if link.owns_session:
            self.close_session(link.session)

    @property
    def is_busy(self) -> bool:
        """Whether a client waits for an answer."""
        return any(link.stream.in_flight for link in self._links)

    @property
    def load(self) -> Load:
        services = self.services
        return Load(self._router.running, len(services.waiting), len(services.subscriptions), len(self._links))

    def end_listens(self) -> None:
        """End the listens of all links in good order."""
        for link in list(self._links):
            link.close_listens()

    def stop(self, *, is_client_gone: bool = False) -> None:
        """End everything: links, tasks, scripts, watchers, temporary files."""
        for link in list(self._links):
            self.disconnect(link)
        for session in list(self._sessions):
            self.close_session(session)
        if self._observing is not None:
            self._observing.kill(block=False)
        if "observation" in self.__dict__:
            self.observation.close()
        self._changes.stop()
        self._disk.close()
        self.services.close(is_client_gone=is_client_gone)

    def _on_warning(self, warning: str) -> None:
        self._log("mcp.registry", "warning", warning)
        if isinstance(warning, Loss):
            item, _, reason = warning.partition(": ")
            told = {"source": item.partition("/")[0], "item": item, "reason": reason}
            self.services.events.tell("left out", None, told)

    def _on_change(self, source: str, total: int, earlier: Mapping[str, Snapshot]) -> None:
        journal.info("%s changed: %d listed", source, total)
        catalog = self.services.catalog
        old = {item.name: item.definition for snapshot in earlier.values() for item in snapshot.items}
        new = {item.name: item.definition for kind in earlier for item in catalog.snapshot(kind).items}
        names = {"added": new.keys() - old.keys(), "removed": old.keys() - new.keys()}
        names["changed"] = {name for name in old.keys() & new.keys() if old[name] != new[name]}
        told = {what: sorted(some)[:MAX_NAMES] for what, some in names.items()}
        why = "file events" if catalog.is_watched else "a look at the disk"
        self.services.events.tell("changed", None, {"source": source, **told, "why": why})
        if source == "tools" and self.services.settings.tasks == "off":
            self._offer_tasks(catalog)
        self.services.subscriptions.list_changed(source)

    def _offer_tasks(self, catalog: Catalog) -> None:
        """Offer tasks only if the description of a tool wants them."""
        with suppress(RpcError):
            tools = catalog.snapshot("tools").items if "tools" in self.services.offered else ()
            self.services.offers_tasks = any(tool.description.task not in (None, "never") for tool in tools)

    def _log(self, logger: str, level: str, text: str) -> None:
        for session in self._sessions:
            session.log(level, logger, text)


def _within_descriptors(settings: Settings) -> Settings:
    """Lower the number of concurrent scripts to what descriptors allow, so that the others wait and do not fail."""
    limit = descriptor_limit()
    fitting = scripts_that_fit(settings.max_concurrent_requests, limit)
    if fitting == settings.max_concurrent_requests:
        return settings
    journal.warning(
        "the open-file limit is %d, so only %d scripts can run at a time instead of %d; raise it with ulimit -n",
        limit,
        fitting,
        settings.max_concurrent_requests,
    )
    return settings.with_values(max_concurrent_requests=fitting)
