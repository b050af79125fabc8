"""Notice that the project changed on disk, also while nobody asks, and have ready what answers need.

File events say so at once; where there are none, and as a safety net everywhere, the tree is looked at from time to
time. A burst of changes is one change: the catalog is asked when the disk has been quiet for a moment.

Lists are answered in the reader, which must not wait. So the router asks `is_ready` first, and lets a list that has to
wait, for `register.sh` or for a long look, do so in a greenlet of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import gevent
from gevent.event import Event
from gevent.lock import Semaphore

from mcpgreen import journal
from mcpgreen.catalog.catalog import Catalog
from mcpgreen.catalog.item_kinds import SOURCES
from mcpgreen.catalog.lists.keeping import PageKeeper
from mcpgreen.catalog.manual.current import Registrar
from mcpgreen.catalog.snapshot import Snapshot
from mcpgreen.errors import InternalError
from mcpgreen.running.disk_watcher import DiskWatcher
from mcpgreen.running.hooks.shell import HookShell
from mcpgreen.running.turns import let_others
from mcpgreen.settings.settings import Settings

START_AFTER_SECS = 0.05  # the client's first request is likely on its way, and goes first
SAFETY_NET_FACTOR = 6
LONGEST_BURST_SECS = 2.0
STATIC_KEEPING_SECS = (2.0, 20.0)
LONGEST_FAULT_SECS = 60.0


class ChangeWatch:
    """Keeps a catalog current. One greenlet; `stop` ends it."""

    def __init__(
        self, catalog: Catalog, settings: Settings, *, registrar: Registrar, shell: HookShell, disk: DiskWatcher
    ) -> None:
        self._catalog = catalog
        self._settings = settings
        self._registrar = registrar
        self._shell = shell
        self._disk = disk
        self._events = disk.interest(lambda _: self._on_news())
        self._running_hook = Semaphore(1)
        self._is_renewal_wanted = False
        self._looking = {source: Semaphore(1) for source in SOURCES}
        self._news = Event()
        self._news_at = 0.0
        self._greenlet: Any = None
        self._has_begun = False
        self.on_begin: Callable[[], object] = lambda: None
        self.keeper: PageKeeper | None = None
        self._again_secs: float | None = None  # until what is too young to be kept is looked at again

    def start(self) -> None:
        if self._greenlet is None:
            run = self._finish_start if self._settings.static_registry else self._run
            self._greenlet = gevent.spawn_later(START_AFTER_SECS, run)

    def stop(self) -> None:
        if self._greenlet is not None:
            self._greenlet.kill()
            self._greenlet = None

    def snapshot(self, kind: str) -> Snapshot:
        """The items of this kind as they are on disk now, or, if it takes long to find out, as they were. Waits only if
        they are not registered yet."""
        self.register()
        self.catch_up()
        return self._catalog.snapshot(kind)

    def catch_up(self) -> None:
        """Take note of what the disk has reported up to this moment, so that an answer given now is not stale."""
        self._disk.catch_up()
        if not self._has_begun:
            self._catalog.mark_stale()  # nobody watches yet: every answer looks for itself
        if self._registrar.is_hook_old():
            self._is_renewal_wanted = True  # for the next answer; this one need not wait
            self._news.set()

    def register(self) -> None:
        """Before an answer: run register.sh if it has not been run as it is now. May wait."""
        if self._registrar.is_hook_due():
            self._run_hook_if(self._registrar.is_hook_due)
            self._catalog.mark_stale()

    def is_ready(self, method: str) -> bool:
        """Whether a request can be answered without a hook, or a long look, first. A list is as of now; for what asks
        for one item it is enough to know some."""
        if self._registrar.is_hook_due():
            return False
        if not method.endswith("/list"):
            return all(map(self._catalog.is_known, _sources_of(method)))
        self.catch_up()
        return not any(map(self._catalog.takes_long, _sources_of(method)))

    def make_ready(self, method: str) -> None:
        """Before an answer: do what it has to wait for."""
        self.register()
        for source in _sources_of(method):
            if self._catalog.takes_long(source):
                self._refresh(source)

    def _run_hook_if(self, is_needed: Callable[[], bool]) -> None:
        """One run at a time; who comes meanwhile waits for it."""
        with self._running_hook:
            if is_needed():
                self._registrar.run_hook(self._shell.run)

    def _refresh(self, source: str) -> None:
        """Look at the disk, while others have their turns. One at a time; who comes meanwhile wants a look that begins
        later, and shares it with all who do."""
        asked_at = time.monotonic()
        with self._looking[source]:
            if not self._catalog.has_looked_since(source, asked_at):
                self._catalog.refresh(source, turn=let_others)

    def _finish_start(self) -> None:
        """For a project that is not looked at again."""
        self.on_begin()
        self._catalog.write_files()
        for pause_secs in STATIC_KEEPING_SECS:  # when the first lists have probably been asked for
            self._keep_pages()
            gevent.sleep(pause_secs)
        self._keep_pages()

    def _keep_pages(self) -> None:
        if self.keeper is not None:
            self._again_secs = self.keeper.keep(let_others)

    def _run(self) -> None:
        self.on_begin()
        # From now on what a look sees is watched; by what was seen before nobody is answered any more.
        self._catalog.on_look = self._on_look
        self._catalog.mark_stale()
        fault_secs: float = self._settings.registry_poll_secs
        while True:
            try:
                self._look_and_wait()
                fault_secs = self._settings.registry_poll_secs
            except Exception:  # without this greenlet no change would ever be told again
                journal.exception("cannot look for changes of the project, next try in %g s", fault_secs)
                gevent.sleep(fault_secs)
                fault_secs = max(fault_secs, min(LONGEST_FAULT_SECS, fault_secs * 2))

    def _look_and_wait(self) -> None:
        began_at = time.monotonic()
        self._look()
        self._keep_pages()
        ended_at = time.monotonic()
        # A large project that changes all the time takes half of our time, not all of it.
        rested_at = ended_at + min(ended_at - began_at, LONGEST_BURST_SECS)
        if self._news.wait(self._pause_secs()):
            self._wait_for_quiet()
        gevent.sleep(max(0.0, rested_at - time.monotonic()))

    def _look(self) -> None:
        # First the watches, then the look: what happens in between is seen by one or the other.
        if self._events.hears_all:
            self._events.want_only(self._catalog.watched_directories(), let_others)
        self._trust_events()
        self._has_begun = True
        if self._is_renewal_wanted:
            self._is_renewal_wanted = False
            self._run_hook_if(self._registrar.is_hook_old)
        self.register()
        fault: Exception | None = None
        for source in SOURCES:
            try:
                self._refresh(source)
            except InternalError as error:
                journal.error("%s", error.message)
            except Exception as error:  # the others are looked at all the same
                fault = error
        if fault is not None:
            raise fault

    def _pause_secs(self) -> float:
        retry_at = self._catalog.retry_at()
        if retry_at is not None:
            return max(0.05, retry_at - time.monotonic())
        poll_secs: float = self._settings.registry_poll_secs
        pause_secs = poll_secs * SAFETY_NET_FACTOR if self._events.hears_all else poll_secs
        return pause_secs if self._again_secs is None else min(pause_secs, self._again_secs)

    def _wait_for_quiet(self) -> None:
        give_up_at = time.monotonic() + LONGEST_BURST_SECS
        while self._news.is_set() and time.monotonic() < give_up_at:
            self._news.clear()
            quiet_at = self._news_at + self._settings.list_change_debounce_secs
            gevent.sleep(max(0.0, quiet_at - time.monotonic()))

    def _on_news(self) -> None:
        self._catalog.mark_stale()
        self._news_at = time.monotonic()
        self._news.set()

    def _on_look(self) -> None:
        """Nobody may be answered by what is seen in a directory that is not watched: a change there would not show."""
        if self._events.hears_all and self._events.want(self._catalog.watched_directories()):
            self._on_news()  # it was looked at before it was watched
        self._trust_events()

    def _trust_events(self) -> None:
        """All or none: a change in a directory that may not be watched would not show."""
        if not self._events.hears_all:
            self._events.leave(self._events.directories)
        self._catalog.trust_until_stale(self._events.hears_all)


def _sources_of(method: str) -> tuple[str, ...]:
    """Whose items a method is about, by how it begins. Of completions it is not known beforehand."""
    source = method.partition("/")[0]
    return (source,) if source in SOURCES else tuple(SOURCES)
