"""Choose the directory for temporary files: the operator's choice, or else TMPDIR, or else the system's default.

Nothing is created here. A directory that was named and cannot be used is a reason not to start; a bad TMPDIR is often
inherited from somewhere, so the system's place does instead, and stderr says so.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from mcpgreen import journal
from mcpgreen.errors import ProjectError
from mcpgreen.files.writers import others_may_write

if TYPE_CHECKING:
    from collections.abc import Mapping

SYSTEM_PLACE = "/tmp"


def require_usable(tmp_root: str, *, root: str) -> None:
    """Raises ProjectError if the directory that the setting names will not do."""
    path = _named(tmp_root, root)
    problem = _problem_with(path)
    if problem:
        raise ProjectError(path, f"tmp_root {problem}, or choose another directory")


def with_usable_tmpdir(environ: Mapping[str, str]) -> Mapping[str, str]:
    """Return the same variables, with the system's place as TMPDIR if theirs will not do."""
    path = environ.get("TMPDIR")
    problem = _problem_with(os.path.abspath(path)) if path else None
    if not problem:
        return environ
    journal.warning("TMPDIR is %s, which %s; %s is used instead", path, problem, SYSTEM_PLACE)
    return {**environ, "TMPDIR": SYSTEM_PLACE}


def place_of(tmp_root: str, environ: Mapping[str, str], *, root: str) -> str:
    """Return where the server makes its directory: the place in the settings, else TMPDIR, else the system's."""
    path = _named(tmp_root, root) if tmp_root else os.path.abspath(environ.get("TMPDIR") or SYSTEM_PLACE)
    doubt = _doubt_about(path)
    if doubt:
        journal.warning("temporary files are created in %s, and %s", path, doubt)
    return path


def _named(tmp_root: str, root: str) -> str:
    """Return the named directory. A relative path is below the project, as in other settings."""
    return os.path.normpath(os.path.join(root, os.path.expanduser(tmp_root)))


def _problem_with(path: str) -> str | None:
    """Return what keeps us from using it, and what to do about that."""
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        return f"cannot be used ({error.strerror}): create it"
    if not stat.S_ISDIR(mode):
        return "is not a directory: remove it"
    if not os.access(path, os.W_OK | os.X_OK):
        return "is not writable: change its permissions"
    if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        return "lets any user replace the server's files: run chmod +t or chmod o-w on it"
    if "\n" in path:
        return "has a line break in its name: rename it"
    return None


def _doubt_about(path: str) -> str | None:
    """Say which other users could replace our files, and what to do about that."""
    try:
        status = os.stat(path)
    except OSError:
        return None  # the part that needs it will say so
    if status.st_uid not in (0, os.geteuid()):
        return f"its owner (uid {status.st_uid}) could replace them; set tmp_root to a directory of your own"
    if not status.st_mode & stat.S_ISVTX and others_may_write(os.path.realpath(path), status):
        return f"its group (gid {status.st_gid}) could replace them; run chmod +t or chmod g-w on it, or set tmp_root"
    return None
