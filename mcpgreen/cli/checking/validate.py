"""`mcpgreen validate`: what is wrong with a project, before a client finds out.

Reads what a server would read, and says of everything whether it will be served. Writes nothing, unless it is asked to
mend what it can.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from mcpgreen.catalog.manual.current import Registrar
from mcpgreen.catalog.manual.rules import Registration
from mcpgreen.cli.checking import mending
from mcpgreen.cli.checking.findings import Finding, Report
from mcpgreen.cli.checking.item_checks import Checks
from mcpgreen.cli.checking.remedies import explained
from mcpgreen.cli.checking.script_checks import refused
from mcpgreen.cli.checking.server_checks import server_findings
from mcpgreen.cli.commands import Options
from mcpgreen.cli.opening import opened
from mcpgreen.errors import ProjectError, Untrusted
from mcpgreen.project.project import DEFAULT_DIRECTORIES, REMEDY, Project, find_project
from mcpgreen.running.hooks.shell import HookShell
from mcpgreen.settings.settings import Settings
from mcpgreen.settings.table import load


def run(options: Options) -> int:
    """0 when all is well, 1 when there are errors, or warnings and `--strict`."""
    return report_on(options).print(as_json=options["--json"], shows_defaults=options["--explain-defaults"])


def report_on(options: Options) -> Report:
    """What is found, after mending if that is asked for."""
    mended: list[Finding] = []
    try:
        if options["--fix"]:
            # First, because a project that others can change is not even opened.
            mended += mending.mended(_bare(options))
        project, settings, environ = opened(options)
    except Untrusted as error:
        return _not_opened(options, error)
    findings = [*server_findings(project, settings), *mended, *_items(project, settings, environ)]
    return Report(project, findings, sum(each.code == mending.MENDED for each in mended), options["--strict"])


def registration_of(
    project: Project, settings: Settings, environ: Mapping[str, str]
) -> tuple[Registration | None, ProjectError | None]:
    """What the project registers by hand, or why that cannot be used."""
    shell = HookShell(environ, settings=settings, directory=project.root)
    try:
        return Registrar(project, settings=settings, shell=shell).current(), None
    except ProjectError as error:
        return None, error


def _items(project: Project, settings: Settings, environ: Mapping[str, str]) -> Iterator[Finding]:
    registration, error = registration_of(project, settings, environ)
    if isinstance(error, ProjectError):
        shown = project.shown(error.path)
        if "not trusted" in error.reason:
            problem = refused(error.reason, error.reason, error.path)
            yield problem.about(project, "registration", shown)
        else:
            yield explained(project, "registration", f"{shown}: {error.reason}", level="error")
    # Of a registration that cannot be used nothing is served, but what lies on disk is worth a look all the same.
    yield from Checks(project, settings, environ, registration).findings(is_served=error is None)


def _bare(options: Options) -> Project:
    """The project as a place, before anything in it is read. Raises ProjectError if there is none."""
    flags = {"project_root": options["--project-root"]} if options["--project-root"] else {}
    settings = load(flags, os.environ, {})
    directories = {name: str(getattr(settings, name)) for name in DEFAULT_DIRECTORIES}
    project = find_project(settings.project_root or None, cwd=os.getcwd(), directories=directories)
    if project is None:
        raise ProjectError(os.getcwd(), f"there is no project here or above. {REMEDY}")
    return project


def _not_opened(options: Options, error: Untrusted) -> Report:
    project = _bare(options)
    problem = refused(f"the server will not start: {error.reason}", error.reason, error.path)
    finding = problem.about(project, "server", project.shown(error.path))
    return Report(project, [finding], 0, options["--strict"])
