"""What handlers share: the parts of one server, put together by `engine.server`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from mcpgreen.catalog.project import Project
from mcpgreen.catalog.registry import Catalog
from mcpgreen.catalog.roots import Roots
from mcpgreen.catalog.snapshot import Snapshot
from mcpgreen.features.subscriptions import Subscriptions
from mcpgreen.protocol.welcome import Identity
from mcpgreen.running.environment import ToolEnvironment
from mcpgreen.running.project_policy import ProjectPolicy
from mcpgreen.running.runner import Runner
from mcpgreen.running.schema_checks import SchemaChecks
from mcpgreen.running.scratch import StateDir
from mcpgreen.settings import Settings

if TYPE_CHECKING:
    from mcpgreen.features.asking import Asking
    from mcpgreen.providers.reading import Providers
    from mcpgreen.running.provider_environment import ProviderEnvironment


class Services(NamedTuple):
    settings: Settings
    project: Project
    identity: Identity
    offered: frozenset[str]
    catalog: Catalog
    catch_up: Callable[[], None]  # take note of changes on disk that have been reported but not looked at
    is_registered: Callable[[], bool]  # whether the catalog can be asked without running register.sh first
    register: Callable[[], None]  # run it if need be; may wait
    is_ready: Callable[[str], bool]  # whether a request of this method can be answered without a long look at the disk
    make_ready: Callable[[str], None]  # register, and look; may wait
    subscriptions: Subscriptions
    roots: Roots  # as configured; those of a call are `call.roots`
    state_dir: StateDir
    environment: ToolEnvironment
    runner: Runner
    schema_checks: SchemaChecks
    policy: ProjectPolicy
    provider_environment: Callable[[], ProviderEnvironment]  # made when first needed, as the next one
    providers: Callable[[], Providers]
    asking: Callable[[], Asking]
    resource_directories: list[str]  # below which files may be read as resources, besides the roots
    turns: dict[Any, Any]  # semaphores of tools that may not run as often as they are called

    def snapshot(self, kind: str) -> Snapshot:
        """The items of this kind as they are on disk now, or, if it takes long to find out, as they were. Waits only if
        they are not registered yet."""
        self.register()
        self.catch_up()
        return self.catalog.snapshot(kind)
