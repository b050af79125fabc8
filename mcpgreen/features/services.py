"""The parts of one server that handlers share, put together by `engine.server`. Parts that start-up does not need are
made when they are first used."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from mcpgreen.catalog.catalog import Catalog
from mcpgreen.catalog.snapshot import Snapshot, Terms
from mcpgreen.features.watching.subscriptions import MAX_LISTENS, MAX_SUBSCRIPTIONS, Subscriptions
from mcpgreen.links.session import MAX_QUEUED_BYTES, MAX_QUEUED_REQUESTS, WaitingCalls
from mcpgreen.project.project import Project
from mcpgreen.project.roots import Roots, resource_directories
from mcpgreen.protocol.admission import Identity
from mcpgreen.protocol.revisions import offered_capabilities
from mcpgreen.running.disk_watcher import DiskWatcher
from mcpgreen.running.policy import ProjectPolicy
from mcpgreen.running.runner import Runner
from mcpgreen.running.schema_checks import CHECK_SECS, SchemaChecks
from mcpgreen.running.scripts.environment import ProviderEnvironment, ToolEnvironment
from mcpgreen.running.scripts.scratch import StateDir
from mcpgreen.running.shares import Places
from mcpgreen.settings.settings import Settings

if TYPE_CHECKING:
    from mcpgreen.features.asking.asking import Asking
    from mcpgreen.features.confidential import Confidential
    from mcpgreen.features.watching.watches import Watcher
    from mcpgreen.providers.reading import Providers


@dataclass(eq=False, kw_only=True)
class Services:
    """`roots` are those of the settings; the roots of a call are `call.roots`. `snapshot` gives the items of a kind as
    they are on disk now, `catalog` as they were seen last."""

    settings: Settings
    project: Project
    environ: Mapping[str, str]
    identity: Identity
    roots: Roots
    catalog: Catalog
    snapshot: Callable[[str], Snapshot]
    disk: DiskWatcher
    runner: Runner
    state_dir: StateDir
    policy: ProjectPolicy

    def __post_init__(self) -> None:
        settings, project, info = self.settings, self.project, self.identity.info
        self.offered = offered_capabilities(is_minimal=settings.force_minimal)
        self.list_terms = Terms(settings.page_size, settings.max_response_bytes, info)
        self.resource_directories = resource_directories(project, settings)  # where resources may be, besides the roots
        self.environment = ToolEnvironment(self.environ, settings=settings, project_root=project.root, server_info=info)
        self.schema_checks = SchemaChecks(self.runner, timeout_secs=CHECK_SECS)
        self.subscriptions: Subscriptions = Subscriptions(
            lambda: self.watcher, limit=MAX_SUBSCRIPTIONS, max_listens=MAX_LISTENS
        )
        self.waiting = WaitingCalls(max_calls=MAX_QUEUED_REQUESTS, max_bytes=MAX_QUEUED_BYTES)
        # The places of tools with `maxConcurrent`, as long as calls use them.
        self.turns: WeakValueDictionary[str, Places] = WeakValueDictionary()

    @property
    def has_parked(self) -> bool:
        """Whether a parked call waits for its client."""
        return "asking" in self.__dict__ and len(self.asking.parking) > 0

    def close(self) -> None:
        """End parked calls and schema checks. Called before the runner is stopped."""
        if "asking" in self.__dict__:
            self.asking.parking.clear()
        self.schema_checks.close()

    @cached_property
    def provider_environment(self) -> ProviderEnvironment:
        base = self.environment.about_the_server
        return ProviderEnvironment(self.environ, settings=self.settings, about_the_server=base)

    @cached_property
    def providers(self) -> Providers:
        from mcpgreen.providers.reading import Providers

        return Providers(
            self.project,
            self.settings,
            runner=self.runner,
            environment=self.provider_environment,
            state_dir=self.state_dir,
            reason_in=lambda stderr: self.confidential.last_words(stderr).reason,
        )

    @cached_property
    def confidential(self) -> Confidential:
        from mcpgreen.features.confidential import Confidential

        return Confidential(self, self.environ)

    @cached_property
    def asking(self) -> Asking:
        from mcpgreen.features.asking.asking import Asking
        from mcpgreen.protocol.input.state import KEY_BYTES, Seal

        key = self.settings.state_key.encode("utf-8") or os.urandom(KEY_BYTES)
        return Asking(seal=Seal(key))

    @cached_property
    def watcher(self) -> Watcher:
        from mcpgreen.features.watching.watches import Watcher

        return Watcher(lambda: self.providers, self.settings, self.disk)
