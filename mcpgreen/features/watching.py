"""Notice that a subscribed resource changed: a greenlet for each, which looks when there is a reason.

For a file the reason is another stat: inotify says so at once where it exists, and one clock asks for all files every
few seconds. What a script or the network provides is read again from time to time. Only the content counts: a file that
was merely touched has not changed; a resource that cannot be read any more has, once.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import gevent
from gevent.event import Event
from gevent.lock import Semaphore

from mcpgreen import journal, jsontext
from mcpgreen.errors import InternalError, RpcError
from mcpgreen.providers.reading import NETWORK_PROVIDERS, Providers, Request
from mcpgreen.settings import Settings

READ_EVENT = 1
SETTLE_SECS = 0.02  # a writer may touch a file several times in a row
LONGEST_BURST_SECS = 1.0
NETWORK_FACTOR = 15
LONGEST_BACKOFF_SECS = 60.0
READS_AT_A_TIME = 4
# Two writes within one tick of the file system's clock leave the same stamp; a tick is at most 10 ms on Linux.
SETTLING_NS = 50_000_000

Stamp = tuple[int, ...]
GONE: Stamp = ()
UNSETTLED: Stamp = (0,)


class State(NamedTuple):
    """What a look saw: the digest of the content, or the code of the error."""

    digest: str | None
    error_code: int | None


class Watch:
    """One watched resource. `find` says anew each time how it is read; `on_update` is told that it changed."""

    def __init__(self, watcher: Watcher, find: Callable[[], Request], on_update: Callable[[], None]) -> None:
        self._watcher = watcher
        self._find = find
        self._on_update = on_update
        self._news = Event()
        self._state: State | None = None
        self._failures_in_a_row = 0
        self._greenlet: Any = None
        self._is_remote = False
        self._stamp_at_start = GONE
        self.path: str | None = None
        self.stamp = GONE

    def look(self) -> None:
        """Read it now, as it is when the watching begins. Raises the RpcError that says why it cannot be read."""
        request = self._find()
        self._note_place(request)
        self._state = State(self._watcher.digest_of(request), None)

    def start(self, *, can_find: bool = True) -> None:
        """Watch from now on. Without a `look` before, what the file is like at this moment counts, if it can be found
        without waiting."""
        if self._state is None and can_find:
            try:
                self._note_place(self._find())
            except RpcError:
                journal.debug("watching what does not exist yet")
            self._stamp_at_start = exact_stamp_of(self.path)
        self._greenlet = gevent.spawn(self._run)

    def stop(self) -> None:
        if self._greenlet is not None:
            self._greenlet.kill(block=False)

    def notice(self) -> None:
        """There is a reason to look."""
        self._news.set()

    def _run(self) -> None:
        if self._state is None:
            self._look_first()
        while True:
            if self._news.wait(self._pause_secs()):
                self._wait_for_quiet()
            self._look_again()

    def _look_first(self) -> None:
        self._state = self._seen()
        if exact_stamp_of(self.path) != self._stamp_at_start:
            self._on_update()  # it may have been before we read it; better once too often than never

    def _look_again(self) -> None:
        state = self._seen()
        if state != self._state:
            self._state = state
            self._on_update()

    def _seen(self) -> State:
        try:
            request = self._find()
            self._note_place(request)
            state = State(self._watcher.digest_of(request), None)
        except RpcError as error:
            state = State(None, error.code)
        except Exception:
            journal.exception("a subscribed resource cannot be watched")
            state = State(None, InternalError.code)
        self._failures_in_a_row = self._failures_in_a_row + 1 if state.error_code is not None else 0
        return state

    def _note_place(self, request: Request) -> None:
        """Where the content is. Before it is read: what is written meanwhile then has another stamp."""
        path = self._watcher.local_path(request)
        if path != self.path:
            self._watcher.move(self, path)
        self.stamp = stamp_of(path)
        self._is_remote = request.provider in NETWORK_PROVIDERS

    def _pause_secs(self) -> float | None:
        """How long to wait for news; None if somebody else brings them."""
        poll_secs: float = self._watcher.poll_secs
        if not poll_secs or self.path is not None:
            return None
        if self._is_remote:
            poll_secs *= NETWORK_FACTOR
        return max(poll_secs, min(LONGEST_BACKOFF_SECS, poll_secs * float(1 << min(self._failures_in_a_row, 10))))

    def _wait_for_quiet(self) -> None:
        give_up_at = time.monotonic() + LONGEST_BURST_SECS
        while self._news.is_set() and time.monotonic() < give_up_at:
            self._news.clear()
            gevent.sleep(SETTLE_SECS)


class Watcher:
    """All watches of one server: the clock and the inotify that they share."""

    def __init__(self, providers: Callable[[], Providers], settings: Settings) -> None:
        self.poll_secs: float = settings.resources_poll_interval_secs
        self._uses_inotify = settings.watch_files != "poll"
        self._providers = providers
        self._slots = Semaphore(READS_AT_A_TIME)
        self._by_path: dict[str, set[Watch]] = {}
        self._directories: dict[str, int] = {}  # how many paths are in each
        self._clock: Any = None
        self._inotify: Any = None
        self._io_watcher: Any = None

    def new_watch(self, find: Callable[[], Request], on_update: Callable[[], None]) -> Watch:
        return Watch(self, find, on_update)

    def end(self, watch: Watch) -> None:
        watch.stop()
        self.move(watch, None)

    def close(self) -> None:
        for watches in list(self._by_path.values()):
            for watch in list(watches):
                self.end(watch)

    def local_path(self, request: Request) -> str | None:
        return self._providers().local_path(request)

    def digest_of(self, request: Request) -> str:
        if not self._providers().runs_script(request.provider):
            return self._digest(request)
        with self._slots:
            return self._digest(request)

    def move(self, watch: Watch, path: str | None) -> None:
        """A watch has another file than before, or none."""
        if watch.path is not None:
            watches = self._by_path[watch.path]
            watches.discard(watch)
            if not watches:
                del self._by_path[watch.path]
                self._leave(os.path.dirname(watch.path))
        watch.path = path
        if path is not None:
            if path not in self._by_path:
                self._by_path[path] = set()
                self._enter(os.path.dirname(path))
            self._by_path[path].add(watch)
        self._run_or_rest()

    def _digest(self, request: Request) -> str:
        content = self._providers().read(request)
        try:
            return jsontext.digest_of_chunks(content.chunks())
        finally:
            content.close()

    def _enter(self, directory: str) -> None:
        self._directories[directory] = self._directories.get(directory, 0) + 1
        if self._inotify is not None:
            self._inotify.watch(directory)

    def _leave(self, directory: str) -> None:
        self._directories[directory] -= 1
        if not self._directories[directory]:
            del self._directories[directory]
            if self._inotify is not None:
                self._inotify.unwatch(directory)

    def _run_or_rest(self) -> None:
        if self._by_path and self._clock is None:
            self._clock = gevent.spawn(self._tick_on)
            if self._uses_inotify:
                self._start_inotify()
        elif not self._by_path and self._clock is not None:
            self._clock.kill(block=False)
            self._clock = None
            self._stop_inotify()

    def _tick_on(self) -> None:
        while self.poll_secs:
            gevent.sleep(self.poll_secs)
            for path, watches in list(self._by_path.items()):
                stamp = stamp_of(path)
                for watch in watches:
                    if watch.stamp != stamp:
                        watch.notice()
            if self._inotify is not None:
                self._inotify.watch_again(self._directories)

    def _start_inotify(self) -> None:
        from mcpgreen.inotify import Inotify

        try:
            self._inotify = Inotify()
        except OSError as error:
            journal.info("changes of resources are found by polling: %s", error)
            return
        for directory in self._directories:
            self._inotify.watch(directory)
        self._io_watcher = gevent.get_hub().loop.io(self._inotify.fd, READ_EVENT)
        self._io_watcher.start(self._on_inotify)

    def _stop_inotify(self) -> None:
        if self._inotify is not None:
            self._io_watcher.stop()
            self._io_watcher.close()
            self._inotify.close()
            self._inotify = None

    def _on_inotify(self) -> None:
        for path in self._inotify.changed_paths():
            for watch in self._by_path.get(path, ()):
                watch.notice()
            if path in self._directories:  # all that is in it may be different
                for other in [each for each in self._by_path if os.path.dirname(each) == path]:
                    for watch in self._by_path[other]:
                        watch.notice()


def stamp_of(path: str | None) -> Stamp:
    """What a stat can tell about the content. `UNSETTLED` while the next write might leave the same stamp."""
    stamp = exact_stamp_of(path)
    return UNSETTLED if stamp and stamp[0] > time.time_ns() - SETTLING_NS else stamp


def exact_stamp_of(path: str | None) -> Stamp:
    if path is None:
        return GONE
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return GONE
    return (status.st_ctime_ns, status.st_mtime_ns, status.st_size, status.st_ino)
