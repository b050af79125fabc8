"""Open the project that a command line names."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from mcpgreen import journal
from mcpgreen.cli.commands import Options
from mcpgreen.errors import UsageError
from mcpgreen.project.project import Project, find_project, open_project
from mcpgreen.settings.settings import Settings, load


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


def repetitions(options: Options) -> int:
    """Return the value of `--repeat`. Raises UsageError."""
    if not re.fullmatch("[1-9][0-9]{0,5}", options["--repeat"]):
        raise UsageError("--repeat must be a number from 1 to 999999.")
    return int(options["--repeat"])


def source_files(options: Options) -> Mapping[str, str]:
    """Return the environment after the shell files that `--source` names."""
    from mcpgreen.running.hooks import sourced_variables  # few commands need it

    environ: Mapping[str, str] = os.environ
    for file in options["--source"]:
        path = os.path.abspath(file)
        if not os.path.isfile(path):  # not here, so it is in the project
            root = options["--project-root"] or load({}, environ, {}).project_root
            project = find_project(root or None, cwd=os.getcwd(), directories={})
            path = os.path.join(project.root, file) if project is not None else file
        if not os.path.isfile(path):
            raise UsageError(f"--source {file}: no such file here or in the project.")
        environ = sourced_variables(path, environ, directory=os.getcwd()).applied_to(environ)
    return environ
