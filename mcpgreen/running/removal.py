"""Remove the trees that scripts leave in our directories: deep, wide, shut, or still being written to."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from contextlib import suppress

import gevent

from mcpgreen.files.regular_files import unguessable
from mcpgreen.running.turns import Turns

MAX_TRIES = 20


def remove_tree(name: bytes, dir_fd: int, pause: Callable[[], None]) -> None:
    """A directory with all that is in it, without following a link. Raises OSError for what cannot be removed. If the
    greenlet is killed on the way, another one goes on."""
    pending = [name]
    try:
        _remove_trees(pending, dir_fd, pause)
    except gevent.GreenletExit:
        gevent.spawn(_remove_the_rest, pending, dir_fd)
        raise


def _remove_the_rest(pending: list[bytes], dir_fd: int) -> None:
    with suppress(OSError):  # it may be gone by now with the whole directory
        _remove_trees(pending, dir_fd, Turns().pause)


def _remove_trees(pending: list[bytes], dir_fd: int, pause: Callable[[], None]) -> None:
    """What is inside is moved up before it is removed: so it may be as deep as it likes. Somebody who is being stopped
    may still put something there, or take it away; then it is looked at again. `pending` always names all that is left.
    """
    tries_left = MAX_TRIES
    while pending:
        current = pending[-1]
        try:
            _empty(current, pending, dir_fd, pause)
            os.rmdir(current, dir_fd=dir_fd)
            pending.remove(current)
        except OSError as error:
            tries_left -= 1
            if error.errno not in (errno.ENOTEMPTY, errno.ENOENT) or not tries_left:
                raise
            if not _exists(current, dir_fd):
                pending.remove(current)


def _empty(directory: bytes, pending: list[bytes], dir_fd: int, pause: Callable[[], None]) -> None:
    with suppress(PermissionError):
        os.chmod(directory, 0o700, dir_fd=dir_fd)  # whoever made it may have shut it
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=dir_fd)
    try:
        with os.scandir(fd) as entries:
            for entry in list(entries):
                if entry.is_dir(follow_symlinks=False):
                    moved = os.fsencode(f"removed.{unguessable()}")
                    os.rename(entry.name, moved, src_dir_fd=fd, dst_dir_fd=dir_fd)
                    pending.append(moved)
                else:
                    os.unlink(entry.name, dir_fd=fd)
                pause()
    finally:
        os.close(fd)


def _exists(name: bytes, dir_fd: int) -> bool:
    try:
        os.lstat(name, dir_fd=dir_fd)
    except OSError:
        return False
    return True
