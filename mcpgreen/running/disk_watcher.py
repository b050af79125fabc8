"""Report changes on disk at once: one inotify for a server, shared by all parts of it that watch something.

Each part has an `Interest`. Where there are no file events (another system than Linux, a limit of the system, the
setting `watch_files`), nothing is reported: each part looks from time to time as well.

Rule: nothing here switches greenlets, apart from the `turn` that `want_only` is given.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable
from typing import Any

import gevent

from mcpgreen import journal
from mcpgreen.running.processes.pipes import READ_EVENT

AT_ONCE = 500  # directories, before others get a turn
REMEDIES = {
    errno.ENOSPC: "; raise fs.inotify.max_user_watches",
    errno.EMFILE: "; raise fs.inotify.max_user_instances or ulimit -n",
    errno.EACCES: "; let the user of the server read it",
}

OnChange = Callable[[dict[str, bool]], None]


class Interest:
    """The directories that one part of the server watches.

    `on_change` gets the paths that changed: files, or directories of which no more is known. With each comes whether
    it has merely appeared, and may be about to be written. Without a path, what has changed is reported later.
    """

    def __init__(self, disk: DiskWatcher, on_change: OnChange, *, hears_all: bool) -> None:
        self._disk = disk
        self.on_change = on_change
        self.directories: set[str] = set()  # that are watched; not those that were removed or moved since
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
        self._inotify: Any = None
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
        from mcpgreen.files.inotify import Inotify

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
            say("some changes on disk are found by polling only: %s%s", error, REMEDIES.get(error.errno or 0, ""))
