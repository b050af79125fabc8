"""`mcpgreen validate`: what is wrong with a project, before a client finds out.

Reads what a server would read, and says of everything whether it will be served. An error means that something of the
project is not served, a warning that it could be better. Writes nothing, unless it is asked to set executable bits.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from mcpgreen import jsontext
from mcpgreen.catalog import metadata
from mcpgreen.catalog.icons import wire_icons
from mcpgreen.catalog.items import Loss
from mcpgreen.catalog.project import TEXT_FIELDS, Project, open_project
from mcpgreen.catalog.registrar import Registrar
from mcpgreen.catalog.registration import Registration
from mcpgreen.catalog.sources import SOURCES
from mcpgreen.catalog.survey import survey
from mcpgreen.catalog.tools import SHELL_SUFFIXES, Tool
from mcpgreen.errors import ProjectError
from mcpgreen.running import trust
from mcpgreen.running.hooks import HookShell

HOOKS = ("register.sh", "policy.sh", "env.sh", "health-checks.sh")
SIGN_OF = {"ok": "✓", "info": "·", "warning": "⚠", "error": "✗"}
WORD_OF = {"tools": "tool", "resources": "resource", "resourceTemplates": "template", "prompts": "prompt", "ui": "page"}
# Clients put names of servers and tools together, and models accept no more than this.
SAFE_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
# How the catalogue says that something is not served, besides what it leaves out.
_LOST = re.compile(r" will be refused |may not be read$| describes no script: ")


class Message(NamedTuple):
    level: str
    section: str
    message: str


class Findings:
    """What has been said so far."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.fixes = 0

    def add(self, level: str, section: str, message: str) -> None:
        self.messages.append(Message(level, section, message))

    def count(self, level: str) -> int:
        return sum(message.level == level for message in self.messages)


def validate(flags: Mapping[str, str], environ: Mapping[str, str], options: Mapping[str, Any]) -> int:
    """0 when all is well, 1 when there are errors, or warnings and `--strict`."""
    project, settings, environ = open_project(flags, environ, needs_own=True)
    findings = Findings()
    _check_server(project, findings)
    _check_hooks(project, findings)
    if options["--fix"]:
        _set_executable_bits(project, findings)
    registrar = Registrar(
        project, settings=settings, shell=HookShell(environ, settings=settings, directory=project.root)
    )
    _check_items(project, _registration(project, registrar, findings), findings)
    show = _print_json if options["--json"] else _print_text
    show(project, findings, is_strict=options["--strict"], shows_defaults=options["--explain-defaults"])
    return 1 if findings.count("error") or (options["--strict"] and findings.count("warning")) else 0


def _check_server(project: Project, findings: Findings) -> None:
    path = os.path.join(project.server_dir, "server.meta.json")
    shown = project.shown(path)
    if not os.path.exists(path):
        findings.add("warning", "server", f"{shown}: missing, so the defaults are used")
        return
    try:
        fields = metadata.read_meta_file(path)
    except ProjectError as error:
        findings.add("error", "server", f"{shown}: {error.reason}")
        return
    problems = [f"{key} must be a string" for key in TEXT_FIELDS if not isinstance(fields.get(key, ""), str)]
    if fields.get("icons") is not None:
        problems += wire_icons(fields["icons"], directories=(project.server_dir, project.root))[1]
    for problem in problems:
        findings.add("warning", "server", f"{shown}: {problem}")
    if not fields.get("name"):
        findings.add("error", "server", f"{shown}: name is missing")
    elif not problems:
        findings.add("ok", "server", shown)


def _check_hooks(project: Project, findings: Findings) -> None:
    for name in HOOKS:
        path = os.path.join(project.server_dir, name)
        if not os.path.lexists(path):
            continue
        problem = trust.problem_with(path, project.server_dir, project.root)
        if problem:
            findings.add("error", "server", f"{project.shown(path)}: will not be run: {problem}")
        else:
            findings.add("ok", "server", project.shown(path))


def _set_executable_bits(project: Project, findings: Findings) -> None:
    for path, mode in _scripts_without_bit(project):
        try:
            os.chmod(path, mode | 0o111)
        except OSError as error:
            findings.add("error", "tools", f"{project.shown(path)}: chmod +x failed: {error.strerror}")
        else:
            findings.fixes += 1
            findings.add("info", "tools", f"{project.shown(path)}: made executable")


def _scripts_without_bit(project: Project) -> Iterator[tuple[str, int]]:
    """What is described as a tool and cannot be executed."""
    for directory in survey(project, [project.tools_dir]).directories:
        for name, status in directory.files.items():
            if name.endswith(metadata.ACCOMPANYING) or status.st_mode & metadata.EXECUTABLE_BITS:
                continue
            path = f"{directory.path}/{name}"
            # A text beside a script may share its description.
            if metadata.meta_file_for(name, directory.files) and _is_script(path):
                yield path, status.st_mode & 0o7777


def _is_script(path: str) -> bool:
    try:
        return path.endswith(SHELL_SUFFIXES) or metadata.read_start(path, 2) == b"#!"
    except OSError:
        return False


def _registration(project: Project, registrar: Registrar, findings: Findings) -> Registration | None:
    try:
        return registrar.current()
    except ProjectError as error:
        findings.add("error", "registration", f"{project.shown(error.path)}: {error.reason}")
        return None  # what lies on disk is worth a look all the same


def _check_items(project: Project, registration: Registration | None, findings: Findings) -> None:
    is_registered = registration is not None and registration.of("tools") is not None
    for name, source in SOURCES.items():
        try:
            found = source.read(project, survey(project, source.directories(project)), registration)
        except OSError as error:
            findings.add("error", name, f"{name} cannot be listed: {error.strerror}")
            continue
        for kind, discovery in found.items():
            for warning in discovery.warnings:
                is_lost = type(warning) is Loss or _LOST.search(warning)
                findings.add("error" if is_lost else "warning", kind, warning)
            for hint in discovery.hints:
                findings.add("info", kind, hint)
            for item in discovery.items:
                problems = list(_tool_problems(item, is_registered)) if isinstance(item, Tool) else []
                for problem in problems:
                    findings.add("warning", kind, f"{WORD_OF[kind]} {item.name}: {problem}")
                if not problems:
                    findings.add("ok", kind, f"{WORD_OF[kind]} {item.name}")


def _tool_problems(tool: Tool, is_registered: bool) -> Iterator[str]:
    if not SAFE_NAME.fullmatch(tool.name):
        yield "some clients accept only names of up to 64 of A-Z a-z 0-9 _ -"
    if not tool.definition.get("description"):
        yield "it has no description, so a model can only guess what it does"
    if not is_registered and not {"inputSchema", "arguments"} & _own_fields(tool).keys():
        yield "it has no inputSchema, so a model does not know its arguments"
    if tool.command[0] != tool.path:
        yield f"{tool.relative_path} is not executable and is run by {tool.command[0]} (chmod +x, or --fix)"


def _own_fields(tool: Tool) -> Mapping[str, Any]:
    """What the description beside the script says."""
    directory, name = os.path.split(tool.path)
    described = metadata.meta_file_for(name, os.listdir(directory))
    if described is None:
        return metadata.read_inline_of(tool.path) or {}
    return metadata.read_meta_file(os.path.join(directory, described))


def _print_json(project: Project, findings: Findings, *, is_strict: bool, shows_defaults: bool) -> None:
    report = {
        "projectRoot": project.root,
        "errors": findings.count("error"),
        "warnings": findings.count("warning"),
        "fixesApplied": findings.fixes,
        "strict": is_strict,
        "defaults": project.default_info(),
        "messages": [message._asdict() for message in findings.messages],
    }
    sys.stdout.buffer.write(jsontext.dumps(report) + b"\n")


def _print_text(project: Project, findings: Findings, *, is_strict: bool, shows_defaults: bool) -> None:
    lines = [f"Project: {project.root}"]
    if shows_defaults:
        lines.append("Without server.d/server.meta.json: " + _listed(project.default_info()))
    lines += [f"{SIGN_OF[message.level]} {message.message}" for message in findings.messages]
    errors, warnings = findings.count("error"), findings.count("warning")
    verdict = f"{errors} errors, {warnings} warnings"
    if findings.fixes:
        verdict += f", {findings.fixes} fixed"
    if is_strict and warnings and not errors:
        verdict += " (strict: warnings count as errors)"
    sys.stdout.buffer.write("\n".join([*lines, verdict, ""]).encode("utf-8", "backslashreplace"))


def _listed(fields: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in fields.items())
