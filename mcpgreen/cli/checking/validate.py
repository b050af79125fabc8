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
from mcpgreen.catalog.manual.current import Registrar
from mcpgreen.catalog.manual.rules import Registration, is_script
from mcpgreen.catalog.tree_scan import survey
from mcpgreen.cli.checking.findings import Finding, Position, Problem, Report
from mcpgreen.cli.checking.item_checks import Checks
from mcpgreen.cli.checking.reading.places import description_in
from mcpgreen.cli.checking.reading.syntax import Reader, content_of
from mcpgreen.cli.checking.remedies import explained
from mcpgreen.cli.checking.script_checks import MEND_LINE_ENDS, refused
from mcpgreen.cli.commands import Options
from mcpgreen.cli.making.drafts import replacing
from mcpgreen.cli.opening import open_named
from mcpgreen.errors import ProjectError, Untrusted
from mcpgreen.files.regular_files import change_mode
from mcpgreen.project.icons import wire_icons
from mcpgreen.project.project import DEFAULT_DIRECTORIES, REMEDY, TEXT_FIELDS, Project, find_project
from mcpgreen.project.roots import refused_directories, roots_in_file
from mcpgreen.project.start_checks import operator_roots, remote_token, require_tmp_root
from mcpgreen.running.hooks import HookShell
from mcpgreen.running.scripts import jq, shebang
from mcpgreen.running.scripts.shebang import SHELLS, program_of
from mcpgreen.running.trust import WRITABLE_BY_OTHERS
from mcpgreen.settings.settings import Settings, load
from mcpgreen.text.uris import is_within

HOOKS = ("register.sh", "policy.sh", "env.sh", "health-checks.sh")
FIXED = "fixed"  # the code of a finding
_LINE = re.compile(r"line (\d+) ")


def run(options: Options) -> int:
    """Return 1 if there are errors, or warnings with `--strict`; else 0."""
    return report_on(options).print(as_json=options["--json"], shows_defaults=options["--explain-defaults"])


def report_on(options: Options) -> Report:
    """All findings, after fixing what can be fixed if the user wants that."""
    fixes: list[Finding] = []
    try:
        if options["--fix"]:
            # First, because a project that others can change is not even opened.
            fixes += fix(_bare(options))
        project, settings, environ = open_named(options)
    except Untrusted as error:
        return _not_opened(options, error)
    findings = [*server_findings(project, settings), *fixes, *_items(project, settings, environ)]
    return Report(project, findings, sum(each.code == FIXED for each in fixes), options["--strict"])


def registration_of(
    project: Project, settings: Settings, environ: Mapping[str, str]
) -> tuple[Registration | None, ProjectError | None]:
    """The manual registration of the project, or the reason why it cannot be used."""
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
    # With an unusable registration nothing is served, but the files are worth a check all the same.
    yield from Checks(project, settings, environ, registration).findings(is_served=error is None)


def _bare(options: Options) -> Project:
    """The project without reading anything in it. Raises ProjectError if there is none."""
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
            yield Problem("warning", "env", complaint, fix, path, position).about(
                project, "server", project.shown(path)
            )
    yield from _roots_file(project)
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
        fix = "correct that setting, or leave it out"
        yield Problem("error", "setting", f"the server will not start: {error}", fix)
    for note in settings.notes:
        yield Problem("warning", "setting", note, "correct the variable, or remove it")
    for path in refused_directories(project, settings):
        sentence = f"resources_roots: {path} is left out: nothing in /proc, /sys or /dev is served"
        yield Problem("warning", "setting", sentence, "remove it from resources_roots")
    if settings.remote_token and settings.client_roots == "trust":
        advice = "set MCPGREEN_CLIENT_ROOTS=within unless that is what you want"
        sentence = f"client_roots is trust: everyone with the remote token can read all that you can; {advice}"
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


def _roots_file(project: Project) -> Iterator[Finding]:
    skipped: list[str] = []
    try:
        list(roots_in_file(project.root, warn=skipped.append))
    except ProjectError as error:
        yield explained(project, "server", f"{project.shown(error.path)}: {error.reason}", level="error")
    for sentence in skipped:
        yield explained(project, "server", project.shown(sentence), level="warning")


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


def fix(project: Project) -> Iterator[Finding]:
    """Fix what can be fixed. Yield an info for each success, and an error for each failure."""
    yield from _lock_out_others(project)
    for path in _scripts_without_bit(project):
        yield _change_mode(project, path, "made executable", "chmod +x", add=metadata.EXECUTABLE_BITS)
    for path in _scripts(project):
        content = content_of(path)
        if content and _has_wrong_ends(path, content):
            yield _rewrite(project, path, content.replace(b"\r\n", b"\n"))


def _lock_out_others(project: Project) -> Iterator[Finding]:
    """Let only the owner write to what is executed, or decides what is executed."""
    for path in _executed(project):
        with suppress(OSError):
            status = os.lstat(path)
            is_wanted = stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)
            if is_wanted and status.st_mode & WRITABLE_BY_OTHERS and status.st_uid == os.geteuid():
                done = "others may no longer write to it"
                yield _change_mode(project, path, done, "chmod go-w", remove=WRITABLE_BY_OTHERS)


def _executed(project: Project) -> Iterator[str]:
    yield project.root
    for home in (project.server_dir, project.tools_dir, project.prompts_dir, project.providers_dir):
        if not is_within(home, project.root):
            continue
        place = home
        while place != project.root:
            yield place
            place = os.path.dirname(place)
        for directory in survey(project, [home]).directories:
            if directory.path != home:
                yield directory.path
            yield from (f"{directory.path}/{name}" for name in directory.files)


def _change_mode(project: Project, path: str, done: str, command: str, *, add: int = 0, remove: int = 0) -> Finding:
    shown = project.shown(path) if path != project.root else "."
    try:
        change_mode(path, add=add, remove=remove)
    except OSError as error:
        fix = f"run {command} as the owner of the file"
        return Finding("error", "tools", f"{shown}: {command} failed: {error.strerror}", "not-fixed", fix, shown)
    return Finding("info", "tools", f"{shown}: {done}", FIXED, file=shown)


def _scripts_without_bit(project: Project) -> Iterator[str]:
    """Scripts that are described as tools and are not executable. No links: their targets may have another owner."""
    for directory in survey(project, [project.tools_dir]).directories:
        for name, status in directory.files.items():
            if name.endswith(metadata.ACCOMPANYING) or status.st_mode & metadata.EXECUTABLE_BITS:
                continue
            path = f"{directory.path}/{name}"
            if os.path.islink(path):
                continue
            with suppress(OSError, ProjectError):  # the checks report it
                # A text beside a script may share its description.
                is_script = path.endswith(shebang.SHELL_SUFFIXES) or metadata.read_start(path, 2) == b"#!"
                meta_file = metadata.meta_file_for(name, directory.files)
                if is_script and (meta_file or read_script(path, metadata.head_of(path) or b"") is not None):
                    yield path


def _scripts(project: Project) -> Iterator[str]:
    homes = (project.tools_dir, project.prompts_dir, project.providers_dir, project.server_dir)
    for directory in survey(project, [home for home in homes if is_within(home, project.root)]).directories:
        for name in directory.files:
            path = f"{directory.path}/{name}"
            if not metadata.is_description(name) and not os.path.islink(path):
                yield path


def _has_wrong_ends(path: str, content: bytes) -> bool:
    """Whether it has Windows line ends in its first line, or anywhere in a shell script, so that it cannot be run."""
    if b"\r\n" not in content:
        return False
    first_line = content.partition(b"\n")[0]
    is_unrunnable = first_line.startswith(shebang.MARK) and first_line.endswith(b"\r")
    return is_unrunnable or program_of(path, content) in SHELLS


def _rewrite(project: Project, path: str, content: bytes) -> Finding:
    shown = project.shown(path)
    try:
        with replacing(path, mode=stat.S_IMODE(os.lstat(path).st_mode)) as file:
            file.write(content)
    except OSError as error:
        fix = "save it with Unix line endings"
        return Finding("error", "tools", f"{shown}: cannot be written: {error.strerror}", "not-fixed", fix, shown)
    return Finding("info", "tools", f"{shown}: now has Unix line endings", FIXED, file=shown)
