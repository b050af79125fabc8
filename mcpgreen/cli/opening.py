"""Open the project that a command line names."""

from __future__ import annotations

import os
from collections.abc import Mapping

from mcpgreen import journal
from mcpgreen.cli.commands import Options
from mcpgreen.errors import UsageError
from mcpgreen.project.project import Project, open_project
from mcpgreen.settings.settings import Settings


def open_named(
    options: Options, environ: Mapping[str, str] = os.environ, *, logs_notes: bool = False
) -> tuple[Project, Settings, Mapping[str, str]]:
    """Return the project, its settings, and the environment after its `env.sh`. `logs_notes`: log wrong settings."""
    flags = {"project_root": options["--project-root"], "force_minimal": "true" if options.get("--minimal") else None}
    found = open_project({name: value for name, value in flags.items() if value}, environ, needs_own=True)
    if logs_notes:
        for note in found[1].notes:
            journal.warning("%s", note)
    return found


def seconds(options: Options) -> float | None:
    """Return the value of `--timeout`. Raises UsageError."""
    text = options["--timeout"]
    if text is None:
        return None
    try:
        secs = float(text)
    except ValueError:
        secs = 0.0
    if not 0 < secs < float("inf"):
        raise UsageError("--timeout must be a positive number of seconds.")
    return secs
