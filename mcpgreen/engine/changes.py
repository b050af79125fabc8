"""Notice that the project changed on disk, also while nobody asks.

On Linux inotify on the hub says so at once; elsewhere, and as a safety net everywhere, the tree is looked at from time
to time. A burst of changes is one change: the catalog is asked when the disk has been quiet for a moment.
"""

from __future__ import annotations

import time
from typing import Any

import gevent
from gevent.event import Event
from gevent.lock import Semaphore

from mcpgreen import journal
from mcpgreen.catalog.registry import Catalog
from mcpgreen.catalog.sources import SOURCES
from mcpgreen.engine.registering import Registering
from mcpgreen.errors import InternalError
from mcpgreen.running.pipes import READ_EVENT
from mcpgreen.running.turns import let_others
from mcpgreen.settings import Settings

START_AFTER_SECS = 0.05  # the client's first question is likely on its way, and goes first
SAFETY_NET_FACTOR = 6
LONGEST_BURST_SECS = 2.0
# By how a method begins: the sources of its items. Of completions it is not known beforehand.
ALL_SOURCES = tuple(SOURCES)
SOURCES_OF = {source: (source,) for source in SOURCES}


class ChangeWatch:
    """Keeps a catalog current. One greenlet; `stop` ends it."""

    def __init__(self, catalog: Catalog, settings: Settings, registering: Registering) -> None:
        self._catalog = catalog
        self._settings = settings
        self._registering = registering
        self._is_renewal_wanted = False
        self._looking = {source: Semaphore(1) for source in SOURCES}
        self._news = Event()
        self._news_at = 0.0
        self._greenlet: Any = None
        self._has_begun = False
        self._inotify: Any = None
        self._io_watcher: Any = None

    def start(self) -> None:
        if self._greenlet is None:
            self._greenlet = gevent.spawn_later(START_AFTER_SECS, self._run)

    def stop(self) -> None:
        if self._greenlet is not None:
            self._greenlet.kill()
            self._greenlet = None
        self._stop_inotify()

    def catch_up(self) -> None:
        """Take note of what the disk has reported up to this moment, so that an answer given now is not stale."""
        if not self._has_begun:
            self._catalog.mark_stale()  # nobody watches yet: every answer looks for itself
        elif self._inotify is not None and self._inotify.has_news():
            self._on_news()
        if self._registering.is_old():
            self._is_renewal_wanted = True  # for the next answer; this one need not wait
            self._news.set()

    def register(self) -> None:
        """Before an answer: run register.sh if it has not been run as it is now. May wait."""
        if not self._registering.is_ready():
            self._registering.make_ready()
            self._catalog.mark_stale()

    def is_ready(self, method: str) -> bool:
        """Whether a request can be answered without a hook, or a long look, first. A list is as of now; for what asks
        for one item it is enough to know some."""
        if not self._registering.is_ready():
            return False
        sources = SOURCES_OF.get(method.partition("/")[0], ALL_SOURCES)
        if not method.endswith("/list"):
            return all(map(self._catalog.is_known, sources))
        self.catch_up()
        return not any(map(self._catalog.takes_long, sources))

    def make_ready(self, method: str) -> None:
        """Before an answer: do what it has to wait for."""
        self.register()
        for source in SOURCES_OF.get(method.partition("/")[0], ALL_SOURCES):
            if self._catalog.takes_long(source):
                self._refresh(source)

    def _refresh(self, source: str) -> None:
        """Look at the disk, while others have their turns. One at a time; who comes meanwhile wants a look that begins
        later, and shares it with all who do."""
        asked_at = time.monotonic()
        with self._looking[source]:
            if not self._catalog.has_looked_since(source, asked_at):
                self._catalog.refresh(source, turn=let_others)

    def _run(self) -> None:
        self._has_begun = True
        if self._settings.watch_files != "poll":
            self._start_inotify()
        while True:
            began_at = time.monotonic()
            try:
                self._look()
            except Exception:  # whatever happens to one look, the next may see more
                journal.exception("a look at the project failed unexpectedly")
            ended_at = time.monotonic()
            # A large project that changes all the time takes half of our time, not all of it.
            rested_at = ended_at + min(ended_at - began_at, LONGEST_BURST_SECS)
            if self._news.wait(self._pause_secs()):
                self._wait_for_quiet()
            gevent.sleep(max(0.0, rested_at - time.monotonic()))

    def _look(self) -> None:
        # First the watches, then the look: what happens in between is seen by one or the other.
        self._watch_directories()
        if self._is_renewal_wanted:
            self._is_renewal_wanted = False
            self._registering.renew()
        self.register()
        for source in SOURCES:
            try:
                self._refresh(source)
            except InternalError as error:
                journal.error("%s", error.message)

    def _pause_secs(self) -> float:
        retry_at = self._catalog.retry_at()
        if retry_at is not None:
            return max(0.05, retry_at - time.monotonic())
        poll_secs: float = self._settings.registry_poll_secs
        return poll_secs if self._inotify is None else poll_secs * SAFETY_NET_FACTOR

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

    def _start_inotify(self) -> None:
        from mcpgreen.inotify import Inotify

        try:
            self._inotify = Inotify()
        except OSError as error:
            journal.info("changes are found by polling: %s", error)
            return
        self._io_watcher = gevent.get_hub().loop.io(self._inotify.fd, READ_EVENT)
        self._io_watcher.start(self.catch_up)
        self._catalog.trust_until_stale(True)
        self._catalog.on_look = self._on_look
        self._catalog.mark_stale()  # by what is known already nobody is answered any more

    def _on_look(self) -> None:
        """Nobody may be answered by what is seen in a directory that is not watched: a change there would not show."""
        if self._inotify is None:
            return
        watched = self._inotify.watches()
        if not self._inotify.watch_also(self._catalog.watched_directories()):
            self._stop_inotify()
        elif not self._inotify.watches() <= watched:
            self._on_news()  # it was looked at before it was watched

    def _watch_directories(self) -> None:
        if self._inotify is not None:
            directories = self._catalog.watched_directories()
            if not self._inotify.watch_exactly(directories, let_others):
                self._stop_inotify()

    def _stop_inotify(self) -> None:
        if self._inotify is not None:
            self._catalog.trust_until_stale(False)
            self._io_watcher.stop()
            self._io_watcher.close()
            self._inotify.close()
            self._inotify = None
