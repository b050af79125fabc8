"""What is wrong with the server itself: its settings, and the files in server.d/. Part of `validate`."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

from mcpgreen.catalog.descriptions import metadata
from mcpgreen.catalog.manual.rules import is_script
from mcpgreen.cli.checking.findings import Finding
from mcpgreen.errors import ProjectError
from mcpgreen.project.icons import wire_icons
from mcpgreen.project.project import TEXT_FIELDS, Project
from mcpgreen.project.roots import refused_directories
from mcpgreen.project.start_checks import operator_roots, remote_token, require_tmp_root
from mcpgreen.running.scripts import jq
from mcpgreen.settings.settings import Settings

HOOKS = ("register.sh", "policy.sh", "env.sh", "health-checks.sh")


def server_findings(project: Project, settings: Settings) -> Iterator[Finding]:
    """`open_project` has read the variables of the project already; what it met is told here."""
    for level, message in _all_messages(project, settings):
        yield Finding(level, "server", message)


def _all_messages(project: Project, settings: Settings) -> Iterator[tuple[str, str]]:
    yield from _settings(project, settings)
    yield from _description(project)
    for path, complaint in project.complaints:
        if os.path.basename(path) not in HOOKS:
            yield "warning", f"{project.shown(path)}: {complaint}"
    for name in HOOKS:
        path = os.path.join(project.server_dir, name)
        if os.path.lexists(path):
            fault = _fault_of_hook(project, path)
            yield ("error", f"{project.shown(path)}: {fault}") if fault else ("ok", project.shown(path))


def _settings(project: Project, settings: Settings) -> Iterator[tuple[str, str]]:
    try:
        remote_token(settings)
        operator_roots(project, settings)
        require_tmp_root(project, settings)
    except ProjectError as error:
        yield "error", f"the server will not start: {error}"
    for path in refused_directories(project, settings):
        yield "warning", f"resources_roots: {path} is left out: nothing in /proc, /sys or /dev is served"
    if settings.remote_token and settings.client_roots == "trust":
        advice = "set MCPGREEN_CLIENT_ROOTS=within unless that is what you want"
        yield "warning", f"client_roots is trust: whoever has the remote token can read all that you can; {advice}"


def _description(project: Project) -> Iterator[tuple[str, str]]:
    path = os.path.join(project.server_dir, "server.meta.json")
    shown = project.shown(path)
    if not os.path.exists(path):
        yield "warning", f"{shown}: missing, so the defaults are used"
        return
    try:
        fields = metadata.read_meta_file(path)
    except ProjectError as error:
        yield "error", f"{shown}: {error.reason}"
        return
    problems = [f"{key} must be a string" for key in TEXT_FIELDS if not isinstance(fields.get(key, ""), str)]
    if fields.get("icons") is not None:
        directories = (project.server_dir, project.root)
        problems += wire_icons(fields["icons"], directories=directories, private=project.private)[1]
    for problem in problems:
        yield "warning", f"{shown}: {problem}"
    if not fields.get("name"):
        yield "error", f"{shown}: name is missing"
    elif not problems:
        yield "ok", shown


def _fault_of_hook(project: Project, path: str) -> str | None:
    if problem := project.ground(project.server_dir).problem_with_hook(path):
        return f"will not be run: {problem}"
    try:
        if os.path.basename(path) == "register.sh" and not is_script(path):
            return "it is ignored: it is neither executable (chmod +x) nor starts with #!"
    except ProjectError as error:
        return error.reason
    return _syntax_error(path) or next(
        (f"it is ignored: {complaint}" for place, complaint in project.complaints if place == path), None
    )


def _syntax_error(path: str) -> str | None:
    """What bash says of a file that it cannot read as a script. Nothing of the file is run."""
    directory, name = os.path.split(path)
    try:
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-n", "--", name],
            cwd=directory,
            env={"PATH": jq.path_in(os.environ), "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
    except OSError as error:
        return f"bash cannot be started: {error.strerror}"
    if not done.returncode:
        return None
    first_line = done.stderr.decode("utf-8", "replace").partition("\n")[0]
    return first_line.removeprefix(f"{name}: ") or f"bash rejects it with status {done.returncode}"
