"""A file of somebody else's program: read it, keep a copy, and put another content in its place, or nothing.

Rule: until the new content is complete on disk, the file is what it was. It keeps its mode, its owner and its extended
attributes; what cannot be kept is a reason to leave it alone. A link stays, and what it leads to is changed.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from mcpgreen.errors import ProjectError
from mcpgreen.files.regular_files import new_file, unguessable, without_waiting

MAX_BYTES = 4 << 20
MAX_BACKUPS = 100
LOCK_SECS = 10.0
LOOK_SECS = 0.02
BACKUP = ".mcpgreen-backup"


class Refused(ProjectError):
    """A file is left as it is. Says why."""


class ClientFile:
    """`path` is where it really is; `content` what was in it when it was read, None if there was none."""

    def __init__(self, named: str) -> None:
        self.named = named
        self.path = os.path.realpath(named)
        self.status: os.stat_result | None = None
        self.content: bytes | None = None
        self.made: list[str] = []  # directories, the outermost first

    def read(self) -> bytes | None:
        """Raises Refused for what is no file, may not be read or changed, or is too large."""
        try:
            with open(self.path, "rb", opener=without_waiting) as file:
                self.status = os.fstat(file.fileno())
                self.content = file.read(MAX_BYTES + 1)
        except FileNotFoundError:
            self.status = self.content = None
            return None
        except OSError as error:
            raise Refused(self.named, f"it cannot be read: {error.strerror}") from None
        if len(self.content) > MAX_BYTES:
            raise Refused(self.named, f"it has more than {MAX_BYTES >> 20} MiB")
        return self.content

    def require_changeable(self) -> None:
        if self.status is None:
            return
        # By its mode as well: root may write to everything.
        if not self.status.st_mode & 0o222 or not os.access(self.path, os.W_OK):
            raise Refused(self.named, "it is read-only; make it writable first (chmod u+w)")
        if self.status.st_nlink > 1:
            raise Refused(self.named, "it has another name (a hard link), which would keep the old content")

    def make_directories(self) -> None:
        missing = []
        place = os.path.dirname(self.path)
        while not os.path.lexists(place):
            missing.append(place)
            place = os.path.dirname(place)
        for directory in reversed(missing):
            try:
                os.mkdir(directory, 0o700)
            except FileExistsError:
                continue  # somebody else is at it
            except OSError as error:
                reason = f"its directory {directory} cannot be made: {error.strerror}; name another file with --file"
                raise Refused(self.named, reason) from None
            self.made.append(directory)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """One at a time, by a lock on the directory: a lock on the file would be one on what is replaced."""
        directory = os.path.dirname(self.path)
        try:
            descriptor = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise Refused(self.named, f"its directory cannot be opened: {error.strerror}") from None
        try:
            self._lock(descriptor)
            yield
        finally:
            os.close(descriptor)

    def _lock(self, descriptor: int) -> None:
        give_up_at = time.monotonic() + LOCK_SECS
        while True:
            try:
                return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno not in (errno.EAGAIN, errno.EACCES):
                    return None  # no locks on this file system; `replace` looks whether somebody else has written
            if time.monotonic() > give_up_at:
                raise Refused(self.named, "another program is changing it; try again")
            time.sleep(LOOK_SECS)

    def back_up(self) -> str:
        """The name of a copy beside it, as private as it is: an older one if that has the same content."""
        assert self.content is not None
        for number in range(1, MAX_BACKUPS + 1):
            name = self.path + BACKUP + (f"-{number}" if number > 1 else "")
            if self._is_copy(name):
                return name
            if not os.path.lexists(name):
                self._write(name, self.content)
                return name
        raise Refused(self.named, f"there are {MAX_BACKUPS} backups of it already; remove those that you do not need")

    def _is_copy(self, name: str) -> bool:
        assert self.status is not None
        try:
            with open(name, "rb", opener=lambda path, flags: without_waiting(path, flags | os.O_NOFOLLOW)) as file:
                status = os.fstat(file.fileno())
                is_private = (status.st_mode, status.st_uid, status.st_gid) == (
                    self.status.st_mode,
                    self.status.st_uid,
                    self.status.st_gid,
                )
                return is_private and status.st_size <= MAX_BYTES and file.read() == self.content
        except OSError:
            return False

    def replace(self, content: bytes) -> None:
        """Raises Refused if somebody else has changed it since it was read."""
        place = f"{self.path}.{unguessable()}.tmp"
        self._write(place, content)
        with self._removing_on_failure(place):
            self._require_unchanged()
            os.replace(place, self.path)
        self._sync_directory()

    def remove(self, directories: list[str]) -> None:
        """The file, and those of the directories that are empty then: the innermost is the last."""
        self._require_unchanged()
        try:
            os.unlink(self.path)
            for directory in reversed(directories):
                os.rmdir(directory)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT):
                raise Refused(self.named, f"it cannot be removed: {error.strerror}") from None
        self._sync_directory()

    def _require_unchanged(self) -> None:
        now = ClientFile(self.path)
        if now.read() != self.content:
            raise Refused(self.named, "another program has changed it meanwhile; try again")

    def _write(self, path: str, content: bytes) -> None:
        """A new file with the mode, owner and attributes of the one that is read."""
        try:
            descriptor = new_file(path)
        except OSError as error:
            reason = f"its directory cannot be written to: {error.strerror}; name another file with --file"
            raise Refused(self.named, reason) from None
        with self._removing_on_failure(path), open(descriptor, "wb") as file:
            self._dress(file.fileno())
            file.write(content)
            file.flush()
            os.fsync(file.fileno())

    @contextmanager
    def _removing_on_failure(self, path: str) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            with suppress(OSError):
                os.unlink(path)
            if isinstance(error, OSError):
                raise Refused(self.named, f"it cannot be written: {error.strerror}") from None
            raise

    def _dress(self, descriptor: int) -> None:
        if self.status is None:
            return
        now = os.fstat(descriptor)
        if (now.st_uid, now.st_gid) != (self.status.st_uid, self.status.st_gid):
            os.fchown(descriptor, self.status.st_uid, self.status.st_gid)
        if hasattr(os, "listxattr"):
            with suppress(OSError):  # a file system without them has none to keep
                for name in os.listxattr(self.path):
                    with suppress(OSError):  # some belong to the system
                        os.setxattr(descriptor, name, os.getxattr(self.path, name))
        os.fchmod(descriptor, stat.S_IMODE(self.status.st_mode))

    def _sync_directory(self) -> None:
        with suppress(OSError):
            descriptor = os.open(os.path.dirname(self.path), os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
