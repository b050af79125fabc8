"""The project's own provider scripts: find the script of a provider, and how to start it.

A script is a file in providers/ that is executable, is a shell script, or begins with `#!`. Its name without the suffix
is the name of the provider.

Rule: nothing is cached, so that a new, changed or removed script counts at once.
"""

from __future__ import annotations

import os
from functools import cache
from itertools import islice

from mcpgreen import journal
from mcpgreen.catalog.descriptions.metadata import read_start
from mcpgreen.project.project import Project
from mcpgreen.running.processes.run import Script
from mcpgreen.running.scripts import shebang

MAX_FILES = 2000  # in providers/; reading more names would block the server, and a script may have made them


def script_for(provider: str, project: Project) -> Script | None:
    """Return the script of this provider, if the project has one."""
    directory = project.providers_dir
    for name in _names_for(provider, directory):
        path = os.path.join(directory, name)
        is_executable = os.access(path, os.X_OK)
        try:
            head = b"" if is_executable else read_start(path, shebang.LINE_BYTES)
        except OSError:
            continue
        command = shebang.command_of(path, head, is_executable=is_executable) if os.path.isfile(path) else None
        if command is not None:
            return Script(f"Resource provider '{provider}'", path, command, project.ground(directory))
    return None


def why_missing(provider: str, directory: str) -> str:
    """Return why the project does not have this provider, as the end of a sentence."""
    place = os.path.basename(directory)
    present = _names_for(provider, directory)
    if present:
        return f"{place}/{present[0]} is neither executable nor a script (chmod +x)"
    return f"it would be an executable file {place}/{provider}, with any suffix"


def _names_for(provider: str, directory: str) -> list[str]:
    try:
        with os.scandir(directory) as entries:
            names = [entry.name for entry in islice(entries, MAX_FILES)]
            if next(entries, None) is not None:
                _warn_of_too_many(os.path.basename(directory))
    except OSError:
        return []
    return sorted(name for name in names if os.path.splitext(name)[0] == provider and not name.startswith("."))


@cache  # once
def _warn_of_too_many(place: str) -> None:
    journal.warning("%s/ has more than %d files; the others are ignored", place, MAX_FILES)
