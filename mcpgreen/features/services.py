"""What handlers share: the parts of one server, put together by `engine.server`. Whatever start-up does not need is
made when it is first asked for."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from mcpgreen.catalog.catalog import Catalog
from mcpgreen.catalog.lists.pages import Terms
from mcpgreen.catalog.snapshot import Snapshot
from mcpgreen.features.run import Places
from mcpgreen.features.watching.subscriptions import Subscriptions
from mcpgreen.links.waiting import WaitingCalls
from mcpgreen.project.project import Project
from mcpgreen.project.roots import Roots, resource_directories
from mcpgreen.protocol.introduction import Identity
from mcpgreen.protocol.revisions import offered_capabilities
from mcpgreen.running.disk_watcher import DiskWatcher
from mcpgreen.running.policy.project_policy import ProjectPolicy
from mcpgreen.running.processes.runner import Runner
from mcpgreen.running.scripts.environment import ProviderEnvironment, ToolEnvironment
from mcpgreen.running.scripts.scratch import StateDir
from mcpgreen.running.validation.schema_checks import SchemaChecks
from mcpgreen.settings.settings import Settings

if TYPE_CHECKING:
    from mcpgreen.features.asking.asking import Asking
    from mcpgreen.features.watching.watches import Watcher
    from mcpgreen.providers.reading import Providers


class Services:
    """`roots` are as configured; those of a call are `call.roots`. `snapshot` gives the items of a kind as they are on
    disk now, `catalog` as they were seen last."""

    def __init__(
        self,
        settings: Settings,
        project: Project,
        environ: Mapping[str, str],
        *,
        identity: Identity,
        roots: Roots,
        catalog: Catalog,
        snapshot: Callable[[str], Snapshot],
        disk: DiskWatcher,
        runner: Runner,
        state_dir: StateDir,
        policy: ProjectPolicy,
    ) -> None:
        self.settings = settings
        self.project = project
        self.identity = identity
        self.offered = offered_capabilities(is_minimal=settings.force_minimal)
        self.list_terms = Terms(settings.page_size, settings.max_response_bytes, identity.info)
        self.roots = roots
        self.resource_directories = resource_directories(project, settings)  # for resources, besides the roots
        self.catalog = catalog
        self.snapshot = snapshot
        self.runner = runner
        self.state_dir = state_dir
        self.policy = policy
        self.environment = ToolEnvironment(
            environ, settings=settings, project_root=project.root, server_info=identity.info
        )
        self.schema_checks = SchemaChecks(runner, timeout_secs=settings.schema_timeout_secs)
        self.subscriptions = Subscriptions(
            lambda: self.watcher, limit=settings.max_subscriptions, max_listens=settings.max_listens
        )
        self.waiting = WaitingCalls(max_calls=settings.max_queued_requests, max_bytes=settings.max_queued_bytes)
        # Of tools that may not run as often as they are called, as long as somebody calls them.
        self.turns: WeakValueDictionary[str, Places] = WeakValueDictionary()
        self._environ = environ
        self._disk = disk

    @property
    def has_parked(self) -> bool:
        """Whether a script waits for a client to come back."""
        return "asking" in self.__dict__ and not self.asking.parking.is_empty

    def close(self) -> None:
        """Before the runner is stopped."""
        if "asking" in self.__dict__:
            self.asking.parking.clear()
        self.schema_checks.close()

    @cached_property
    def provider_environment(self) -> ProviderEnvironment:
        base = self.environment.about_the_server
        return ProviderEnvironment(self._environ, settings=self.settings, about_the_server=base)

    @cached_property
    def providers(self) -> Providers:
        from mcpgreen.providers.reading import Providers

        return Providers(
            self.project,
            self.settings,
            runner=self.runner,
            environment=self.provider_environment,
            state_dir=self.state_dir,
        )

    @cached_property
    def asking(self) -> Asking:
        from mcpgreen.features.asking.asking import Asking
        from mcpgreen.protocol.input.state import KEY_BYTES, Seal

        key = self.settings.state_key.encode("utf-8") or os.urandom(KEY_BYTES)
        return Asking(self.settings, seal=Seal(key))

    @cached_property
    def watcher(self) -> Watcher:
        from mcpgreen.features.watching.watches import Watcher

        return Watcher(lambda: self.providers, self.settings, self._disk)
