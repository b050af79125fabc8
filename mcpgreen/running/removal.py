"""Remove the trees that scripts leave in our directories: deep, wide, shut, or still being written to."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from contextlib import suppress

import gevent

from mcpgreen.files.regular_files import change_mode, unguessable
from mcpgreen.running.turns import Turns

MAX_TRIES = 20


def remove_tree(name: bytes, dir_fd: int, pause: Callable[[], None]) -> None:
    """Remove a directory with all that is in it, without following a link. Raises OSError for what cannot be removed.
    If the greenlet is killed on the way, another one goes on."""
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
    """Remove these directories. What is inside is moved up before it is removed: so it may be as deep as it likes. A
    process that is being stopped may still put something there, or take it away; then it is looked at again. `pending`
    always names all that is left.
    """
    tries_left = MAX_TRIES
    while pending:
        place = len(pending) - 1
        current = pending[place]
        try:
            _empty(current, pending, dir_fd, pause)
            os.rmdir(current, dir_fd=dir_fd)
            del pending[place]
        except OSError as error:
            tries_left -= 1
            if error.errno not in (errno.ENOTEMPTY, errno.ENOENT) or not tries_left:
                raise
            if not _exists(current, dir_fd):
                del pending[place]
        pause()


def _empty(directory: bytes, pending: list[bytes], dir_fd: int, pause: Callable[[], None]) -> None:
    """Empty a directory. There may be millions of files, so they are removed while they are listed; some systems pass
    over names then."""
    with suppress(PermissionError):
        change_mode(directory, add=0o700, dir_fd=dir_fd)  # the script may have shut it
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=dir_fd)
    try:
        for _ in range(MAX_TRIES):
            is_anything_found = False
            with os.scandir(fd) as entries:
                for entry in entries:
                    is_anything_found = True
                    with suppress(FileNotFoundError):
                        _remove_or_move(entry, fd, pending, dir_fd)
                    pause()
            if not is_anything_found:
                return
    finally:
        os.close(fd)


def _remove_or_move(entry: os.DirEntry[str], fd: int, pending: list[bytes], dir_fd: int) -> None:
    """Remove a file or an empty directory; move any other directory up."""
    if not entry.is_dir(follow_symlinks=False):
        os.unlink(entry.name, dir_fd=fd)
        return
    try:
        os.rmdir(entry.name, dir_fd=fd)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        moved = os.fsencode(f"removed.{unguessable()}")
        try:
            os.rename(entry.name, moved, src_dir_fd=fd, dst_dir_fd=dir_fd)
        except PermissionError:  # a directory that is shut has to stay where it is
            change_mode(entry.name, add=0o700, dir_fd=fd)
            os.rename(entry.name, moved, src_dir_fd=fd, dst_dir_fd=dir_fd)
        pending.append(moved)


def _exists(name: bytes, dir_fd: int) -> bool:
    try:
        os.lstat(name, dir_fd=dir_fd)
    except OSError:
        return False
    return True
