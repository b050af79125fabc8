"""Deliver an answer to a waiting script: through the FIFO that it created, or else as a file.

It is not known when a script begins to read, and one that never does must not stop us: everything here is tried without
blocking, for a while.

Rule: answers of people are for the script alone. They go into a directory that is ours alone, and through no link.
"""

from __future__ import annotations

import errno
import os
import stat

import gevent
from gevent.os import nb_write

from mcpgreen import journal
from mcpgreen.files.regular_files import CAREFULLY, new_file, unguessable

PATIENCE_SECS = 10.0
PAUSE_SECS = 0.005


def deliver(path: str, answer: bytes) -> None:
    """Write one line to the FIFO at `path`, or put a file there in one step."""
    directory, name = os.path.split(path)
    try:
        directory_fd = _private_directory(directory)
        try:
            _put(name, answer + b"\n", directory_fd)
        finally:
            os.close(directory_fd)
    except OSError as error:
        journal.warning("a script did not read its answer: %s", error.strerror)


def _private_directory(path: str) -> int:
    """Open the directory if it is ours: a cleaner may have removed it, and another process may have its name now."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    status = os.fstat(fd)
    if status.st_uid != os.geteuid() or status.st_mode & 0o077:
        os.close(fd)
        raise PermissionError(errno.EPERM, "other users can use its directory", path)
    return fd


def _put(name: str, content: bytes, directory_fd: int) -> None:
    try:
        is_fifo = stat.S_ISFIFO(os.lstat(name, dir_fd=directory_fd).st_mode)
    except FileNotFoundError:
        is_fifo = False
    if is_fifo:
        _write_to_fifo(name, content, directory_fd)
        return
    draft = f"{name}.{unguessable()}"
    with open(new_file(draft, dir_fd=directory_fd), "wb") as file:
        file.write(content)
    os.rename(draft, name, src_dir_fd=directory_fd, dst_dir_fd=directory_fd)


def _write_to_fifo(name: str, content: bytes, directory_fd: int) -> None:
    with gevent.Timeout(PATIENCE_SECS, TimeoutError(errno.ETIMEDOUT, "no process reads it")):
        descriptor = _opened(name, directory_fd)
        try:
            rest = memoryview(content)
            while rest:
                rest = rest[nb_write(descriptor, rest) :]
        finally:
            os.close(descriptor)


def _opened(name: str, directory_fd: int) -> int:
    """Open it for writing, as soon as a process reads."""
    while True:
        try:
            descriptor = os.open(name, os.O_WRONLY | os.O_NOFOLLOW | CAREFULLY, dir_fd=directory_fd)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            gevent.sleep(PAUSE_SECS)
            continue
        if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
            return descriptor
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is not a FIFO any more", name)
