"""`mcpgreen validate`: what is wrong with a project, before a client finds out.

Reads what a server would read, and says of everything whether it will be served. Writes nothing, unless it is asked to
set executable bits.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress

from mcpgreen.catalog.descriptions import metadata
from mcpgreen.catalog.manual.current import Registrar
from mcpgreen.catalog.tree_scan import survey
from mcpgreen.cli.checking.findings import Finding, Report
from mcpgreen.cli.checking.item_checks import Checks
from mcpgreen.cli.checking.server_checks import server_findings
from mcpgreen.cli.commands import Options
from mcpgreen.cli.opening import opened
from mcpgreen.errors import ProjectError
from mcpgreen.project.project import Project
from mcpgreen.running.hooks.shell import HookShell
from mcpgreen.running.scripts.shebang import SHELL_SUFFIXES


def run(options: Options) -> int:
    """0 when all is well, 1 when there are errors, or warnings and `--strict`."""
    project, settings, environ = opened(options)
    findings = list(server_findings(project, settings))
    mended = list(_set_executable_bits(project)) if options["--fix"] else []
    findings += mended
    shell = HookShell(environ, settings=settings, directory=project.root)
    checks = Checks(project, settings, environ)
    try:
        registration = Registrar(project, settings=settings, shell=shell).current()
    except ProjectError as error:
        findings.append(Finding("error", "registration", f"{project.shown(error.path)}: {error.reason}"))
        # Nothing is served, but what lies on disk is worth a look all the same.
        findings += checks.findings(None, is_served=False)
    else:
        findings += checks.findings(registration, is_served=True)
    fixes = sum(finding.level == "info" for finding in mended)
    report = Report(project, findings, fixes, is_strict=options["--strict"])
    printed = report.as_json() if options["--json"] else report.as_text(shows_defaults=options["--explain-defaults"])
    sys.stdout.buffer.write(printed)
    return 0 if report.is_good() else 1


def _set_executable_bits(project: Project) -> Iterator[Finding]:
    for path, mode in _scripts_without_bit(project):
        try:
            os.chmod(path, mode | 0o111)
        except OSError as error:
            yield Finding("error", "tools", f"{project.shown(path)}: chmod +x failed: {error.strerror}")
        else:
            yield Finding("info", "tools", f"{project.shown(path)}: made executable")


def _scripts_without_bit(project: Project) -> Iterator[tuple[str, int]]:
    """What is described as a tool and cannot be executed."""
    for directory in survey(project, [project.tools_dir]).directories:
        for name, status in directory.files.items():
            if name.endswith(metadata.ACCOMPANYING) or status.st_mode & metadata.EXECUTABLE_BITS:
                continue
            path = f"{directory.path}/{name}"
            with suppress(OSError, ProjectError):  # the checks say what is wrong with it
                # A text beside a script may share its description.
                is_script = path.endswith(SHELL_SUFFIXES) or metadata.read_start(path, 2) == b"#!"
                meta_file = metadata.meta_file_for(name, directory.files)
                if is_script and (meta_file or metadata.read_inline_of(path) is not None):
                    yield path, status.st_mode & 0o7777
