"""The project's own provider scripts: which one provides, and how it is started.

A script is an executable file in providers/, or one without the bit that is a shell script or begins with `#!`. Its
name without the suffix is that of the provider.

Rule: nothing is remembered. The directory is small, and a script that was changed, or made executable, counts at once.
"""

from __future__ import annotations

import os

from mcpgreen.catalog.descriptions.metadata import read_start
from mcpgreen.project.project import Project
from mcpgreen.running.scripts import shebang
from mcpgreen.running.scripts.launch import Script


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


def _names_for(provider: str, directory: str) -> list[str]:
    try:
        names = sorted(os.listdir(directory))
    except OSError:
        return []
    return [name for name in names if os.path.splitext(name)[0] == provider and not name.startswith(".")]


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
