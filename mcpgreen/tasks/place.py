"""Where the tasks of a project are kept: a private directory in the user's state, one for each project.

Rule: nothing is made in a place that other users own or can write to. The functions are cheap enough for the start of
a server.
"""

from __future__ import annotations

import os
import stat

from mcpgreen.files.regular_files import existing_file, private_directory
from mcpgreen.files.writers import others_may_write
from mcpgreen.project.task_place import DATABASE, directory_of, has_store

__all__ = ["DATABASE", "FILES", "KEY", "RESULTS", "RUNNERS", "directory_of", "has_store", "prepare"]
KEY, RESULTS, RUNNERS = "key", "results", "runners"
# SQLite opens the last two by itself.
FILES = (DATABASE, KEY, f"{DATABASE}-wal", f"{DATABASE}-shm")


def prepare(directory: str, *, makes: bool = True) -> None:
    """Check the directory and those in it, and make what is missing. Raises OSError if that is not possible, or if the
    place cannot be trusted: other users own it or can write to it, or something else has its name."""
    tasks = os.path.dirname(directory)
    ours = os.path.dirname(tasks)
    state = os.path.dirname(ours)
    if makes:
        os.makedirs(state, mode=0o700, exist_ok=True)
    elif not os.path.lexists(state):
        return
    status = os.stat(state)
    is_open = others_may_write(os.path.realpath(state), status) and not status.st_mode & stat.S_ISVTX
    if is_open or status.st_uid not in (os.geteuid(), 0):
        raise PermissionError(0, "it belongs to another user, or other users can write to it", state)
    for each in (ours, tasks, directory, os.path.join(directory, RESULTS), os.path.join(directory, RUNNERS)):
        if not makes and not os.path.lexists(each):
            return
        os.close(private_directory(each))
    for path in (os.path.join(directory, name) for name in FILES):
        if os.path.lexists(path):
            os.close(existing_file(path))
            status = os.lstat(path)
            if status.st_uid != os.geteuid() or status.st_nlink > 1 or others_may_write(path, status):
                raise PermissionError(0, "other users own it or can write to it, or it has a second name", path)
