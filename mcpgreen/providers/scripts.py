"""The project's own provider scripts: which one provides, and how it is started.

A script is an executable file in providers/, or one without the bit that is a shell script or begins with `#!`. Its
name without the suffix is that of the provider.

Rule: nothing is remembered but the names in the directory, until that changes: a script that was changed, or made
executable, counts at once.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

from mcpgreen import journal
from mcpgreen.catalog.descriptions.metadata import read_start
from mcpgreen.catalog.tree_scan import SETTLING_NS
from mcpgreen.project.project import Project
from mcpgreen.running.scripts import shebang
from mcpgreen.running.scripts.launch import Script

MAX_FILES = 2000  # in providers/


class _Names(NamedTuple):
    """What a directory holds, as long as it has this stamp."""

    stamp: tuple[int, ...]
    by_provider: dict[str, list[str]]


_KNOWN: dict[str, _Names] = {}


def script_for(provider: str, project: Project) -> Script | None:
    """The script of this provider, if the project has one."""
    directory = project.providers_dir
    for name in _names_for(provider, directory):
        path = os.path.join(directory, name)
        command = _command_of(path)
        if command is not None:
            return Script(f"Resource provider '{provider}'", path, command, project.ground(directory))
    return None


def why_missing(provider: str, directory: str) -> str:
    """What would have to be there for the project to have this provider, as the end of a sentence."""
    place = os.path.basename(directory)
    present = _names_for(provider, directory)
    if present:
        return f"{place}/{present[0]} is neither executable nor a script (chmod +x)"
    return f"it would be an executable file {place}/{provider}, with any suffix"


def _names_for(provider: str, directory: str) -> Sequence[str]:
    try:
        status = os.stat(directory)
    except OSError:
        return ()
    stamp = status.st_dev, status.st_ino, status.st_mtime_ns, status.st_ctime_ns
    known = _KNOWN.get(directory)
    if known is None or known.stamp != stamp:
        known = _Names(stamp, _names_in(directory))
        if status.st_ctime_ns < time.time_ns() - SETTLING_NS:
            _KNOWN[directory] = known
        else:
            _KNOWN.pop(directory, None)  # another change might leave the same stamp
    return known.by_provider.get(provider, ())


def _names_in(directory: str) -> dict[str, list[str]]:
    """By the name of the provider. A script may have filled the directory, and nobody is served meanwhile."""
    by_provider: dict[str, list[str]] = {}
    try:
        with os.scandir(directory) as entries:
            names = [entry.name for entry in islice(entries, MAX_FILES)]
            if next(entries, None) is not None:
                place = os.path.basename(directory)
                journal.warning("%s/ has more than %d files; those beyond are not looked at", place, MAX_FILES)
    except OSError:
        return by_provider
    for name in sorted(names):
        if not name.startswith("."):
            by_provider.setdefault(os.path.splitext(name)[0], []).append(name)
    return by_provider


def _command_of(path: str) -> list[str] | None:
    """How the file is started; None if it is no script."""
    if not os.path.isfile(path):
        return None
    is_executable = os.access(path, os.X_OK)
    try:
        head = b"" if is_executable else read_start(path, shebang.LINE_BYTES)
    except OSError:
        return None
    return shebang.command_of(path, head, is_executable=is_executable)
