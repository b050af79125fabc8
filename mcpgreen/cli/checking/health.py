"""`mcpgreen health`: can this project be served? For probes, which want one line of JSON and a status.

Looks at what a server would look at, and asks the project's own `server.d/health-checks.sh`. Writes no registry files
and starts no server.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

from mcpgreen import journal
from mcpgreen.catalog.item_kinds import SOURCES
from mcpgreen.catalog.manual.current import Registrar
from mcpgreen.catalog.manual.rules import Registration
from mcpgreen.catalog.tree_scan import survey
from mcpgreen.cli.commands import Options
from mcpgreen.cli.opening import opened, seconds
from mcpgreen.cli.output import print_json
from mcpgreen.errors import ProjectError, Untrusted
from mcpgreen.project.project import Project
from mcpgreen.project.start_checks import operator_roots, remote_token, require_tmp_root
from mcpgreen.running.hooks.shell import Hook, HookShell
from mcpgreen.running.scripts import jq
from mcpgreen.settings.settings import Settings

ANSWER_BYTES = 1 << 20


def run(options: Options) -> int:
    """0 when all is well, 1 when something is not, 2 when there is nothing to serve."""
    timeout_secs = seconds(options)
    try:
        project, settings, environ = opened(options)
    except ProjectError as error:
        journal.error("%s", error)
        return _nothing_to_serve("not_trusted" if isinstance(error, Untrusted) else "project_missing")
    if refusal := _reason_not_to_start(project, settings):
        return _nothing_to_serve(refusal)
    if settings.force_minimal:
        return _nothing_to_serve("minimal_mode")
    shell = HookShell(environ, settings=settings, directory=project.root)
    json_tool, _ = jq.find_json_tool(settings, jq.path_in(environ))
    report: dict[str, Any] = {"mode": "full", "jsonTool": json_tool}
    report |= _kinds(project, Registrar(project, settings=settings, shell=shell))
    if report["tools"] == "ok" and _are_calls_refused(project):
        report["tools"] = "failed"
    report["projectChecks"] = _project_checks(project, shell, timeout_secs or settings.health_timeout_secs)
    is_well = "failed" not in report.values()
    print_json({"status": "ok" if is_well else "unhealthy", **report})
    return 0 if is_well else 1


def _nothing_to_serve(reason: str) -> int:
    print_json({"status": "error", "reason": reason})
    return 2


def _reason_not_to_start(project: Project, settings: Settings) -> str | None:
    """What would keep `serve` from starting, in a word for programs; people read it on stderr."""
    reason = "bad_remote_token"
    try:
        remote_token(settings)
        reason = "bad_roots"
        operator_roots(project, settings)
        reason = "bad_tmp_root"
        require_tmp_root(project, settings)
    except ProjectError as error:
        journal.error("%s", error)
        return reason
    return None


def _kinds(project: Project, registrar: Registrar) -> dict[str, str]:
    try:
        registration = registrar.current()
    except ProjectError as error:
        journal.error("%s: %s", project.shown(error.path), error.reason)
        return dict.fromkeys(SOURCES, "failed")
    return {source: _kind(source, project, registration) for source in SOURCES}


def _kind(name: str, project: Project, registration: Registration | None) -> str:
    source = SOURCES[name]
    directories = source.directories(project)
    try:
        for directory in directories:
            # To a walk it is one warning among others when it may not read a directory; here nothing is left of a kind.
            with suppress(FileNotFoundError):  # none has to be there
                os.scandir(directory).close()
        found = source.read(project, survey(project, directories), registration)
    except OSError as error:
        journal.error("%s cannot be listed: %s", name, error.strerror)
        return "failed"
    for discovery in found.values():
        for warning in discovery.warnings:
            journal.warning("%s", warning)
    return "ok"


def _are_calls_refused(project: Project) -> bool:
    """Whether no tool will run, whichever it is, because others could have changed what decides about them."""
    policy = os.path.join(project.server_dir, "policy.sh")
    problem = project.ground(project.tools_dir).problem_with_directory()
    if problem is None and os.path.lexists(policy):
        problem = project.ground(project.server_dir).problem_with_hook(policy)
        problem = problem and f"{project.shown(policy)} is not trusted: {problem}"
    if problem:
        journal.error("calls of tools will be refused: %s", problem)
    return problem is not None


def _project_checks(project: Project, shell: HookShell, secs: float) -> str:
    path = os.path.join(project.server_dir, "health-checks.sh")
    if not os.path.lexists(path):
        return "none"
    if problem := project.ground(project.server_dir).problem_with_hook(path):
        journal.warning("%s is not run: %s", project.shown(path), problem)
        return "skipped"
    end = shell.run_blocking(Hook("health", path, secs, ANSWER_BYTES), shows_stderr=True)
    if end.failure:
        journal.error("%s: %s", project.shown(path), end.failure)
    return "failed" if end.failure else "ok"
