"""Open regular files and private directories safely, where an attacker may have put something else in their place.

A FIFO would make the server wait for the process at its other end, a device for much longer, and a link would lead a
write, or a new mode, to a file of the attacker's choice. `change_mode` is the only function that changes modes by name,
`private_directory` makes the directories that only we may use, and `replacing` replaces files as a whole.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

from mcpgreen.errors import ProjectError
from mcpgreen.files.writers import others_may_write

# Non-blocking, because a FIFO would wait for its writer; a terminal must not become ours.
CAREFULLY = os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
# Only a handle, so it works for files that we may not read. Only Linux has it.
_HANDLE_ONLY = getattr(os, "O_PATH", 0)
HIDDEN = ".mcpgreen-"  # how a name begins until all is written; hidden, so that no server looks at it


def without_waiting(path: str | bytes, flags: int) -> int:
    """An `opener` for `open`. Raises OSError if the path is not a regular file."""
    return regular(os.open(path, flags | CAREFULLY, 0o600), path)


def new_file(path: str | bytes, *, dir_fd: int | None = None) -> int:
    """Create a file and open it for writing. Raises OSError if anything has that name already, even a link."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | CAREFULLY, 0o600, dir_fd=dir_fd)


def existing_file(name: str | bytes, *, dir_fd: int | None = None) -> int:
    """Open a regular file for reading. Raises OSError for anything else, even a link."""
    return regular(os.open(name, os.O_RDONLY | os.O_NOFOLLOW | CAREFULLY, dir_fd=dir_fd), name)


def regular(descriptor: int, path: str | bytes) -> int:
    """Return the descriptor. Closes it and raises OSError if it is not that of a regular file."""
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is not a regular file", path)
    return descriptor


def change_mode(path: str | bytes, *, add: int = 0, remove: int = 0) -> bool:
    """Change the mode of a file or directory; return False if it had that mode already. Raises OSError if it is a
    link or anything else, and if it belongs to another user."""
    fd = os.open(path, _HANDLE_ONLY | os.O_NOFOLLOW | CAREFULLY)
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) and not stat.S_ISDIR(status.st_mode):
            raise OSError(errno.EINVAL, "it is neither a file nor a directory", path)
        _require_ours(status, path)
        mode = stat.S_IMODE(status.st_mode)
        wanted = (mode & ~remove) | add
        if wanted != mode:
            os.chmod(f"/proc/self/fd/{fd}" if _HANDLE_ONLY else fd, wanted)
        return wanted != mode
    finally:
        os.close(fd)


def private_directory(path: str, *, must_be_new: bool = False) -> int:
    """Open a directory that only we can use; make it if it is missing. Raises OSError if it is a link, belongs to
    another user, or others could have put something into it."""
    if not must_be_new:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        if must_be_new:
            raise
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        status = os.fstat(fd)
        _require_ours(status, path)
        # A directory that we have just made is private. Into an older one, others may have put files while it was open.
        if status.st_mode & 0o077 and (must_be_new or others_may_write(fd, status)):
            raise PermissionError(errno.EPERM, "other users can write to it, or have put it there", path)
        if status.st_mode & 0o077:
            os.fchmod(fd, 0o700)
    except OSError:
        os.close(fd)
        raise
    return fd


def _require_ours(status: os.stat_result, path: str | bytes) -> None:
    if status.st_uid != os.geteuid():
        raise PermissionError(errno.EPERM, "it belongs to another user", path)


def content_of(path: str, limit_bytes: int) -> bytes:
    """Read a whole file. Raises ProjectError if it is too large or cannot be read."""
    try:
        with open(path, "rb", opener=without_waiting) as file:
            raw = file.read(limit_bytes + 1)
    except OSError as error:
        raise ProjectError(path, f"it cannot be read: {error.strerror}") from error
    if len(raw) > limit_bytes:
        raise ProjectError(path, f"it is larger than {limit_bytes} bytes")
    return raw


def unguessable() -> str:
    """Return a part of a name that no other program can have guessed and used before us."""
    return os.urandom(16).hex()


@contextmanager
def replacing(path: str, *, mode: int = 0o600) -> Iterator[BinaryIO]:
    """Open a file that replaces `path` once it is complete: programs that read it see the old file or the new one.
    An error, an interrupt or a killed greenlet leaves `path` as it was."""
    hidden = os.path.join(os.path.dirname(path), HIDDEN + unguessable())
    descriptor = new_file(hidden)
    try:
        with open(descriptor, "wb") as file:
            yield file
            os.fchmod(file.fileno(), mode)
        os.replace(hidden, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(hidden)
        raise
