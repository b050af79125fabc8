"""Watch directories, each known by its name, with inotify of Linux."""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Iterator

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
EVENT = struct.Struct("iIII")  # watch, mask, cookie, length of the name that follows
MAX_EVENT_BYTES = EVENT.size + 256


class Inotify:
    """Watches a set of directories. The constructor raises OSError where the system has no inotify."""

    def __init__(self) -> None:
        if not sys.platform.startswith("linux"):
            raise OSError("inotify exists on Linux only")
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
        """The events since the last call: the directory, the path in it or the directory itself, and whether that was
        only created. Never blocks. Afterwards, directories that were renamed are no longer watched."""
        try:
            raw = os.read(self.fd, READ_BYTES)
        except BlockingIOError:
            raw = b""
        self.has_more = len(raw) > READ_BYTES - MAX_EVENT_BYTES
        moved: set[str] = set()
        offset = 0
        while offset < len(raw):
            watch, mask, _, name_bytes = EVENT.unpack_from(raw, offset)
            offset += EVENT.size
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
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number), what)
