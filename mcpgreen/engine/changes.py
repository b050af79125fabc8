"""Notice changes to the project on disk, even between requests, and keep the catalog up to date.

File events tell of changes at once. Where there are none, and as a safety net everywhere, the tree is scanned from time
to time. A burst of changes counts as one: the catalog is refreshed when the disk has been quiet for a moment.

The reader answers requests itself if possible, and must not wait. So the router asks `is_current` first, and a request
that has to wait for `register.sh` or for a look at the disk does so in a greenlet of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import gevent
from gevent.event import Event

from mcpgreen import journal
from mcpgreen.catalog.catalog import Catalog
from mcpgreen.catalog.item_kinds import SOURCE_OF, SOURCES
from mcpgreen.catalog.manual.registration import Registrar
from mcpgreen.catalog.snapshot import Snapshot
from mcpgreen.errors import InternalError
from mcpgreen.running.disk_watcher import DiskWatcher
from mcpgreen.running.shares import Places, let_others
from mcpgreen.settings.settings import Settings

if TYPE_CHECKING:
    from mcpgreen.running.hooks import Hook, HookEnd

START_AFTER_SECS = 0.05  # the client's first request is likely on its way, and goes first
DEFAULT_POLL_SECS = 5.0
SAFETY_NET_FACTOR = 6
QUIET_SECS = 0.1  # without changes, before clients are notified
LONGEST_BURST_SECS = 2.0
A_MOMENT_SECS = 0.03  # how long requests for one item wait for a look at the disk
LONGEST_FAULT_SECS = 60.0


class ChangeWatch:
    """Keeps a catalog current, in one greenlet; `stop` ends it."""

    def __init__(
        self,
        catalog: Catalog,
        settings: Settings,
        *,
        registrar: Registrar,
        run_hook: Callable[[Hook], HookEnd],
        disk: DiskWatcher,
    ) -> None:
        self._catalog = catalog
        self._is_static = settings.is_static
        self._poll_secs = settings.tools_ttl or DEFAULT_POLL_SECS
        self._registrar = registrar
        self._run_hook = run_hook
        self._disk = disk
        self._events = disk.interest(lambda _: self._on_news())
        self._running_hook = Places(1)
        self._is_renewal_wanted = False
        self._may_have_hook = True  # False if there was none, and an event would tell of a new one
        self._looking = {source: Places(1) for source in SOURCES}
        self._news = Event()
        self._news_at = 0.0
        self._greenlet: gevent.Greenlet | None = None
        self._brief_look: gevent.Greenlet | None = None
        self._brief_look_at = 0.0
        self._has_begun = False

    def start(self) -> None:
        if self._greenlet is None and not self._is_static:
            self._greenlet = gevent.spawn_later(START_AFTER_SECS, self._run)

    def stop(self) -> None:
        if self._greenlet is not None:
            self._greenlet.kill()
            self._greenlet = None
        if self._brief_look is not None:
            self._brief_look.kill()

    def snapshot(self, kind: str) -> Snapshot:
        """Return the items of this kind as they are on disk now. May wait."""
        self.catch_up()
        self.bring_up_to_date(kind)
        return self._catalog.snapshot(kind)

    def catch_up(self) -> None:
        """Take all file events up to this moment, so that an answer given now is not stale."""
        self._disk.catch_up()
        if not self._has_begun:
            self._catalog.mark_stale()  # before the watch has begun, each answer needs a look
        if self._may_have_hook and self._registrar.is_hook_old():
            self._is_renewal_wanted = True  # in the background, for the next answer
            self._news.set()

    def is_current(self, method: str) -> bool:
        """Tell whether a request can be answered without running a hook or looking at the disk first."""
        is_hook_due = self._may_have_hook and self._registrar.is_hook_due()
        return not is_hook_due and all(map(self._catalog.is_current, _sources_of(method)))

    def bring_up_to_date(self, method: str) -> None:
        """Run the hook and look at the disk, if either is due. May wait."""
        if self._registrar.is_hook_due():
            self._run_hook_if(self._registrar.is_hook_due)
            self._catalog.mark_stale()
        for source in _sources_of(method):
            self._refresh(source)

    def look_for_a_moment(self, method: str) -> bool:
        """Begin to look at the disk, and wait for that a moment. Return False if the look takes longer and the request
        can be served by what is known."""
        sources = _sources_of(method)
        if self._registrar.is_hook_due() or not all(map(self._catalog.is_known, sources)):
            return True
        for _ in range(2):  # the look that goes on already may be at other sources
            if self.is_current(method):
                return True
            if self._brief_look is None or self._brief_look.ready():
                self._brief_look = gevent.spawn(self.bring_up_to_date, method)
                self._brief_look_at = time.monotonic()
            self._brief_look.join(max(0.0, self._brief_look_at + A_MOMENT_SECS - time.monotonic()))
            if not self._brief_look.ready():
                break
        return self.is_current(method)

    def _run_hook_if(self, is_needed: Callable[[], bool]) -> None:
        """Run the hook if it is needed. One run at a time; other greenlets wait for it here."""
        with self._running_hook:
            if is_needed():
                self._registrar.run_hook(self._run_hook)

    def _refresh(self, source: str) -> None:
        """Look at the disk if that is due, in turns with other greenlets. One look at a time: a request that comes
        meanwhile waits for it, and looks again only if something has changed since it began."""
        with self._looking[source]:
            if not self._catalog.is_current(source):
                self._catalog.refresh(source, turn=let_others)

    def _run(self) -> None:
        # What was seen until now was not watched, so it has to be looked at again.
        self._catalog.on_look = self._on_look
        self._catalog.mark_stale()
        fault_secs = self._poll_secs
        while True:
            try:
                self._look_and_wait()
                fault_secs = self._poll_secs
            except Exception:  # without this greenlet no change would be noticed any more
                journal.exception("cannot check the project for changes; trying again in %g s", fault_secs)
                gevent.sleep(fault_secs)
                fault_secs = max(fault_secs, min(LONGEST_FAULT_SECS, fault_secs * 2))

    def _look_and_wait(self) -> None:
        began_at = time.monotonic()
        self._look()
        ended_at = time.monotonic()
        # A large project that changes all the time takes half of our time, not all of it.
        rested_at = ended_at + min(ended_at - began_at, LONGEST_BURST_SECS)
        if self._news.wait(self._pause_secs()):
            self._wait_for_quiet()
        gevent.sleep(max(0.0, rested_at - time.monotonic()))

    def _look(self) -> None:
        # First the watches, then the look: one of them sees what happens in between.
        if self._events.hears_all:
            self._events.want_only(self._catalog.watched_directories(), let_others)
        self._trust_events()
        self._has_begun = True
        if self._is_renewal_wanted:
            self._is_renewal_wanted = False
            self._run_hook_if(self._registrar.is_hook_old)
        self._run_hook_if(self._registrar.is_hook_due)
        fault: Exception | None = None
        for source in SOURCES:
            try:
                with self._looking[source]:
                    self._catalog.refresh(source, turn=let_others)
            except InternalError as error:
                journal.error("%s", error.message)
            except Exception as error:  # the other sources are looked at all the same
                fault = error
        if fault is not None:
            raise fault
        self._may_have_hook = not self._events.hears_all or self._registrar.has_hook()

    def _pause_secs(self) -> float:
        retry_at = self._catalog.retry_at()
        if retry_at is not None:
            return max(0.05, retry_at - time.monotonic())
        return self._poll_secs * (SAFETY_NET_FACTOR if self._events.hears_all else 1)

    def _wait_for_quiet(self) -> None:
        give_up_at = time.monotonic() + LONGEST_BURST_SECS
        while self._news.is_set() and time.monotonic() < give_up_at:
            self._news.clear()
            quiet_at = self._news_at + QUIET_SECS
            gevent.sleep(max(0.0, quiet_at - time.monotonic()))

    def _on_news(self) -> None:
        self._catalog.mark_stale()
        self._may_have_hook = True
        self._news_at = time.monotonic()
        self._news.set()

    def _on_look(self) -> None:
        """Watch all directories that a look has seen: a change in another one would not be noticed."""
        if self._events.hears_all and self._events.want(self._catalog.watched_directories()):
            self._on_news()  # a new directory was seen before it was watched
        self._trust_events()

    def _trust_events(self) -> None:
        """Rely on file events only if they cover all directories."""
        if not self._events.hears_all:
            self._events.leave(self._events.directories)
            self._may_have_hook = True
        self._catalog.is_watched = self._events.hears_all


def _sources_of(method: str) -> tuple[str, ...]:
    """Return the sources of a method or of a kind of items; all of them for completions, which may be about any."""
    source = SOURCE_OF.get(method) or SOURCE_OF.get(method.partition("/")[0], "")
    return (source,) if source in SOURCES else tuple(SOURCES)
