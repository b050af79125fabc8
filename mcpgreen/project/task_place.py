"""Where the tasks of a project are kept, if it has any: what a server needs to know at its start, and no more."""

from __future__ import annotations

import os
from collections.abc import Mapping

from mcpgreen.text import jsontext

DATABASE = "tasks.sqlite"
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
