"""A file of log lines that stays small: written by a thread of its own, renamed when it is full.

The thread is a real one, because a disk can take for ever: whoever logs puts a line into a queue with a bound and goes
on. What the disk does not take is dropped, said once on stderr, and the gap is marked in the file.

Rule: nothing here raises, waits for anybody, or follows a link. Others may have the same file open (each server of a
project does), so the name is looked at before each write: whoever finds it full renames it, under a lock, and the
others follow.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue

from mcpgreen.files.regular_files import CAREFULLY, regular

MAX_QUEUED_BYTES = 4 << 20
CLOSE_SECS = 1.0
TOLD_AGAIN_SECS = 60.0
NOBODY_ELSE = 0o600


class LogFile:
    """`tell` hears, in that thread and not often, what is wrong with the file. `gap` is the line for so many lines that
    are missing."""

    def __init__(
        self, path: str, *, max_bytes: int, keep: int, tell: Callable[[str], None], gap: Callable[[int], bytes]
    ) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._keep = keep
        self._tell = tell
        self._gap = gap
        self._fd = -1
        self._told_at: float | None = None
        self._is_torn = False  # whether the last line was written in part
        self._missing_lines = 0
        self._lines: SimpleQueue[bytes | None] = SimpleQueue()
        self._queued_bytes = 0  # what was put in; the other counter belongs to the thread, so neither needs a lock
        self._taken_bytes = 0
        self._dropped_lines = 0
        self._told_dropped = 0
        self._thread = threading.Thread(target=self._work, name="log file", daemon=True)
        self._thread.start()

    def write(self, line: bytes) -> None:
        """Put it in line, or drop it when the disk is far behind."""
        if self._queued_bytes - self._taken_bytes > MAX_QUEUED_BYTES:
            self._dropped_lines += 1
            return
        self._queued_bytes += len(line)
        self._lines.put(line)

    def close(self) -> None:
        """Let what is in line be written, if the disk takes it soon."""
        self._lines.put(None)
        self._thread.join(CLOSE_SECS)

    def _work(self) -> None:
        self._is_done(self._require_current)
        while (line := self._lines.get()) is not None:
            self._taken_bytes += len(line)
            self._missing_lines += self._dropped_lines - self._told_dropped
            self._told_dropped = self._dropped_lines
            if not self._is_done(self._append, line):
                self._missing_lines += 1
        self._let_go()

    def _is_done(self, action: Callable[..., None], *values: bytes) -> bool:
        try:
            action(*values)
        except OSError as error:
            self._let_go()
            now = time.monotonic()
            if self._told_at is None or now - self._told_at > TOLD_AGAIN_SECS:
                self._told_at = now
                self._tell(f"log_file: {self._path} cannot be written: {error.strerror}")
            return False
        return True

    def _append(self, line: bytes) -> None:
        if self._missing_lines:
            line = self._gap(self._missing_lines) + line
        if self._is_torn:
            line = b"\n" + line
        self._require_current()
        size = os.fstat(self._fd).st_size
        if size and size + len(line) > self._max_bytes:
            self._begin_anew()
        written = os.write(self._fd, line)
        self._is_torn = written < len(line)
        if self._is_torn:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._missing_lines = 0

    def _is_current(self) -> bool:
        try:
            return os.path.samestat(os.fstat(self._fd), os.stat(self._path, follow_symlinks=False))
        except FileNotFoundError:
            return False

    def _require_current(self) -> None:
        """Have that file open which has the name now."""
        if self._fd >= 0:
            if self._is_current():
                return
            self._let_go()
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | CAREFULLY
        try:
            fd = regular(os.open(self._path, flags, NOBODY_ELSE), self._path)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise OSError(errno.ELOOP, "it is a link") from None
            if error.errno == errno.ENXIO:
                raise OSError(errno.ENXIO, "it is no regular file") from None
            raise
        self._fd = fd
        found = os.fstat(fd)
        if found.st_uid != os.geteuid():
            raise OSError(errno.EPERM, "it belongs to another user")
        if stat.S_IMODE(found.st_mode) != NOBODY_ELSE:
            os.fchmod(fd, NOBODY_ELSE)

    def _begin_anew(self) -> None:
        """Rename the full file, and those before it. Where that cannot be, empty it: it must not grow without end."""
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return  # somebody else is doing it
        try:
            if not self._is_current():
                return  # somebody else has done it; two who rename at the same time would overwrite a file
            if not self._keep:
                os.ftruncate(self._fd, 0)
                return
            for number in range(self._keep - 1, 0, -1):
                with suppress(FileNotFoundError):
                    os.rename(f"{self._path}.{number}", f"{self._path}.{number + 1}")
            os.rename(self._path, f"{self._path}.1")
        except OSError:
            os.ftruncate(self._fd, 0)
            return
        finally:
            with suppress(OSError):
                fcntl.flock(self._fd, fcntl.LOCK_UN)
        self._require_current()

    def _let_go(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
