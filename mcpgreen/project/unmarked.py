"""Find a project without server.d/server.meta.json: by its server.d/, or by a file in tools/, resources/ or prompts/.

The search ends at the first file that makes a project, and looks at a bounded number of files.

Rule: a folder of another user is not a project unless the operator names it: the way up may lead through /tmp.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from itertools import islice

from mcpgreen import journal
from mcpgreen.project.project import upwards
from mcpgreen.running.scripts.shebang import head_of

SERVER_DIRECTORY = "server.d"
CONTENT_DIRECTORIES = ("tools", "resources", "prompts")
META_SUFFIXES = (".meta.json", ".meta.yaml", ".meta.yml")
ANY_EXECUTABLE_BIT = stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH

# Limits of the entries that are looked at: in one directory, and below one of CONTENT_DIRECTORIES.
MAX_OF_ONE = 256
MAX_BELOW = 1024
HEAD_BYTES = 4096


def unmarked_root(place: str) -> str | None:
    """Return the nearest folder with a server.d/, else the nearest with an item in it. `place` is a real path."""
    for folder in upwards(place):
        if _is_trusted_directory(os.path.join(folder, SERVER_DIRECTORY)):
            return folder
    for folder in upwards(place):
        for name in CONTENT_DIRECTORIES:
            found = _first_in(os.path.join(folder, name), _is_ours)
            if found:
                if folder in (os.sep, os.path.realpath(os.path.expanduser("~"))):
                    # It may be a stray file: the user probably expects another project.
                    journal.warning(
                        "the project is %s, because of %s; add --project-root to use another", folder, found
                    )
                return folder
    return None


def _is_trusted_directory(path: str) -> bool:
    try:
        status = os.stat(path)
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid in (os.geteuid(), 0)


def forgotten_script(place: str) -> str | None:
    """Return a script in tools/ that would make this folder a project, if it were executable."""
    return _first_in(os.path.join(place, "tools"), lambda entry: head_of(entry.path).startswith(b"#!"))


def _first_in(directory: str, is_wanted: Callable[[os.DirEntry[str]], bool]) -> str | None:
    """Return the first file of this kind, nearer to the top first. Links are not followed."""
    if not _is_trusted_directory(directory):
        return None
    left = MAX_BELOW
    pending = [directory]
    for path in pending:
        if left == 0:
            break
        try:
            with os.scandir(path) as entries:
                for entry in islice(entries, min(left, MAX_OF_ONE)):
                    left -= 1
                    if entry.name[0] == ".":
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
                    elif entry.is_file(follow_symlinks=False) and is_wanted(entry):
                        return entry.path
        except OSError:
            continue  # it has vanished, or we may not read it
    return None


def _is_ours(entry: os.DirEntry[str]) -> bool:
    """Tell whether it is an executable, a description, or a Python function that is a tool."""
    if entry.name.endswith(".py") and b"mcp_tool" in head_of(entry.path, HEAD_BYTES):
        return True  # needs no executable bit
    return entry.name.endswith(META_SUFFIXES) or bool(entry.stat(follow_symlinks=False).st_mode & ANY_EXECUTABLE_BIT)
