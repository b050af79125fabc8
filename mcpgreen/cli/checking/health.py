"""`mcpgreen health`: report to probes whether the project can be served, with one line of JSON and an exit status.

It reads what a server would read, and runs `server.d/health-checks.sh`. It writes no registry and starts no server.
"""

from __future__ import annotations

import os
from contextlib import suppress

from mcpgreen import journal
from mcpgreen.catalog.item_kinds import SOURCES
from mcpgreen.catalog.manual.registration import Registrar, Registration
from mcpgreen.catalog.tree_scan import survey
from mcpgreen.cli.commands import Options
from mcpgreen.cli.opening import open_named, seconds
from mcpgreen.cli.output import print_json
from mcpgreen.errors import ProjectError, Untrusted
from mcpgreen.project.project import Project, operator_roots, remote_token, require_tmp_root
from mcpgreen.running.hooks import Hook, HookShell
from mcpgreen.running.scripts import jq
from mcpgreen.settings.settings import Settings
from mcpgreen.text.json_types import Json

ANSWER_BYTES = 1 << 20
CHECK_SECS = 5.0  # for the checks of the project, unless --timeout says otherwise


def run(options: Options) -> int:
    """Return 0 when all is well, 1 when something is wrong, 2 when nothing can be served."""
    timeout_secs = seconds(options)
    try:
        project, settings, environ = open_named(options)
    except ProjectError as error:
        journal.error("%s", error)
        return _nothing_to_serve("not_trusted" if isinstance(error, Untrusted) else "project_missing")
    if refusal := _reason_not_to_start(project, settings):
        return _nothing_to_serve(refusal)
    if settings.force_minimal:
        return _nothing_to_serve("minimal_mode")
    shell = HookShell(environ, settings=settings, directory=project.root)
    json_tool, _ = jq.find_json_tool(settings, jq.path_in(environ))
    report: Json = {"mode": "full", "jsonTool": json_tool}
    try:
        registration = Registrar(project, settings=settings, shell=shell).current()
        report |= {source: _kind(source, project, registration) for source in SOURCES}
    except ProjectError as error:
        journal.error("%s: %s", project.shown(error.path), error.reason)
        report |= dict.fromkeys(SOURCES, "failed")
    if report["tools"] == "ok" and (problem := _problem_with_calls(project)):
        journal.error("tool calls will fail: %s", problem)
        report["tools"] = "failed"
    report["projectChecks"] = _project_checks(project, shell, timeout_secs or CHECK_SECS)
    is_well = "failed" not in report.values()
    print_json({"status": "ok" if is_well else "unhealthy", **report})
    return 0 if is_well else 1


def _nothing_to_serve(reason: str) -> int:
    print_json({"status": "error", "reason": reason})
    return 2


def _reason_not_to_start(project: Project, settings: Settings) -> str | None:
    """Return a word for programs that says why `serve` would not start, or None. The sentence goes to the log."""
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


def _kind(name: str, project: Project, registration: Registration | None) -> str:
    source = SOURCES[name]
    directories = source.directories(project)
    try:
        for directory in directories:
            # A scan only warns about a directory that it cannot read; here the whole kind has failed.
            with suppress(FileNotFoundError):
                os.scandir(directory).close()
        found = source.read(project, survey(project, directories), registration)
    except OSError as error:
        journal.error("%s cannot be listed: %s", name, error.strerror)
        return "failed"
    for discovery in found.values():
        for warning in discovery.warnings:
            journal.warning("%s", warning)
    return "ok"


def _problem_with_calls(project: Project) -> str | None:
    """Return the reason why every call of a tool will be refused: others can change tools/ or the policy."""
    policy = os.path.join(project.server_dir, "policy.sh")
    problem = project.ground(project.tools_dir).problem_with_directory()
    if problem is None and os.path.lexists(policy):
        problem = project.ground(project.server_dir).problem_with_hook(policy)
        problem = problem and f"{project.shown(policy)} is not trusted: {problem}"
    return problem


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
