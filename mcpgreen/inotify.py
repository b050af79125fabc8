"""Linux inotify, as far as we need it: tell which files in some directories changed, not how."""

from __future__ import annotations

import ctypes
import os
import stat
import struct
import sys
from collections.abc import Callable, Iterable, Iterator

from mcpgreen import journal

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
MASK = (
    IN_ATTRIB
    | IN_CLOSE_WRITE
    | IN_MOVED_FROM
    | IN_MOVED_TO
    | IN_CREATE
    | IN_DELETE
    | IN_DELETE_SELF
    | IN_MOVE_SELF
    | IN_ONLYDIR
)
READ_BYTES = 65536
AT_ONCE = 500
EVENT = struct.Struct("iIII")  # watch, mask, cookie, length of the name that follows


class Inotify:
    """Watches a set of directories. Raises OSError at birth where the system has no inotify or no room for one."""

    def __init__(self) -> None:
        if not sys.platform.startswith("linux"):
            raise OSError("inotify exists on Linux only")
        self._libc = ctypes.CDLL(None, use_errno=True)
        self.fd = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self.fd < 0:
            raise OSError(ctypes.get_errno(), "inotify_init1")
        self._watched: dict[str, int] = {}
        self._names: dict[int, set[str]] = {}  # several names of one directory share a watch
        self._refused: set[str] = set()

    def watch_exactly(self, directories: Iterable[str], turn: Callable[[], object]) -> bool:
        """Watch these and no others. False when the system's limit does not allow it. Others get a `turn` meanwhile."""
        wanted = set(directories)
        for directory in self._watched.keys() - wanted:
            self.unwatch(directory)
        for number, directory in enumerate(wanted, 1):
            # Adding again is cheap and right: another directory may stand under the old name.
            if not self.watch(directory):
                return False
            if number % AT_ONCE == 0:
                turn()
                if self.fd < 0:
                    return False  # closed meanwhile
        return True

    def watch_also(self, directories: Iterable[str]) -> bool:
        """Watch those that are not watched yet. False when the system's limit does not allow it."""
        return all(self.watch(directory) for directory in set(directories) - self._watched.keys())

    def watches(self) -> set[int]:
        """The kernel's numbers of the watches that are set. It uses none twice."""
        return set(self._names)

    def watch(self, directory: str) -> bool:
        """False when the system's limit does not allow it; a directory that does not exist is no failure."""
        watch = self._libc.inotify_add_watch(self.fd, os.fsencode(directory), MASK)
        if watch >= 0:
            if self._watched.get(directory, watch) != watch:
                self.unwatch(directory)  # another directory stands under this name now
            self._watched[directory] = watch
            self._names.setdefault(watch, set()).add(directory)
            self._refused.discard(directory)
        elif os.path.isdir(directory):
            if directory not in self._refused:
                journal.warning("cannot watch %s for changes: %s", directory, os.strerror(ctypes.get_errno()))
                self._refused.add(directory)
            return False
        return True

    def unwatch(self, directory: str) -> None:
        watch = self._forget(directory)
        if watch is not None:
            self._libc.inotify_rm_watch(self.fd, watch)

    def watch_again(self, directories: Iterable[str]) -> None:
        """Those that were removed and may have come back."""
        for directory in directories:
            if directory not in self._watched and os.path.isdir(directory):
                self.watch(directory)

    def has_news(self) -> bool:
        """Whether anything happened since the last time. Never blocks."""
        return len(list(self._events())) > 0

    def changed_paths(self) -> set[str]:
        """What changed since the last time: files, or directories of which more is not known. Never blocks."""
        paths: set[str] = set()
        for directory, mask, name in self._events():
            path = os.path.join(directory, name) if name else directory
            if not mask & IN_IGNORED and not (mask & IN_CREATE and _is_being_written(path)):
                paths.add(path)
        return paths

    def _events(self) -> Iterator[tuple[str, int, str]]:
        """Directory, mask and name. In the end only those directories count as watched that still have their names."""
        raw = self._read()
        moved: set[str] = set()
        offset = 0
        while offset < len(raw):
            watch, mask, _, name_bytes = EVENT.unpack_from(raw, offset)
            offset += EVENT.size
            name = os.fsdecode(raw[offset : offset + name_bytes].rstrip(b"\0"))
            offset += name_bytes
            for directory in tuple(self._watched if mask & IN_Q_OVERFLOW else self._names.get(watch, ())):
                yield directory, mask, name
                if mask & IN_IGNORED:
                    self._forget(directory)  # it is gone
                elif mask & IN_MOVE_SELF:
                    moved.add(directory)
        if moved:
            self._unwatch_below(moved)

    def _unwatch_below(self, moved: set[str]) -> None:
        """They, and what is in them, are known under other names now."""
        for directory in list(self._watched):
            place = directory
            while place not in moved and place != os.path.dirname(place):
                place = os.path.dirname(place)
            if place in moved:
                self.unwatch(directory)

    def _forget(self, directory: str) -> int | None:
        """The watch that nobody needs any more, if there is one."""
        watch = self._watched.pop(directory, None)
        if watch is None:
            return None
        names = self._names[watch]
        names.remove(directory)
        if names:
            return None
        del self._names[watch]
        return watch

    def _read(self) -> bytes:
        try:
            return os.read(self.fd, READ_BYTES)
        except BlockingIOError:
            return b""

    def close(self) -> None:
        os.close(self.fd)
        self.fd = -1


def _is_being_written(path: str) -> bool:
    """Whether a path that was just made is an ordinary new file, whose writer will close it: we hear of that too."""
    try:
        status = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_nlink == 1
