"""`mcpgreen validate`: find what is wrong with a project before a client does.

It reads what a server would read, and reports whether each item will be served. It writes nothing without `--fix`.

Rule: `--fix` changes only what is certain, and only files of the user in the project, no links. A file is replaced as a
whole and keeps its mode.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress

from mcpgreen.catalog.descriptions import metadata
from mcpgreen.catalog.descriptions.in_script import read_script
from mcpgreen.catalog.manual.registration import Registrar, Registration, is_script
from mcpgreen.catalog.tree_scan import Directory, Loss, survey
from mcpgreen.cli.checking.findings import Finding, Position, Problem, Report
from mcpgreen.cli.checking.item_checks import Checks, discoveries
from mcpgreen.cli.checking.places import description_in
from mcpgreen.cli.checking.remedies import explained
from mcpgreen.cli.checking.scripts import MEND_LINE_ENDS, WRITABLE, Scripts, content_of, refused
from mcpgreen.cli.commands import Options
from mcpgreen.cli.opening import open_named
from mcpgreen.errors import ProjectError, Untrusted
from mcpgreen.files.regular_files import change_mode, replacing
from mcpgreen.files.writers import WRITABLE_BY_OTHERS
from mcpgreen.project.icons import wire_icons
from mcpgreen.project.project import (
    DEFAULT_DIRECTORIES,
    REMEDY,
    TEXT_FIELDS,
    Project,
    find_project,
    operator_roots,
    remote_token,
    require_tmp_root,
)
from mcpgreen.project.roots import refused_directories, roots_in_file
from mcpgreen.running.hooks import HookShell
from mcpgreen.running.scripts import shebang
from mcpgreen.running.scripts.shebang import SHELLS, program_of
from mcpgreen.running.trust import MEND, told_together
from mcpgreen.settings.settings import Settings, load
from mcpgreen.text.uris import is_within

HOOKS = ("register.sh", "policy.sh", "env.sh", "health-checks.sh")
FIXED = "fixed"  # the code of a finding
_LINE = re.compile(r"line (\d+) ")


def run(options: Options) -> int:
    """Return 1 if there are errors, or warnings with `--strict`; else 0."""
    return report_on(options).print(as_json=options["--json"], shows_defaults=options["--explain-defaults"])


def report_on(options: Options) -> Report:
    """Return all findings, after fixing what can be fixed if the user wants that."""
    fixes: list[Finding] = []
    try:
        if options["--fix"]:
            # First, because a project that others can change is not even opened.
            fixes += fix(_bare(options))
        project, settings, environ = open_named(options)
        if options["--fix"]:  # again, because its settings may name other directories
            fixes += [each for each in fix(project) if each not in fixes]
    except Untrusted as error:
        project = _bare(options)
        problem = refused(f"the server will not start: {error.reason}", error.reason, error.path)
        return Report(project, [problem.about(project, "server", project.shown(error.path))], 0, options["--strict"])
    findings = told_once([*server_findings(project, settings), *fixes, *_items(project, settings, environ)])
    return Report(project, findings, sum(each.code == FIXED for each in fixes), options["--strict"])


def told_once(findings: list[Finding]) -> list[Finding]:
    """Put together all files whose modes `--fix` corrects: they have one cause and one remedy."""
    found = [each for each in findings if (each.code, each.fix) == (WRITABLE, MEND)]
    files = list(dict.fromkeys(each.file for each in found if each.file))
    if len(files) < 2:
        return findings
    rest = [each for each in findings if each not in found[1:]]
    rest[rest.index(found[0])] = found[0]._replace(message=told_together(files))
    return rest


def registration_of(
    project: Project, settings: Settings, environ: Mapping[str, str]
) -> tuple[Registration | None, ProjectError | None]:
    """Return the manual registration of the project, or the reason why it cannot be used."""
    shell = HookShell(environ, settings=settings, directory=project.root)
    try:
        return Registrar(project, settings=settings, shell=shell).current(), None
    except ProjectError as error:
        return None, error


def left_out(project: Project, settings: Settings) -> Iterator[dict[str, str]]:
    """Yield the files in the project's folders that are not offered, with the reason."""
    registration, error = registration_of(project, settings, os.environ)
    if error is not None:
        yield {"kind": "project", "path": project.shown(error.path), "reason": error.reason}
        return
    for kind, discovery in discoveries(project, registration).items():
        if isinstance(discovery, OSError):
            continue  # the list reports it
        losses = [warning for warning in discovery.warnings if isinstance(warning, Loss)]
        for text in [*losses, *discovery.hints]:
            path, _, reason = text.partition(": ")
            yield {"kind": kind, "path": path, "reason": reason}


def _items(project: Project, settings: Settings, environ: Mapping[str, str]) -> Iterator[Finding]:
    registration, error = registration_of(project, settings, environ)
    if isinstance(error, ProjectError):
        shown = project.shown(error.path)
        if "not trusted" in error.reason:
            problem = refused(error.reason, error.reason, error.path)
            yield problem.about(project, "registration", shown)
        else:
            yield explained(project, "registration", f"{shown}: {error.reason}", level="error")
    # With an unusable registration nothing is served, but the files are worth a check all the same.
    yield from Checks(project, settings, environ, registration).findings(is_served=error is None)


def _bare(options: Options) -> Project:
    """Find the project without reading anything in it. Raises ProjectError if there is none."""
    flags = {"project_root": options["--project-root"]} if options["--project-root"] else {}
    settings = load(flags, os.environ, {})
    directories = {name: str(getattr(settings, name)) for name in DEFAULT_DIRECTORIES}
    project = find_project(settings.project_root or None, cwd=os.getcwd(), directories=directories)
    if project is None:
        raise ProjectError(os.getcwd(), f"there is no project here or in a parent directory. {REMEDY}")
    return project


def server_findings(project: Project, settings: Settings) -> Iterator[Finding]:
    """Check settings, description, roots and hooks. `open_project` has collected complaints about the variables."""
    for problem in _setting_problems(project, settings):
        yield problem.about(project, "server", "")
    yield from _description(project)
    for path, complaint in project.complaints:
        if os.path.basename(path) not in HOOKS:
            line = _LINE.search(complaint)
            position = Position(int(line[1])) if line else None
            fix = "write KEY=value, or begin the line with #"
            problem = Problem("warning", "env", complaint, fix, path, position)
            yield problem.about(project, "server", project.shown(path))
    skipped: list[str] = []
    try:
        list(roots_in_file(project.root, warn=skipped.append))
    except ProjectError as error:
        yield explained(project, "server", f"{project.shown(error.path)}: {error.reason}", level="error")
    for sentence in skipped:
        yield explained(project, "server", project.shown(sentence), level="warning")
    for name in HOOKS:
        path = os.path.join(project.server_dir, name)
        if os.path.lexists(path):
            shown = project.shown(path)
            fault = _fault_of_hook(project, path)
            yield fault.about(project, "server", shown) if fault else Finding("ok", "server", shown, file=shown)


def _setting_problems(project: Project, settings: Settings) -> Iterator[Problem]:
    try:
        remote_token(settings)
        operator_roots(project, settings)
        require_tmp_root(project, settings)
    except ProjectError as error:
        fix = "fix that setting, or remove it"
        yield Problem("error", "setting", f"the server will not start: {error}", fix)
    for note in settings.notes:
        yield Problem("warning", "setting", note, "correct the variable, or remove it")
    for path in refused_directories(project, settings):
        sentence = f"resources_roots: {path} is ignored: files in /proc, /sys and /dev are never served"
        yield Problem("warning", "setting", sentence, "remove it from resources_roots")
    if settings.remote_token and settings.client_roots == "trust":
        advice = "set MCPGREEN_CLIENT_ROOTS=within unless that is what you want"
        sentence = f"client_roots is trust, so anyone with the remote token can read all your files; {advice}"
        yield Problem("warning", "setting", sentence, "set MCPGREEN_CLIENT_ROOTS=within")


def _description(project: Project) -> Iterator[Finding]:
    path = os.path.join(project.server_dir, "server.meta.json")
    shown = project.shown(path)
    if not os.path.exists(path):
        fix = 'create that file: {"name": "…", "version": "…"}'
        yield Finding("warning", "server", f"{shown}: missing, so defaults are used", "no-server-meta", fix, shown)
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
        sentence = f"{shown}: {'.'.join(map(str, keys))} appears twice, and only the last one is used"
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
            sentence = "it is ignored: it is not executable (chmod +x) and has no shebang"
            return Problem("error", "not-executable", sentence, "chmod +x, or add the shebang #!/bin/bash", path)
    except ProjectError as error:
        return Problem("error", "unreadable", error.reason, "make it readable by the user who runs the server", path)
    if fault := Scripts(project, os.environ).syntax_fault(path, "bash"):
        sentence = f"line {fault.position.line}: {fault.sentence}"
        fix = MEND_LINE_ENDS if b"\r\n" in (content_of(path) or b"") else fault.fix
        return Problem("error", fault.code, sentence, fix, path, fault.position)
    for place, complaint in project.complaints:
        if place == path:
            fix = "make sure that bash can source it in the project's directory, with exit status 0"
            return Problem("error", "hook", f"it is ignored: {complaint}", fix, path)
    return None


def fix(project: Project) -> Iterator[Finding]:
    """Fix what can be fixed. Yield an info for each success, and an error for each failure."""
    homes = (project.server_dir, project.tools_dir, project.prompts_dir, project.providers_dir, project.registry_dir)
    trees = [(project.ground(home), survey(project, [home]).directories) for home in homes]
    paths = ((ground, f"{each.path}/{name}") for ground, tree in trees for each in tree for name in ("", *each.files))
    for place in sorted({place for ground, path in paths for place in ground.open_places(path)}):
        done = "other users can no longer write to it"
        yield _change_mode(project, place, done, "chmod go-w", remove=WRITABLE_BY_OTHERS)
    for directory in [each for _, tree in trees for each in tree if is_within(each.path, project.root)]:
        for name in directory.files:
            if not os.path.islink(f"{directory.path}/{name}"):  # its target may have another owner
                yield from _fix_script(project, directory, name)


def _fix_script(project: Project, directory: Directory, name: str) -> Iterator[Finding]:
    path = f"{directory.path}/{name}"
    if is_within(path, project.tools_dir) and _lacks_bit(directory, name):
        yield _change_mode(project, path, "made executable", "chmod +x", add=metadata.EXECUTABLE_BITS)
    content = (content_of(path) if not metadata.is_description(name) else None) or b""
    first_line = content.partition(b"\n")[0]
    is_unrunnable = first_line.startswith(shebang.MARK) and first_line.endswith(b"\r")
    if not is_unrunnable and not (b"\r\n" in content and program_of(path, content) in SHELLS):
        return
    shown = project.shown(path)
    try:
        with replacing(path, mode=stat.S_IMODE(os.lstat(path).st_mode)) as file:
            file.write(content.replace(b"\r\n", b"\n"))
    except OSError as error:
        fix = "save it with Unix line endings"
        yield Finding("error", "tools", f"{shown}: cannot write it: {error.strerror}", "not-fixed", fix, shown)
    else:
        yield Finding("info", "tools", f"{shown}: now has Unix line endings", FIXED, file=shown)


def _change_mode(project: Project, path: str, done: str, command: str, *, add: int = 0, remove: int = 0) -> Finding:
    shown = project.shown(path) if path != project.root else "."
    try:
        change_mode(path, add=add, remove=remove)
    except OSError as error:
        fix = f"run {command} as the owner of the file"
        return Finding("error", "tools", f"{shown}: {command} failed: {error.strerror}", "not-fixed", fix, shown)
    return Finding("info", "tools", f"{shown}: {done}", FIXED, file=shown)


def _lacks_bit(directory: Directory, name: str) -> bool:
    """Tell whether a script is described as a tool and is not executable."""
    if metadata.is_accompanying(name) or directory.files[name].st_mode & metadata.EXECUTABLE_BITS:
        return False
    path = f"{directory.path}/{name}"
    with suppress(OSError, ProjectError):  # the checks report it
        # A text file next to a script may share its description.
        is_script = path.endswith(shebang.SHELL_SUFFIXES) or metadata.read_start(path, 2) == b"#!"
        meta_file = metadata.meta_file_for(name, directory.files)
        return is_script and bool(meta_file or read_script(path, metadata.head_of(path) or b""))
    return False
