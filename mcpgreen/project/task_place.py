"""Where the tasks of a project are kept: a private directory in the user's state, one for each project.

Rule: nothing is made in a place that other users own or can write to. The functions are cheap enough for the start of
a server.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping

from mcpgreen.files.regular_files import private_directory
from mcpgreen.files.writers import others_may_write
from mcpgreen.text import jsontext

DATABASE, KEY, RESULTS, RUNNERS = "tasks.sqlite", "key", "results", "runners"
FILES = (DATABASE, KEY, f"{DATABASE}-wal", f"{DATABASE}-shm")  # SQLite opens the last two by itself
DIGEST_CHARS = 32


def directory_of(root: str, environ: Mapping[str, str]) -> str:
    """Return the directory for the tasks of a project."""
    state = environ.get("XDG_STATE_HOME", "")
    if not state.startswith("/"):  # the specification ignores relative paths
        state = os.path.join(environ.get("HOME") or os.path.expanduser("~"), ".local", "state")
    digest = jsontext.digest_of_chunks([os.fsencode(os.path.realpath(root))])
    return os.path.join(state, "mcpgreen", "tasks", digest[:DIGEST_CHARS])


def has_store(directory: str) -> bool:
    """Tell whether tasks were ever stored there."""
    return os.path.lexists(os.path.join(directory, DATABASE))


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
    for path in filter(os.path.lexists, (os.path.join(directory, name) for name in FILES)):
        status = os.lstat(path)
        is_ours = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid() and status.st_nlink == 1
        if not is_ours or others_may_write(path, status):
            raise PermissionError(0, "it is no file of ours that others cannot write to, or has a second name", path)
