"""The parts of one server that handlers share, put together by `engine.server`. Parts that start-up does not need are
made when they are first used: all that runs scripts comes with the first script."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakValueDictionary

import gevent

from mcpgreen.catalog.catalog import Catalog
from mcpgreen.catalog.snapshot import Snapshot, Terms
from mcpgreen.features.watching.subscriptions import MAX_LISTENS, MAX_SUBSCRIPTIONS, Subscriptions
from mcpgreen.links.session import MAX_QUEUED_BYTES, MAX_QUEUED_REQUESTS, Session, WaitingCalls
from mcpgreen.project.project import Project
from mcpgreen.project.roots import Roots, resource_directories
from mcpgreen.protocol.admission import Identity
from mcpgreen.protocol.revisions import EXTENSION_OF, offered_capabilities
from mcpgreen.running.disk_watcher import DiskWatcher
from mcpgreen.running.scripts import temporary
from mcpgreen.running.scripts.scratch import StateDir, Storage
from mcpgreen.running.shares import Places
from mcpgreen.settings.settings import Settings

if TYPE_CHECKING:
    from mcpgreen.catalog.tools import Tool
    from mcpgreen.features.asking.asking import Asking
    from mcpgreen.features.call import Call
    from mcpgreen.features.confidential import Confidential
    from mcpgreen.features.fleet.tasks import FleetTasks
    from mcpgreen.features.tasks.tasks import Tasks
    from mcpgreen.features.watching.watches import Watcher
    from mcpgreen.providers.reading import Providers
    from mcpgreen.running.hooks import HookShell
    from mcpgreen.running.policy import ProjectPolicy
    from mcpgreen.running.resident.pools import Residents
    from mcpgreen.running.runner import Runner
    from mcpgreen.running.schema_checks import SchemaChecks
    from mcpgreen.running.scripts.environment import ProviderEnvironment, ToolEnvironment

STOP_GRACE_SECS = 0.3


class Services:
    """`roots` are those of the settings; the roots of a call are `call.roots`. `snapshot` gives the items of a kind as
    they are on disk now, `catalog` as they were seen last."""

    def __init__(
        self,
        *,
        settings: Settings,
        project: Project,
        environ: Mapping[str, str],
        identity: Identity,
        roots: Roots,
        catalog: Catalog,
        snapshot: Callable[[str], Snapshot],
        disk: DiskWatcher,
        storage: Storage,
    ) -> None:
        self.settings = settings
        self.project = project
        self.environ = environ
        self.identity = identity
        self.roots = roots
        self.catalog = catalog
        self.snapshot = snapshot
        self.disk = disk
        self._storage = storage
        self.offers_tasks = settings.tasks != "off"
        self.list_terms = Terms(settings.page_size, settings.max_response_bytes, identity.info)
        self.resource_directories = resource_directories(project, settings)  # where resources may be, besides the roots
        self.subscriptions: Subscriptions = Subscriptions(
            lambda: self.watcher, limit=MAX_SUBSCRIPTIONS, max_listens=MAX_LISTENS
        )
        self.waiting = WaitingCalls(max_calls=MAX_QUEUED_REQUESTS, max_bytes=MAX_QUEUED_BYTES)
        # The places of tools with `maxConcurrent`, as long as calls use them.
        self.turns: WeakValueDictionary[str, Places] = WeakValueDictionary()
        self.next_serial = count(1).__next__  # a number for each call
        self.serve_call: Callable[[Call], None]  # set by the router
        # Of a server over stdio: the environment for its keeper. None: a client's end does not end this server.
        self.keeper_environ: Mapping[str, str] | None = None
        self.is_keeper = False
        self.fleet_member: Mapping[str, Any] = {"server": True}  # what a fleet may know of this process

    @property
    def has_parked(self) -> bool:
        """Whether a parked call waits for its client."""
        return "asking" in self.__dict__ and len(self.asking.parking) > 0

    @property
    def offered(self) -> frozenset[str]:
        """The capabilities and extensions on offer now."""
        return self.offered_for("")

    def offered_for(self, method: str) -> frozenset[str]:
        """The same, as far as a request needs to know: the folder for skills may come and go, and a look at the disk
        for each request would take as long as a ping."""
        has_skills = (not method or method in EXTENSION_OF) and self.project.has_skills
        is_minimal, has_tasks = self.settings.force_minimal, self.offers_tasks
        return offered_capabilities(is_minimal=is_minimal, has_tasks=has_tasks, has_skills=has_skills)

    @property
    def has_tasks(self) -> bool:
        """Whether a task runs here."""
        return "tasks" in self.__dict__ and len(self.tasks) > 0

    def close(self, *, is_client_gone: bool = False) -> None:
        """End tasks, parked calls and schema checks, then stop all scripts and remove their files."""
        if "tasks" in self.__dict__:
            self.tasks.close(is_client_gone=is_client_gone)
        if "asking" in self.__dict__:
            self.asking.parking.clear()
        if "schema_checks" in self.__dict__:
            self.schema_checks.close()
        if "residents" in self.__dict__:
            self.residents.close()
        if "runner" in self.__dict__:
            self.runner.stop_all(grace_secs=STOP_GRACE_SECS)
            self.runner.close(is_clean=self.state_dir.remove())

    @cached_property
    def runner(self) -> Runner:
        from mcpgreen.running.runner import Runner

        settings = self.settings
        return Runner(
            directory=self.project.root,
            is_open_to_others=settings.core_dumps,
            keeps_warm=settings.warm_python,
            next_serial=self.next_serial,
        )

    @cached_property
    def residents(self) -> Residents:
        from mcpgreen.running.resident.pools import Residents

        most = self.settings.resident_max_per_principal
        return Residents(self.runner, lambda: {tool.staying for tool in self.catalog.snapshot("tools").items}, most)

    @cached_property
    def tasks(self) -> Tasks:
        if self.settings.fleet_url:
            from mcpgreen.features.fleet.tasks import FleetTasks

            return FleetTasks(self, **self.fleet_member)
        from mcpgreen.features.tasks.tasks import Tasks

        return Tasks(self)

    @property
    def fleet(self) -> FleetTasks:
        """The tasks of a server or worker of a fleet."""
        return cast("FleetTasks", self.tasks)

    def queue_of(self, tool: Tool) -> str:
        """Return where calls of a tool wait for a worker; "" if it runs here."""
        settings = self.settings
        if not settings.fleet_url or "labels" in self.fleet_member:
            return ""
        from mcpgreen.fleet import labels

        wanted = tool.description.run_on
        return labels.queue_of(wanted) if wanted else labels.queue_by_patterns(tool.name, settings.fleet_tools)

    def recover_tasks(self) -> None:
        """Take care of tasks that an earlier server left, if there is a store. Never waits."""
        if self.settings.fleet_url:
            self.fleet.recover_soon()
            return
        from mcpgreen.project import task_place  # not before the first answer

        if task_place.has_store(task_place.directory_of(self.project.root, self.environ)):
            gevent.spawn(lambda: self.tasks)  # its first look recovers them

    def end_session(self, session: Session) -> None:
        """End what belongs to a session: its resident processes and its tasks."""
        if "residents" in self.__dict__:
            self.residents.end_scope(session)
        if "tasks" in self.__dict__:
            self.tasks.end_session(session)

    @cached_property
    def state_dir(self) -> StateDir:
        settings = self.settings
        return StateDir(
            temporary.place_of(settings.tmp_root, self.environ, root=self.project.root),
            is_kept=settings.preserve_state,
            storage=self._storage,
            guardian=self.runner.guardian,
        )

    @cached_property
    def shell(self) -> HookShell:
        from mcpgreen.running.hooks import HookShell

        return HookShell(self.environ, settings=self.settings, directory=self.project.root, runner=self.runner)

    @cached_property
    def policy(self) -> ProjectPolicy:
        from mcpgreen.running.policy import ProjectPolicy

        ground = self.project.ground(self.project.server_dir)
        return ProjectPolicy(ground, settings=self.settings, shell=self.shell, state_dir=self.state_dir)

    @cached_property
    def schema_checks(self) -> SchemaChecks:
        from mcpgreen.running.schema_checks import CHECK_SECS, SchemaChecks

        return SchemaChecks(self.runner, timeout_secs=CHECK_SECS)

    @cached_property
    def environment(self) -> ToolEnvironment:
        from mcpgreen.running.scripts.environment import ToolEnvironment

        return ToolEnvironment(
            self.environ, settings=self.settings, project_root=self.project.root, server_info=self.identity.info
        )

    @cached_property
    def provider_environment(self) -> ProviderEnvironment:
        from mcpgreen.running.scripts.environment import ProviderEnvironment

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
