"""The project as it is now: requirements, permissions, settings, hooks, `.registry`, items. Part of `doctor`.

Rule: starts no server and writes nothing.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping

from mcpgreen.catalog.item_kinds import FILE_OF, TITLE_OF
from mcpgreen.cli.checking.findings import ERROR, OK, WARNING, Check, Finding
from mcpgreen.cli.checking.item_checks import WORD_OF, Checks, discoveries
from mcpgreen.cli.checking.server_checks import HOOKS, server_findings
from mcpgreen.cli.checking.validate import registration_of
from mcpgreen.cli.doctor.requirements import requirement_checks
from mcpgreen.cli.registry import file_status
from mcpgreen.project.project import Project
from mcpgreen.settings.settings import Settings
from mcpgreen.settings.table import ROWS

MAX_VALUE_CHARS = 200


def project_checks(project: Project, settings: Settings, environ: Mapping[str, str]) -> Iterator[Check]:
    yield Check("project", OK, f"{project.server_name()} at {project.root}")
    yield from requirement_checks(project, environ)
    yield from _permissions(project, settings)
    yield from _settings(settings)
    findings = list(server_findings(project, settings))
    yield from _hooks(project, settings, findings)
    yield from _registry(project)
    yield from _offer(project, settings, environ, findings)


def _permissions(project: Project, settings: Settings) -> Iterator[Check]:
    faults = 0
    for home in (project.tools_dir, project.server_dir, project.prompts_dir, project.providers_dir):
        if problem := project.ground(home).problem_with_directory():
            faults += 1
            fix = "chmod go-w, or run mcpgreen validate --fix" if "by others" in problem else "chown it to yourself"
            yield Check("permissions", ERROR, f"{project.shown(home)}/: nothing in it is run: {problem}", fix)
    place = settings.tmp_root or tempfile.gettempdir()
    if not os.access(place, os.W_OK | os.X_OK):
        faults += 1
        fix = "set MCPGREEN_TMP_ROOT or TMPDIR to a directory of yours"
        yield Check("permissions", ERROR, f"{place}: temporary files cannot be written there", fix)
    if not faults:
        yield Check("permissions", OK, f"only you can change what is run; temporary files go to {place}")


def _settings(settings: Settings) -> Iterator[Check]:
    for note in settings.notes:
        yield Check("settings", WARNING, note, "correct the variable, or remove it")
    for row in ROWS:
        origin = settings.origin(row.name)
        if origin != "default":
            value = "(secret)" if row.secret else _as_written(getattr(settings, row.name))
            yield Check("settings", OK, f"{row.name} = {value} (from {origin})")
    if all(settings.origin(row.name) == "default" for row in ROWS) and not settings.notes:
        yield Check("settings", OK, "all are defaults")


def _as_written(value: object) -> str:
    """As somebody would write it into a variable."""
    if isinstance(value, bool):
        return str(value).lower()
    return (",".join(map(str, value)) if isinstance(value, tuple) else str(value))[:MAX_VALUE_CHARS]


def _hooks(project: Project, settings: Settings, findings: list[Finding]) -> Iterator[Check]:
    files = {project.shown(project.server_file(name)) for name in HOOKS}
    there = [finding for finding in findings if finding.file in files]
    for finding in there:
        if finding.level == "ok":
            note = ""
            if finding.message.endswith("register.sh") and not settings.allow_project_hooks:
                note = ", but not run: MCPGREEN_ALLOW_PROJECT_HOOKS is not true"
            yield Check("hooks", OK, finding.message + note)
        else:
            yield Check("hooks", ERROR, finding.message, finding.fix)
    if not there:
        yield Check("hooks", OK, "there are none")


def _registry(project: Project) -> Iterator[Check]:
    directory = project.registry_dir
    shown = project.shown(directory)
    if not os.path.isdir(directory):
        if os.path.lexists(directory):
            yield Check("registry", WARNING, f"{shown} is no directory, so no lists are kept", "remove it")
        else:
            yield Check("registry", OK, f"{shown} is not there yet; lists are kept in it when something is listed")
        return
    if not os.access(directory, os.W_OK | os.X_OK):
        fix = "let the user who runs the server write to it, or set MCPGREEN_REGISTRY_DIR"
        yield Check("registry", WARNING, f"{shown} cannot be written to, so no lists are kept", fix)
        return
    files = [f"{FILE_OF.get(kind, kind)}.json" for kind in TITLE_OF]
    broken = [name for name in files if file_status(os.path.join(directory, name))["status"] == "unreadable"]
    for name in broken:
        fix = "run mcpgreen registry refresh"
        yield Check("registry", WARNING, f"{shown}/{name} cannot be read as JSON", fix)
    if not broken:
        yield Check("registry", OK, shown)


def _offer(project: Project, settings: Settings, environ: Mapping[str, str], server: list[Finding]) -> Iterator[Check]:
    registration, error = registration_of(project, settings, environ)
    items = list(Checks(project, settings, environ, registration).findings(is_served=error is None))
    errors = sum(finding.level == "error" for finding in (*server, *items)) + (error is not None)
    found = discoveries(project, registration)
    counts = {kind: len(each.items) for kind, each in found.items() if not isinstance(each, OSError) and kind != "ui"}
    offered = ", ".join(f"{count} {WORD_OF[kind]}{'' if count == 1 else 's'}" for kind, count in counts.items())
    if errors:
        fix = "run mcpgreen validate, which names each with its remedy"
        yield Check("items", ERROR, f"{offered}; {errors} of its parts cannot be used", fix)
    elif not any(counts.values()):
        yield Check("items", WARNING, "it offers nothing yet", "put an executable file into tools/")
    else:
        yield Check("items", OK, offered)
