"""Open what should be a file, where somebody may have put something else in its place.

A FIFO would make the server wait for whoever is at its other end, a device for much longer, and a link would lead a
write to a file of somebody's choice.
"""

from __future__ import annotations

import errno
import os
import stat

from mcpgreen.errors import ProjectError

# Non-blocking, because a FIFO would wait for its writer; a terminal must not become ours.
CAREFULLY = os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def without_waiting(path: str | bytes, flags: int) -> int:
    """An `opener` for `open`. Raises OSError for what is no regular file."""
    return regular(os.open(path, flags | CAREFULLY, 0o600), path)


def new_file(path: str | bytes, *, dir_fd: int | None = None) -> int:
    """A file that was not there before, open for writing. Raises OSError if anything has that name, also a link."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | CAREFULLY, 0o600, dir_fd=dir_fd)


def existing_file(name: str | bytes, *, dir_fd: int | None = None) -> int:
    """A regular file, open for reading. Raises OSError for what is none, also for a link."""
    return regular(os.open(name, os.O_RDONLY | os.O_NOFOLLOW | CAREFULLY, dir_fd=dir_fd), name)


def regular(descriptor: int, path: str | bytes) -> int:
    """The same descriptor. Raises OSError, and closes it, if it leads to anything but a file."""
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is no regular file", path)
    return descriptor


def content_of(path: str, limit_bytes: int) -> bytes:
    """All of a file. Raises ProjectError if that is too much, or cannot be had."""
    try:
        with open(path, "rb", opener=without_waiting) as file:
            raw = file.read(limit_bytes + 1)
    except OSError as error:
        raise ProjectError(path, f"it cannot be read: {error.strerror}") from error
    if len(raw) > limit_bytes:
        raise ProjectError(path, f"it is larger than {limit_bytes} bytes")
    return raw


def unguessable() -> str:
    """A part of a name that nobody can have used before us. Not by `secrets`: that would cost 3 ms at start."""
    return os.urandom(16).hex()
