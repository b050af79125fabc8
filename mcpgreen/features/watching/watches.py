"""Notice changes to subscribed resources, with a greenlet for each subscription that reads only when there is a reason.

The reason to read a file is a changed stat: a file event reports it at once, and one clock stats all files every few
seconds. Resources of scripts and of the network are read by the clock, at the same moment for all subscriptions, so
that they share one read (`SharedReads`). Only the content counts: a file that was merely touched has not changed, and a
resource that can no longer be read has changed, once. Equal stamps of a file mean equal content, unless the stamp is so
young that the next write might leave the same one.

A read by a script costs a process, so it has a budget: after each read the resource is left alone, so long that all
reads together take no more than a fifth of the time of one place (`rest_secs`).

Rule: an ended watch must not send or hold anything, even if its greenlet was about to run.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Hashable
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakValueDictionary

import gevent
from gevent.event import Event

from mcpgreen import journal
from mcpgreen.catalog.schemes import NETWORK_PROVIDERS
from mcpgreen.catalog.tree_scan import SETTLING_NS
from mcpgreen.errors import InternalError, RpcError
from mcpgreen.providers.reading import Providers, Request
from mcpgreen.running.disk_watcher import DiskWatcher
from mcpgreen.running.shares import OneAtATime, Places, in_turns
from mcpgreen.running.system import stamp_of_file
from mcpgreen.settings.settings import Settings
from mcpgreen.text import jsontext
from mcpgreen.text.uris import scheme_of

SETTLE_SECS = 0.02  # a writer may touch a file several times in a row
LONGEST_BURST_SECS = 1.0
NETWORK_FACTOR = 15
LONGEST_BACKOFF_SECS = 60.0
READS_AT_A_TIME = 4
SHARE = 0.1  # see `rest_secs`

Stamp = tuple[int, ...]
GONE: Stamp = ()
UNSETTLED: Stamp = (0,)
State = str | int  # what a read found: the digest of the content, or the code of the error
UNKNOWN: State = ""  # differs from every other state
Find = Callable[[Request | None], Request]


@dataclass(eq=False)
class SharedRead:
    """One read, its outcome, and the stamp of the file before it, so that a write during the read is noticed."""

    stamp: Stamp
    took_secs: float = 0.0  # of a script; while it runs, the time of the read before
    waits_for: Hashable = None  # the owner in whose line it waits; None once it has a place
    began_at: float = field(default_factory=time.monotonic)
    rested_at: float = 0.0  # the resource is not read again before
    state: State = UNKNOWN  # while it runs, and if it was interrupted
    error: Exception | None = None
    is_over: Event = field(default_factory=Event)


class SharedReads:
    def __init__(self, providers: Callable[[], Providers]) -> None:
        self._providers = providers
        self._slots = Places(READS_AT_A_TIME)
        self.turn = OneAtATime()  # for reads that take no process
        # As long as a watch keeps them.
        self._latest: WeakValueDictionary[Any, SharedRead] = WeakValueDictionary()
        self._of_scripts: WeakValueDictionary[Any, SharedRead] = WeakValueDictionary()

    def read(self, request: Request, path: str | None, *, since: float, may_wait: bool) -> SharedRead:
        """Return a read that began then or later: a running or finished one that can be shared, else a new one. A read
        without a process takes turns with other ones, if the caller may wait for that."""
        key = (*request[:2], tuple(sorted(request.variables.items())), request.path, tuple(request.allowed))
        while True:
            shared = self._latest.get(key)
            if shared is not None and shared.began_at >= since and shared.waits_for in (None, request.owner):
                shared.is_over.wait()  # a provider has its own time limit
                if shared.state != UNKNOWN:
                    return shared
            if shared is self._latest.get(key):
                took_secs = 0.0 if shared is None else shared.took_secs
                is_script = self._providers().needs_process(request.provider)
                owner = request.owner if is_script else None
                self._latest[key] = shared = SharedRead(stamp_of(path), took_secs, owner)
                if is_script:
                    self._of_scripts[key] = shared
                self._fill(shared, request, is_script=is_script, may_wait=may_wait)
                return shared

    def _fill(self, shared: SharedRead, request: Request, *, is_script: bool, may_wait: bool) -> None:
        try:
            place = self._slots.held_by(shared.waits_for) if is_script else self.turn if may_wait else nullcontext()
            with place:
                shared.waits_for = None
                began_at = time.monotonic()
                try:
                    shared.state = self._digest(request, may_wait=may_wait)
                finally:
                    if is_script:
                        shared.took_secs = time.monotonic() - began_at
                        shared.rested_at = time.monotonic() + self._rest_after(shared)
        except Exception as error:  # it is the outcome for all watches that share this read
            shared.error, shared.state = error, failed(error)
        finally:
            shared.is_over.set()

    def _digest(self, request: Request, *, may_wait: bool) -> str:
        content = self._providers().read(request)
        try:
            chunks = content.chunks()
            return jsontext.digest_of_chunks(in_turns(chunks) if may_wait else chunks)
        finally:
            content.close()

    def _rest_after(self, shared: SharedRead) -> float:
        """Return how many seconds a script's resource is left alone. A little different for each resource, so that
        reads that began at the same time do not stay together."""
        others = list(self._of_scripts.values())
        secs = rest_secs(shared.took_secs, count=len(others), all_secs=sum(each.took_secs for each in others))
        return secs * (1 + shared.began_at * 1000 % 1)


@dataclass(eq=False)
class Watch:
    """One watched resource. `find` returns how it is read, given what is known of it; `on_update` reports a change."""

    _watcher: Watcher
    _find: Find
    _on_update: Callable[[], None]
    path: str | None = None
    last_read: SharedRead = field(default_factory=lambda: SharedRead(GONE))  # kept, so that other watches can share it
    _news: Event = field(default_factory=Event)
    _noticed_at: float = 0.0
    _state: State = UNKNOWN
    _known: Request | None = None
    _failures_in_a_row: int = 0
    _greenlet: gevent.Greenlet | None = None
    _is_remote: bool = False
    _is_over: bool = False
    _was_seen: Event = field(default_factory=Event)
    _updates_after_look: bool = False

    @property
    def is_failing(self) -> bool:
        return self._failures_in_a_row > 0

    def look(self, known: Request) -> None:
        """Read the resource before the watching begins. Raises the RpcError that says why it cannot be read."""
        self._read(self._find(known), since=time.monotonic(), may_wait=False)
        if self.last_read.error is not None:
            raise self.last_read.error
        self._state = self.last_read.state

    def start(self) -> None:
        """Begin to watch. If there was no `look` before, the greenlet begins with one."""
        self._greenlet = gevent.spawn(self._run)

    def wait_until_seen(self, secs: float) -> None:
        """Wait until the first look is over, or the time is up. No change after this call is lost: if the look takes
        longer, its end counts as a change, because the content before it is not known."""
        if secs > 0:
            self._was_seen.wait(secs)
        self._updates_after_look = not self._was_seen.is_set()

    def stop(self) -> None:
        self._is_over = True
        greenlet, self._greenlet = self._greenlet, None  # breaks a reference cycle
        if greenlet is not None:
            greenlet.kill(block=False)

    def notice(self) -> None:
        """Read the resource soon: there is a reason."""
        self._noticed_at = time.monotonic()
        self._news.set()

    def forget_place(self) -> None:
        """Find the resource again before the next read."""
        self._known = None

    def _run(self) -> None:
        if self._state == UNKNOWN:
            self._state = self._look()
            if self._updates_after_look and not self._is_over:
                self._on_update()
        self._was_seen.set()
        while True:
            state = self._look(since=self._wait_for_reason())
            if state != self._state and not self._is_over:
                self._state = state
                self._on_update()

    def _look(self, *, since: float | None = None) -> State:
        """Return the state from a read that began then or later; without `since`, for a first look."""
        try:
            with self._watcher.shared_reads.turn:
                request = self._find(self._known)
            self._read(request, since=since, may_wait=True)
            state = self.last_read.state
        except Exception as error:  # a watch goes on, whatever happens when it looks once
            state = failed(error)
        self._failures_in_a_row = self._failures_in_a_row + 1 if isinstance(state, int) else 0
        if self.is_failing:
            self.forget_place()
        return state

    def _read(self, request: Request, *, since: float | None, may_wait: bool) -> None:
        if self._is_over:
            raise gevent.GreenletExit
        path = self._watcher.providers().local_path(request)
        if since is None:
            # Unless it is a file, a read of another watch since the last beat of the clock is good enough.
            since = time.monotonic() if path is not None else last_beat(self._watcher.poll_secs)
        if path != self.path:
            self._watcher.move(self, path)
        # A file URI is enough to read the file. To find it again would mean a scan of all resources at each change.
        self._known = request if path is not None and scheme_of(request.uri) == "file" else None
        self._is_remote = request.provider in NETWORK_PROVIDERS
        self.last_read = self._watcher.shared_reads.read(request, path, since=since, may_wait=may_wait)

    def _wait_for_reason(self) -> float:
        """Wait for news or for the time to look. Return the earliest moment at which a read may have begun."""
        secs, rested_at = self._interval_secs(), self.last_read.rested_at
        if secs is None:
            self._news.wait()
        elif not self._news.wait(last_beat(secs, max(rested_at, time.monotonic())) + secs - time.monotonic()):
            return last_beat(secs)  # all watches read at the same beat of the clock, and share one read
        gevent.sleep(max(0.0, rested_at - time.monotonic()))
        return self._wait_for_quiet()

    def _interval_secs(self) -> float | None:
        """Return how often to look without news; None for a file, for which the clock brings the news."""
        secs: float = self._watcher.poll_secs
        if not secs or self.path is not None:
            return None
        if self._is_remote:
            secs *= NETWORK_FACTOR
        return max(secs, min(LONGEST_BACKOFF_SECS, secs * float(1 << min(self._failures_in_a_row, 10))))

    def _wait_for_quiet(self) -> float:
        give_up_at = time.monotonic() + LONGEST_BURST_SECS
        while True:
            self._news.clear()
            since, stamp = time.monotonic(), stamp_of_file(self.path)
            gevent.sleep(max(0.0, self._noticed_at + SETTLE_SECS - since))
            if stamp_of_file(self.path) != stamp:
                self.notice()
            if not self._news.is_set() or time.monotonic() > give_up_at:
                return since


class Watcher:
    """All watches of one server, with the reads and the clock that they share."""

    def __init__(self, providers: Callable[[], Providers], settings: Settings, disk: DiskWatcher) -> None:
        self.poll_secs: float = settings.resources_poll_interval_secs
        self.providers = providers
        self.shared_reads = SharedReads(providers)
        self._watches: set[Watch] = set()
        self._files: dict[str, dict[str, set[Watch]]] = {}  # by directory and path
        self._events = disk.interest(self._on_change)
        self._clock: gevent.Greenlet | None = None

    def new_watch(self, find: Find, on_update: Callable[[], None]) -> Watch:
        watch = Watch(self, find, on_update)
        self._watches.add(watch)
        return watch

    def end(self, watch: Watch) -> None:
        watch.stop()
        self._watches.discard(watch)
        self.move(watch, None)

    def try_again(self) -> None:
        """Look again at resources that could not be read: the list of resources has changed."""
        for watch in self._watches:
            watch.forget_place()
            if watch.is_failing:
                watch.notice()

    def move(self, watch: Watch, path: str | None) -> None:
        """Register that a watch has another file than before, or none."""
        if watch.path is not None:
            directory = os.path.dirname(watch.path)
            files = self._files[directory]
            files[watch.path].remove(watch)
            if not files[watch.path]:
                del files[watch.path]
            if not files:
                del self._files[directory]
                self._events.leave([directory])
        watch.path = path
        if path is not None:
            directory = os.path.dirname(path)
            self._files.setdefault(directory, {}).setdefault(path, set()).add(watch)
            self._events.want([directory])
        if self._files and self._clock is None:
            self._clock = gevent.spawn(self._tick_on)
        elif not self._files and self._clock is not None:
            self._clock.kill(block=False)
            self._clock = None

    def _tick_on(self) -> None:
        while self.poll_secs:
            gevent.sleep(self.poll_secs)
            for files in self._files.values():
                for path, watches in files.items():
                    stamp = stamp_of(path)
                    for watch in watches:
                        if stamp == UNSETTLED or stamp != watch.last_read.stamp:
                            watch.notice()
            self._events.want(self._files)  # directories that were removed may have come back

    def _on_change(self, changed: dict[str, bool]) -> None:
        for path, is_new in changed.items():
            concerned = self._files.get(os.path.dirname(path), {}).get(path, set())
            if not concerned or not (is_new and _is_being_written(path)):
                # If the path is a directory, all files in it may have changed.
                for watch in concerned.union(*self._files.get(path, {}).values()):
                    watch.notice()


def _is_being_written(path: str) -> bool:
    """Tell whether a path is an ordinary new file. Its writer will close it, which is an event of its own."""
    try:
        status = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_nlink == 1


def last_beat(secs: float, at: float | None = None) -> float:
    """Return the last beat before `at` (default: now) of a clock that beats every `secs`; `at` if `secs` is 0."""
    at = time.monotonic() if at is None else at
    return at // secs * secs if secs else at


def rest_secs(took_secs: float, *, count: int, all_secs: float) -> float:
    """Return how long a resource is left alone whose last read took `took_secs`. There are `count` such resources, and
    one read of each takes `all_secs` together.

    Each resource may have the same part of the time: `took_secs * count / SHARE`. But then a slow one among many would
    wait for hours, so it is also read when each of the others could have been read once: `all_secs / SHARE`. The
    shorter one counts. By either rule alone reads take `SHARE` of the time, so by both they take twice that at most.
    """
    return min(took_secs * count, all_secs) / SHARE


def failed(error: Exception) -> State:
    """Return the state of a resource that could not be read. Logs unexpected errors, because no caller does."""
    if isinstance(error, RpcError):
        return error.code
    journal.exception("a subscribed resource cannot be read")
    return InternalError.code


def stamp_of(path: str | None) -> Stamp:
    """Return the stamp of a file's content, or `UNSETTLED` while the next write might leave the same stamp."""
    stamp = stamp_of_file(path)
    return stamp if not stamp or stamp[0] <= time.time_ns() - SETTLING_NS else UNSETTLED
