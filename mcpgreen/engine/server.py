"""The server as a whole: builds the parts from settings and project, watches the disk, stops in good order.

No file descriptors, sockets or signals: a transport calls `connect` with a sink and feeds the link. There is no
module-level state, so two servers can live in one process.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, NamedTuple

from mcpgreen import journal
from mcpgreen.catalog.lists.early import EarlyLists, catalog_of
from mcpgreen.catalog.lists.keeping import PageKeeper
from mcpgreen.catalog.manual.current import Registrar
from mcpgreen.engine.changes import ChangeWatch
from mcpgreen.engine.link import Link, stop_stream
from mcpgreen.engine.router import Router
from mcpgreen.errors import Denied
from mcpgreen.features.services import Services
from mcpgreen.links.memory import MemorySink
from mcpgreen.links.session import Session
from mcpgreen.links.sink import Sink
from mcpgreen.links.stream import Stream
from mcpgreen.project.project import Project
from mcpgreen.project.roots import Roots, configured_roots, refused_directories
from mcpgreen.protocol.admission import Handshake
from mcpgreen.protocol.introduction import Identity
from mcpgreen.running.disk_watcher import DiskWatcher
from mcpgreen.running.hooks.shell import HookShell
from mcpgreen.running.policy.project_policy import ProjectPolicy
from mcpgreen.running.processes.runner import Runner
from mcpgreen.running.scripts import temporary
from mcpgreen.running.scripts.scratch import StateDir
from mcpgreen.running.storage import Storage
from mcpgreen.running.system.descriptor_limit import descriptor_limit, scripts_that_fit
from mcpgreen.settings.settings import Settings

if TYPE_CHECKING:
    from mcpgreen.links.principal import Principal
    from mcpgreen.protocol.token import RemoteToken

STOP_GRACE_SECS = 0.3


class Load(NamedTuple):
    """What a server has to do: calls in their places, calls that wait for one, open listens."""

    running: int
    waiting: int
    listens: int


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
        early: EarlyLists | None = None,
    ) -> None:
        """`early`: what has been listed before there was a server."""
        identity = identity or Identity(project.server_info(), project.instructions())
        settings = _within_descriptors(settings)
        environ = temporary.with_usable_tmpdir(environ)
        storage = Storage(on_news=partial(self._log, "mcp.storage"))
        self._links: dict[Link, None] = {}
        self._sessions: set[Session] = set()
        runner = Runner(directory=project.root, is_open_to_others=settings.core_dumps, keeps_warm=settings.warm_python)
        state_dir = StateDir(
            temporary.place_of(settings.tmp_root, environ, root=project.root),
            is_kept=settings.preserve_state,
            storage=storage,
            on_named=(lambda path: None) if settings.preserve_state else runner.protect,
        )
        shell = HookShell(environ, settings=settings, directory=project.root, runner=runner)
        early = early or EarlyLists(project, settings, identity.info, {})
        registrar = early.registrar or Registrar(project, settings=settings)
        catalog = early.catalog or catalog_of(project, settings, answered=early.answered)
        catalog.on_change = self._on_change
        catalog.on_warning = partial(self._log, "mcp.registry", "warning")
        catalog.files.storage = storage
        catalog.registrar = registrar
        self._disk = DiskWatcher(uses_events=settings.watch_files != "poll")
        self._changes = ChangeWatch(catalog, settings, registrar=registrar, shell=shell, disk=self._disk)
        self._changes.on_begin = partial(self._tell_news, early)
        if early.store is not None:
            self._changes.keeper = PageKeeper(early.store, catalog, early.terms)
        self.services = Services(
            settings,
            project,
            environ,
            identity=identity,
            roots=roots or configured_roots(project.root, settings.roots),
            catalog=catalog,
            snapshot=self._changes.snapshot,
            disk=self._disk,
            runner=runner,
            state_dir=state_dir,
            policy=ProjectPolicy(
                project.ground(project.server_dir), settings=settings, shell=shell, state_dir=state_dir
            ),
        )
        self._router = Router(self.services, self._changes)
        for path in refused_directories(project, settings):
            journal.warning("resources_roots: %s is left out: nothing in /proc, /sys or /dev is served", path)

    def open_session(
        self,
        sink: Sink,
        *,
        handshake: Handshake | None = None,
        has_strangers: bool = False,
        principal: Principal | None = None,
    ) -> Session:
        """`sink` is for what belongs to no request."""
        services = self.services
        session = Session(
            sink,
            services.settings,
            services.roots,
            handshake=handshake,
            has_strangers=has_strangers,
            principal=principal,
        )
        self._sessions.add(session)
        services.subscriptions.add_session(session)
        return session

    def close_session(self, session: Session) -> None:
        """May be called twice."""
        if session not in self._sessions:
            return
        self._sessions.remove(session)
        session.close()
        self.services.subscriptions.remove_session(session)

    def end_session(self, session: Session) -> None:
        """As its client wants: all that it has running is stopped, by whatever stream it came."""
        for stream in list(session.streams):
            stop_stream(stream, self.services.subscriptions)
        self.close_session(session)

    def connect(
        self,
        sink: Sink,
        *,
        transport: str,
        session: Session | None = None,
        handshake: Handshake | None = None,
        token: RemoteToken | None = None,
        principal: Principal | None = None,
        owner: Hashable = None,
    ) -> Link:
        """Another stream of a session, or the first one of a new session, which ends with it. Raises Denied for a
        session of somebody else."""
        is_own = session is None
        if session is None:
            session = self.open_session(sink, handshake=handshake, has_strangers=token is not None, principal=principal)
        elif session.principal != principal:
            raise Denied("This session belongs to somebody else.")
        stream = Stream(sink, transport=transport, principal=principal, owner=owner)
        link = Link(self._router, session, stream, token=token, owns_session=is_own)
        session.streams.add(link.stream)
        self._links[link] = None
        return link

    def connect_stateless(
        self,
        sink: Sink,
        *,
        transport: str,
        token: RemoteToken | None = None,
        principal: Principal | None = None,
        owner: Hashable = None,
    ) -> Link:
        """A stream of no session: each request on it says who sends it."""
        stream = Stream(sink, transport=transport, principal=principal, owner=owner)
        link = Link(self._router, self._without_session, stream, token=token, owns_session=False)
        self._links[link] = None
        return link

    @cached_property
    def _without_session(self) -> Session:
        """Never agrees on anything, and has no streams: what one client says reaches no other."""
        return Session(MemorySink(), self.services.settings, self.services.roots)

    def watch(self) -> None:
        """Begin to notice changes on disk, if they matter."""
        if "tools" in self.services.offered:
            self._changes.start()

    def disconnect(self, link: Link) -> None:
        """What it has in flight is dropped. What is parked stays: its client may come back by another link. May be
        called twice."""
        if link not in self._links:
            return
        del self._links[link]
        link.close()
        if link.owns_session:
            self.close_session(link.session)

    @property
    def is_busy(self) -> bool:
        """Whether somebody waits for an answer."""
        return any(link.stream.in_flight for link in self._links)

    @property
    def load(self) -> Load:
        return Load(self._router.running, len(self.services.waiting), len(self.services.subscriptions))

    def end_listens(self) -> None:
        """In good order, on whatever stream they are."""
        for link in list(self._links):
            link.close_listens()

    def stop(self) -> None:
        """End everything: links, scripts, watchers, temporary files."""
        for link in list(self._links):
            self.disconnect(link)
        for session in list(self._sessions):
            self.close_session(session)
        self._changes.stop()
        self._disk.close()
        self.services.close()
        self.services.runner.stop_all(grace_secs=STOP_GRACE_SECS)
        self.services.runner.close(is_clean=self.services.state_dir.remove())

    def _tell_news(self, early: EarlyLists) -> None:
        """What nobody could be told before there was a session."""
        for warning in early.warnings:
            self._log("mcp.registry", "warning", warning)
        for source, total in early.changed.items():
            self._on_change(source, total)

    def _on_change(self, source: str, total: int) -> None:
        journal.info("%s changed: %d listed", source, total)
        self.services.subscriptions.list_changed(source)

    def _log(self, logger: str, level: str, text: str) -> None:
        for session in self._sessions:
            session.log(level, logger, text)


def _within_descriptors(settings: Settings) -> Settings:
    """With no more scripts at a time than there are descriptors for: the others wait instead of failing."""
    limit = descriptor_limit()
    fitting = scripts_that_fit(settings.max_concurrent_requests, limit)
    if fitting == settings.max_concurrent_requests:
        return settings
    journal.warning(
        "only %d descriptors are allowed, so %d scripts run at a time instead of %d; raise it by ulimit -n",
        limit,
        fitting,
        settings.max_concurrent_requests,
    )
    return settings.with_values(max_concurrent_requests=fitting)
