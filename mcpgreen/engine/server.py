"""The server as a whole: builds the parts from settings and project, watches the disk, stops in good order.

No file descriptors, sockets or signals: a transport calls `connect` with a sink and feeds the link. There is no
module-level state, so two servers can live in one process.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from mcpgreen import journal
from mcpgreen.catalog.project import Project
from mcpgreen.catalog.registrar import Registrar
from mcpgreen.catalog.registry import Catalog
from mcpgreen.catalog.resource_directories import refused_directories, resource_directories
from mcpgreen.catalog.roots import Roots, configured_roots
from mcpgreen.engine.changes import ChangeWatch
from mcpgreen.engine.connection import Connection
from mcpgreen.engine.registering import Registering
from mcpgreen.engine.router import Router
from mcpgreen.features.services import Services
from mcpgreen.features.sink import Sink
from mcpgreen.features.subscriptions import Subscriptions
from mcpgreen.protocol.admission import Handshake
from mcpgreen.protocol.revisions import offered_capabilities
from mcpgreen.protocol.welcome import Identity
from mcpgreen.running import temporary
from mcpgreen.running.descriptor_limit import descriptor_limit, scripts_that_fit
from mcpgreen.running.environment import ToolEnvironment
from mcpgreen.running.hooks import HookShell
from mcpgreen.running.process import Limits
from mcpgreen.running.project_policy import ProjectPolicy
from mcpgreen.running.runner import Runner
from mcpgreen.running.schema_checks import SchemaChecks
from mcpgreen.running.scratch import StateDir
from mcpgreen.running.storage import Storage
from mcpgreen.settings import Settings

if TYPE_CHECKING:
    from mcpgreen.features.asking import Asking
    from mcpgreen.features.watching import Watcher
    from mcpgreen.protocol.token import RemoteToken
    from mcpgreen.providers.reading import Providers
    from mcpgreen.running.provider_environment import ProviderEnvironment

STOP_GRACE_SECS = 0.3


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
        storage = Storage(on_news=self._on_storage_news)
        self._links: list[Connection] = []
        self._environ = environ
        # What start-up does not need is made when it is first asked for.
        self._made_environment: ProviderEnvironment | None = None
        self._made_providers: Providers | None = None
        self._made_watcher: Watcher | None = None
        self._made_asking: Asking | None = None
        runner = Runner(
            directory=project.root,
            is_open_to_others=settings.core_dumps,
            limits=Limits(
                stdout_bytes=settings.max_tool_output_size,
                stderr_bytes=settings.max_tool_stderr_size or settings.max_tool_output_size,
                kill_grace_secs=settings.kill_grace_secs,
                drain_secs=settings.drain_secs,
            ),
        )
        state_dir = StateDir(
            temporary.place_of(settings.tmp_root, environ, root=project.root),
            is_kept=settings.preserve_state,
            storage=storage,
            on_named=_ignore if settings.preserve_state else runner.protect,
        )
        shell = HookShell(environ, settings=settings, directory=project.root, runner=runner)
        registrar = Registrar(project, settings=settings, shell=shell)
        registering = Registering(registrar, shell)
        catalog = Catalog(
            project,
            ttl_secs=settings.tools_ttl,
            max_bytes=settings.registry_max_bytes,
            on_change=self._on_change,
            on_warning=self._on_warning,
            storage=storage,
            registrar=registrar,
            is_static=settings.static_registry,
        )
        self._changes = ChangeWatch(catalog, settings, registering)
        self.services = Services(
            settings=settings,
            project=project,
            identity=identity,
            offered=offered_capabilities(is_minimal=settings.force_minimal),
            catalog=catalog,
            catch_up=self._changes.catch_up,
            is_registered=registering.is_ready,
            register=self._changes.register,
            is_ready=self._changes.is_ready,
            make_ready=self._changes.make_ready,
            subscriptions=Subscriptions(
                self._watcher, limit=settings.max_subscriptions, max_listens=settings.max_listens
            ),
            roots=roots or configured_roots(project.root, settings.roots),
            state_dir=state_dir,
            environment=ToolEnvironment(
                environ,
                settings=settings,
                project_root=project.root,
                server_info=identity.info,
            ),
            runner=runner,
            schema_checks=SchemaChecks(runner, timeout_secs=settings.schema_timeout_secs),
            policy=ProjectPolicy(project.ground(project.server_dir), shell=shell, state_dir=state_dir),
            provider_environment=self._provider_environment,
            providers=self._providers,
            asking=self._asking,
            resource_directories=resource_directories(project, settings),
            turns={},
        )
        self._router = Router(self.services)
        for path in refused_directories(project, settings):
            journal.warning("resources_roots: %s is left out: nothing in /proc, /sys or /dev is served", path)

    def connect(
        self, sink: Sink, *, handshake: Handshake | None = None, token: RemoteToken | None = None
    ) -> Connection:
        link = Connection(self._router, sink, handshake=handshake, token=token)
        self._links.append(link)
        self.services.subscriptions.add_link(link)
        return link

    def watch(self) -> None:
        """Begin to notice changes on disk, unless they do not matter."""
        if "tools" in self.services.offered and not self.services.settings.static_registry:
            self._changes.start()

    def disconnect(self, link: Connection) -> None:
        self._links.remove(link)
        link.close()
        if self._made_asking is not None:
            self._made_asking.drop_those_of(link)

    def stop(self) -> None:
        """End everything: links, scripts, watchers, temporary files."""
        for link in list(self._links):
            self.disconnect(link)
        if self._made_asking is not None:
            self._made_asking.close()
        self._changes.stop()
        self.services.schema_checks.close()
        self.services.runner.stop_all(grace_secs=STOP_GRACE_SECS)
        self.services.runner.close(is_clean=self.services.state_dir.remove())

    def _provider_environment(self) -> ProviderEnvironment:
        if self._made_environment is None:
            from mcpgreen.running.provider_environment import ProviderEnvironment

            base = self.services.environment.about_the_server
            self._made_environment = ProviderEnvironment(
                self._environ, settings=self.services.settings, about_the_server=base
            )
        return self._made_environment

    def _providers(self) -> Providers:
        if self._made_providers is None:
            from mcpgreen.providers.reading import Providers

            services = self.services
            self._made_providers = Providers(
                services.project,
                services.settings,
                runner=services.runner,
                environment=self._provider_environment(),
                state_dir=services.state_dir,
            )
        return self._made_providers

    def _asking(self) -> Asking:
        if self._made_asking is None:
            from mcpgreen.features.asking import Asking
            from mcpgreen.protocol.request_state import KEY_BYTES, Seal

            settings = self.services.settings
            key = settings.state_key.encode("utf-8") or os.urandom(KEY_BYTES)
            self._made_asking = Asking(settings, seal=Seal(key))
        return self._made_asking

    def _watcher(self) -> Watcher:
        if self._made_watcher is None:
            from mcpgreen.features.watching import Watcher

            self._made_watcher = Watcher(self._providers, self.services.settings)
        return self._made_watcher

    def _on_change(self, source: str, total: int) -> None:
        journal.info("%s changed: %d listed", source, total)
        self.services.subscriptions.list_changed(source)

    def _on_storage_news(self, level: str, text: str) -> None:
        for link in self._links:
            link.log(level, "mcp.storage", text)

    def _on_warning(self, text: str) -> None:
        for link in self._links:
            link.log("warning", "mcp.registry", text)


def _ignore(path: str) -> None:
    """A directory that is to be kept, whatever happens."""


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
