"""Who could have written this file? Owner, mode and kind, nothing else.

Knows no policy: what becomes of a file that cannot be trusted is for whoever asks.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable

# Root can change everything anyway, so what belongs to root is as safe as what belongs to us.
TRUSTED_OWNERS = (os.geteuid(), 0)


def problem_with(path: str, *parents: str) -> str | None:
    """Why the file must not be used as our own, as the end of a sentence; None if nothing speaks against it.

    Whoever can write to one of the `parents` can put another file in its place, so they are looked at in the same way.
    """
    try:
        problem = _problem_of(os.lstat(path), "it", is_wanted=stat.S_ISREG, kind="regular file")
        for parent in parents:
            name = f"its directory {os.path.basename(parent) or parent}"
            problem = problem or _problem_of(os.lstat(parent), name, is_wanted=stat.S_ISDIR, kind="directory")
    except OSError as error:
        return f"it cannot be examined: {error.strerror}"
    return problem


def fault_of(status: os.stat_result) -> str | None:
    """What is wrong with the owner or the mode, for a sentence about the file or directory."""
    if status.st_uid not in TRUSTED_OWNERS:
        return "belongs to another user"
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return "may be written to by others (chmod go-w)"
    return None


def _problem_of(status: os.stat_result, name: str, *, is_wanted: Callable[[int], bool], kind: str) -> str | None:
    if stat.S_ISLNK(status.st_mode):
        return f"{name} is a symbolic link"
    if not is_wanted(status.st_mode):
        return f"{name} is no {kind}"
    fault = fault_of(status)
    return f"{name} {fault}" if fault else None
