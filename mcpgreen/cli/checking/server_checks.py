"""What is wrong with the server itself: its settings, and the files in server.d/. Part of `validate`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from mcpgreen.catalog.descriptions import metadata
from mcpgreen.catalog.manual.rules import is_script
from mcpgreen.cli.checking.findings import Finding, Position, Problem
from mcpgreen.cli.checking.reading.places import description_in
from mcpgreen.cli.checking.reading.syntax import Reader
from mcpgreen.cli.checking.remedies import explained
from mcpgreen.cli.checking.script_checks import MEND_LINE_ENDS, refused
from mcpgreen.errors import ProjectError
from mcpgreen.project.icons import wire_icons
from mcpgreen.project.project import TEXT_FIELDS, Project
from mcpgreen.project.roots import refused_directories
from mcpgreen.project.start_checks import operator_roots, remote_token, require_tmp_root
from mcpgreen.running.scripts import jq
from mcpgreen.settings.settings import Settings

HOOKS = ("register.sh", "policy.sh", "env.sh", "health-checks.sh")
_LINE = re.compile(r"line (\d+) ")


def server_findings(project: Project, settings: Settings) -> Iterator[Finding]:
    """`open_project` has read the variables of the project already; what it met is told here."""
    for problem in _settings(project, settings):
        yield problem.about(project, "server", "")
    yield from _description(project)
    for path, complaint in project.complaints:
        if os.path.basename(path) not in HOOKS:
            line = _LINE.search(complaint)
            position = Position(int(line[1])) if line else None
            fix = "write KEY=value, or begin the line with #"
            yield Problem("warning", "env", complaint, fix, path, position).about(
                project, "server", project.shown(path)
            )
    for name in HOOKS:
        path = os.path.join(project.server_dir, name)
        if os.path.lexists(path):
            shown = project.shown(path)
            fault = _fault_of_hook(project, path)
            yield fault.about(project, "server", shown) if fault else Finding("ok", "server", shown, file=shown)


def _settings(project: Project, settings: Settings) -> Iterator[Problem]:
    try:
        remote_token(settings)
        operator_roots(project, settings)
        require_tmp_root(project, settings)
    except ProjectError as error:
        fix = "correct that setting, or leave it out"
        yield Problem("error", "setting", f"the server will not start: {error}", fix)
    for note in settings.notes:
        yield Problem("warning", "setting", note, "correct the variable, or remove it")
    for path in refused_directories(project, settings):
        sentence = f"resources_roots: {path} is left out: nothing in /proc, /sys or /dev is served"
        yield Problem("warning", "setting", sentence, "remove it from resources_roots")
    if settings.remote_token and settings.client_roots == "trust":
        advice = "set MCPGREEN_CLIENT_ROOTS=within unless that is what you want"
        sentence = f"client_roots is trust: whoever has the remote token can read all that you can; {advice}"
        yield Problem("warning", "setting", sentence, "set MCPGREEN_CLIENT_ROOTS=within")


def _description(project: Project) -> Iterator[Finding]:
    path = os.path.join(project.server_dir, "server.meta.json")
    shown = project.shown(path)
    if not os.path.exists(path):
        fix = 'write that file: {"name": "…", "version": "…"}'
        yield Finding("warning", "server", f"{shown}: missing, so the defaults are used", "no-server-meta", fix, shown)
        return
    try:
        fields = metadata.read_meta_file(path)
    except ProjectError as error:
        yield explained(project, "server", f"{shown}: {error.reason}", level="error")
        return
    problems = [f"{key} must be a string" for key in TEXT_FIELDS if not isinstance(fields.get(key, ""), str)]
    if fields.get("icons") is not None:
        directories = (project.server_dir, project.root)
        problems += wire_icons(fields["icons"], directories=directories, private=project.private)[1]
    for problem in problems:
        yield explained(project, "server", f"{shown}: {problem}", level="warning")
    description = description_in(path)
    for keys, position in description.doubles() if description else ():
        sentence = f"{shown}: {'.'.join(map(str, keys))} stands there twice, and only the last counts"
        yield Finding("warning", "server", sentence, "json-double", "remove one of the two", shown, position)
    if not fields.get("name"):
        yield Finding("error", "server", f"{shown}: name is missing", "no-name", "add a name", shown)
    elif not problems:
        yield Finding("ok", "server", shown, file=shown)


def _fault_of_hook(project: Project, path: str) -> Problem | None:
    if problem := project.ground(project.server_dir).problem_with_hook(path):
        return refused(f"will not be run: {problem}", problem, path)
    try:
        if os.path.basename(path) == "register.sh" and not is_script(path):
            sentence = "it is ignored: it is neither executable (chmod +x) nor starts with #!"
            return Problem("error", "not-executable", sentence, "chmod +x, or begin it with #!/bin/bash", path)
    except ProjectError as error:
        return Problem("error", "unreadable", error.reason, "let the user who runs the server read it", path)
    reader = Reader(project.root, jq.path_in(os.environ))
    if fault := reader.fault_by_bash(path):
        message, position = fault
        sentence = f"line {position.line}: {message}"
        fix = MEND_LINE_ENDS if reader.reading(path).has_crlf else "correct the script at that line"
        return Problem("error", "syntax", sentence, fix, path, position)
    for place, complaint in project.complaints:
        if place == path:
            fix = "see that it ends with status 0: it is sourced by bash, in the project's directory"
            return Problem("error", "hook", f"it is ignored: {complaint}", fix, path)
    return None
