"""Report changes on disk immediately, with one inotify that all parts of the server share.

Each part has an `Interest`. Where there are no file events (another system than Linux, a limit of the system, the
setting `watch_files`), nothing is reported: each part looks from time to time as well.

Rule: nothing here switches greenlets, apart from the `turn` that `want_only` is given.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import gevent

from mcpgreen import journal
from mcpgreen.running.processes.pipes import READ_EVENT

AT_ONCE = 500  # directories, before others get a turn
REMEDIES = {
    errno.ENOSPC: "; raise fs.inotify.max_user_watches",
    errno.EMFILE: "; raise fs.inotify.max_user_instances or ulimit -n",
    errno.EACCES: "; make it readable by the user who runs the server",
}

IN_ATTRIB = 0x4
IN_CLOSE_WRITE = 0x8
IN_MOVED_FROM = 0x40
IN_MOVED_TO = 0x80
IN_CREATE = 0x100
IN_DELETE = 0x200
IN_DELETE_SELF = 0x400
IN_MOVE_SELF = 0x800
IN_Q_OVERFLOW = 0x4000
IN_IGNORED = 0x8000
IN_ONLYDIR = 0x01000000
# Not IN_MODIFY: a file is read when its writer has closed it.
HAPPENINGS = IN_ATTRIB | IN_CLOSE_WRITE | IN_MOVED_FROM | IN_MOVED_TO | IN_CREATE | IN_DELETE
MASK = HAPPENINGS | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR
READ_BYTES = 65536
EVENT_BYTES = 16  # four numbers: watch, mask, cookie, length of the name that follows
MAX_EVENT_BYTES = EVENT_BYTES + 256

OnChange = Callable[[dict[str, bool]], None]


class Inotify:
    """Watches a set of directories, each known by its name. The constructor raises OSError where the system has no
    inotify."""

    def __init__(self) -> None:
        if not sys.platform.startswith("linux"):
            raise OSError("inotify exists on Linux only")
        import ctypes

        self._libc = ctypes.CDLL(None, use_errno=True)
        self.fd = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self.fd < 0:
            raise _error_of("inotify_init1")
        self.watched: dict[str, int] = {}
        self._names: dict[int, set[str]] = {}  # several names of one directory share a watch
        self.has_more = False  # the queue of the kernel may hold further events

    def watch(self, directory: str) -> None:
        """Watch the directory that has this name now, instead of one that had it before. Raises OSError."""
        watch = self._libc.inotify_add_watch(self.fd, os.fsencode(directory), MASK)
        if watch < 0:
            raise _error_of(directory)
        if self.watched.get(directory, watch) != watch:
            self.unwatch(directory)
        self.watched[directory] = watch
        self._names.setdefault(watch, set()).add(directory)

    def unwatch(self, directory: str) -> None:
        watch = self._forget(directory)
        if watch is not None:
            self._libc.inotify_rm_watch(self.fd, watch)

    def events(self) -> Iterator[tuple[str, str, bool]]:
        """Yield the events since the last call: the directory, the path in it or the directory itself, and whether that
        was only created. Never blocks. Afterwards, directories that were renamed are no longer watched."""
        try:
            raw = os.read(self.fd, READ_BYTES)
        except BlockingIOError:
            raw = b""
        self.has_more = len(raw) > READ_BYTES - MAX_EVENT_BYTES
        moved: set[str] = set()
        offset = 0
        while offset < len(raw):
            watch, mask, _, name_bytes = memoryview(raw)[offset : offset + EVENT_BYTES].cast("I")
            offset += EVENT_BYTES
            name = os.fsdecode(raw[offset : offset + name_bytes].rstrip(b"\0"))
            offset += name_bytes
            for directory in tuple(self.watched if mask & IN_Q_OVERFLOW else self._names.get(watch, ())):
                if mask & IN_IGNORED:
                    self._forget(directory)  # it is gone, as an earlier event said
                    continue
                if mask & IN_MOVE_SELF:
                    moved.add(directory)
                yield directory, os.path.join(directory, name) if name else directory, bool(mask & IN_CREATE)
        if moved:
            self._unwatch_below(moved)

    def _unwatch_below(self, moved: set[str]) -> None:
        """Stop watching directories that were moved, and everything in them: their names are others now."""
        for directory in list(self.watched):
            place = directory
            while place not in moved and place != os.path.dirname(place):
                place = os.path.dirname(place)
            if place in moved:
                self.unwatch(directory)

    def _forget(self, directory: str) -> int | None:
        """Forget a name; return its watch if no other name needs it."""
        watch = self.watched.pop(directory, None)
        if watch is None:
            return None
        names = self._names[watch]
        names.remove(directory)
        if names:
            return None
        del self._names[watch]
        return watch

    def close(self) -> None:
        os.close(self.fd)


def _error_of(what: str) -> OSError:
    import ctypes

    number = ctypes.get_errno()
    return OSError(number, os.strerror(number), what)


class Interest:
    """The directories that one part of the server watches.

    `on_change` gets the paths that changed: files, or directories if no more is known. With each comes whether
    it has merely appeared, and may be about to be written. Without a path, what has changed is reported later.
    """

    def __init__(self, disk: DiskWatcher, on_change: OnChange, *, hears_all: bool) -> None:
        self._disk = disk
        self.on_change = on_change
        self.directories: set[str] = set()  # watched now, without removed or moved ones
        self.hears_all = hears_all  # until the system refuses to watch something

    def want(self, directories: Iterable[str]) -> bool:
        """Watch these as well. Return True if some were not watched before: changes there have not been reported."""
        before = len(self.directories)
        for directory in set(directories) - self.directories:
            self._disk.watch(directory, self)
        return len(self.directories) > before

    def want_only(self, directories: Iterable[str], turn: Callable[[], object]) -> None:
        """Watch these and no others, unless the system refuses one. Other greenlets get a `turn` meanwhile."""
        wanted = set(directories)
        self.leave(self.directories - wanted)
        for number, directory in enumerate(wanted, 1):
            # Also what is watched, as that is cheap: another directory may stand under the old name.
            self._disk.watch(directory, self)
            if number % AT_ONCE == 0:
                turn()
            if not self.hears_all:
                return

    def leave(self, directories: Iterable[str]) -> None:
        for directory in self.directories & set(directories):
            self.directories.remove(directory)
            self._disk.unwatch(directory)


class DiskWatcher:
    """The inotify of one server, opened when something is watched for the first time."""

    def __init__(self, *, uses_events: bool) -> None:
        self._may_open = uses_events
        self._inotify: Inotify | None = None
        self._io_watcher: Any = None
        self._interests: list[Interest] = []
        self._has_logged_polling = False

    def interest(self, on_change: OnChange) -> Interest:
        self._interests.append(Interest(self, on_change, hears_all=self._may_open))
        return self._interests[-1]

    def catch_up(self) -> None:
        """Pass on what the system has reported by now. Of more than one read holds, only say that there is more."""
        if self._inotify is None:
            return
        changed: dict[Interest, dict[str, bool]] = {interest: {} for interest in self._interests}
        before = len(self._inotify.watched)
        for directory, path, is_new in self._inotify.events():
            for interest, paths in changed.items():
                if directory in interest.directories:
                    paths[path] = is_new and paths.get(path, True)
        if len(self._inotify.watched) < before:
            for interest, paths in changed.items():
                lost = interest.directories.difference(self._inotify.watched)
                interest.directories -= lost
                paths.update(dict.fromkeys(lost, False))
        for interest, paths in changed.items():
            if paths or self._inotify.has_more:
                interest.on_change(paths)

    def watch(self, directory: str, interest: Interest) -> None:
        """Watch a directory for this interest. One that does not exist can be wanted again later."""
        self._open()
        try:
            if self._inotify is not None:
                self._inotify.watch(directory)
                interest.directories.add(directory)
            else:
                interest.hears_all = False
        except OSError as error:
            if os.path.isdir(directory):
                interest.hears_all = False
                self._log_polling(error)

    def unwatch(self, directory: str) -> None:
        """Stop watching it, unless another interest needs it."""
        if self._inotify is not None and not any(directory in each.directories for each in self._interests):
            self._inotify.unwatch(directory)

    def close(self) -> None:
        self._may_open = False
        if self._inotify is not None:
            self._io_watcher.close()
            self._inotify.close()
            self._inotify = None

    def _open(self) -> None:
        if self._inotify is not None or not self._may_open:
            return
        try:
            self._inotify = Inotify()
        except OSError as error:
            self._may_open = False
            self._log_polling(error)
        else:
            self._io_watcher = gevent.get_hub().loop.io(self._inotify.fd, READ_EVENT)
            self._io_watcher.start(self.catch_up)

    def _log_polling(self, error: OSError) -> None:
        """Log, once, that changes are found by polling: there may be thousands of directories."""
        if not self._has_logged_polling:
            self._has_logged_polling = True
            say = journal.warning if error.errno in REMEDIES else journal.info
            say("some changes on disk are found only by polling: %s%s", error, REMEDIES.get(error.errno or 0, ""))
