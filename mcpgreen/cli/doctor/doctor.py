"""`mcpgreen doctor`: check the machine and the project, and with `--as` start the server as a client would.

It changes nothing, and starts no server without `--as`.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of
from typing import Any

from mcpgreen.catalog.descriptions import metadata
from mcpgreen.catalog.item_kinds import TITLE_OF, registry_file
from mcpgreen.catalog.tree_scan import survey
from mcpgreen.cli import children
from mcpgreen.cli.checking.findings import ERROR, OK, WARNING, Check, Finding, print_findings
from mcpgreen.cli.checking.item_checks import WORD_OF, Checks, discoveries
from mcpgreen.cli.checking.scripts import WRITABLE
from mcpgreen.cli.checking.validate import HOOKS, registration_of, server_findings
from mcpgreen.cli.clients.table import CLIENTS, Client, client_named
from mcpgreen.cli.commands import Options
from mcpgreen.cli.deps import needed_packages
from mcpgreen.cli.doctor.client_start import files_of, find_start, start_checks
from mcpgreen.cli.opening import open_named
from mcpgreen.cli.output import print_json
from mcpgreen.cli.registry import file_status
from mcpgreen.errors import ProjectError, Untrusted, UsageError
from mcpgreen.project import task_place
from mcpgreen.project.project import Project
from mcpgreen.running.scripts import jq
from mcpgreen.running.scripts.packages import REMEDY
from mcpgreen.running.scripts.shebang import SHELL_SUFFIXES
from mcpgreen.running.trust import MEND, NOT_RUN, told_together
from mcpgreen.settings.settings import ROWS, Settings
from mcpgreen.text.json_types import Json

PACKAGES = ("gevent", "ujson", "jsonschema", "pyyaml", "docopt-ng", "rich", "cryptography")
OPTIONAL = ("jq",)
SLOW_JQ = "jq-1.6"
GOOD_BACKENDS = ("epoll", "kqueue", "linuxaio", "iouring")
MAX_VALUE_CHARS = 200
REQUIREMENTS_FILE = "requirements.json"
KNOWN_FRAMEWORK = (1, 3)  # the newest mcp-bash whose projects can be served
MOST_FILES = 10  # reported
MEND_FILE = "fix that file, or restore its backup"


def run(options: Options) -> int:
    """Return 1 if something is wrong, 2 if there is no project, else 0."""
    client = client_named(options["--as"]) if options["--as"] else None
    if options["--file"] and client is None:
        raise UsageError("--file needs --as CLIENT, the client that reads the file.")
    status = 0
    try:
        project, settings, environ = open_named(options)
    except ProjectError as error:
        status, fix = 2, "create one with mcpgreen new or mcpgreen init, or name yours with --project-root"
        if isinstance(error, Untrusted):
            status, fix = 1, MEND
        checks = [*machine_checks(os.environ, None), Check("project", ERROR, str(error), fix)]
    else:
        name = options["--name"] or project.server_name()
        of_clients = (
            _as_client(client, options["--file"], project, settings, name) if client else _clients(project, name)
        )
        checks = [*machine_checks(environ, settings), *project_checks(project, settings, environ), *of_clients]
    _print(checks, as_json=options["--json"])
    return status or (1 if any(check.status == ERROR for check in checks) else 0)


def _as_client(client: Client, file: str | None, project: Project, settings: Settings, name: str) -> Iterator[Check]:
    places = files_of(client, file, project.root, name)
    try:
        start = find_start(client, places, name=name, root=project.root)
    except ProjectError as error:
        yield Check("client", ERROR, str(error), MEND_FILE)
        return
    if start is None:
        fix = f"mcpgreen config --client {client.word}{f' --file {file}' if file else ''} --install"
        yield Check("client", ERROR, f"{client.title} has no entry named {name} in {' or '.join(places)}", fix)
        return
    yield Check("client", OK, f"{client.title} has an entry named {name} in {start.path}")
    yield from start_checks(start, project, settings)


def _clients(project: Project, name: str) -> Iterator[Check]:
    """Report which clients have an entry, without starting any."""
    found = []
    for client in CLIENTS:
        with suppress(UsageError):  # it has no file of its own
            places = files_of(client, None, project.root, name)
            try:
                if start := find_start(client, places, name=name, root=project.root):
                    found.append(f"{client.word} ({start.path})")
            except ProjectError as error:
                yield Check("client", WARNING, str(error), MEND_FILE)
    message = f"no client has an entry named {name} yet; to add one, run mcpgreen config --client NAME --install"
    if found:
        message = f"{name} is set up in {', '.join(found)}; try it with --as CLIENT"
    yield Check("client", OK, message)


def _print(checks: list[Check], *, as_json: bool) -> None:
    statuses = {check.status for check in checks}
    overall = next((each for each in (ERROR, WARNING) if each in statuses), OK)
    if as_json:
        print_json({"status": overall, "checks": [check._asdict() for check in checks]})
        return
    print_findings(
        Finding(each.status, "", f"{each.name}: {each.message}", "", each.fix, subject=each.name) for each in checks
    )


def machine_checks(environ: Mapping[str, str], settings: Settings | None) -> Iterator[Check]:
    yield Check("python", OK, f"Python {'.'.join(map(str, sys.version_info[:3]))} at {sys.executable}")
    yield from _packages()
    yield _loop()
    path = jq.path_in(environ)
    if settings is not None:
        yield _jq(settings, path)
    if bash := shutil.which("bash", path=path):
        yield Check("bash", OK, bash)
    else:
        yield Check("bash", WARNING, "bash is not on the PATH, so hooks and .sh scripts cannot run", "install bash")


def _packages() -> Iterator[Check]:
    found = []
    for name in (*PACKAGES, *OPTIONAL):
        try:
            found.append(f"{name} {version_of(name)}")
        except PackageNotFoundError:
            if name in PACKAGES:
                fix = f"install it: {sys.executable} -m pip install {name}"
                yield Check("packages", ERROR, f"{name} is missing", fix)
    if len(found) >= len(PACKAGES):
        yield Check("packages", OK, ", ".join(found))


def _loop() -> Check:
    import gevent

    try:
        backend = str(gevent.get_hub().loop.backend)
    except (ImportError, OSError, RuntimeError, SystemError, ValueError, TypeError) as error:
        fix = f"reinstall gevent: {sys.executable} -m pip install --force-reinstall gevent"
        return Check("loop", ERROR, f"gevent has no event loop: {error}", fix)
    if backend in GOOD_BACKENDS:
        return Check("loop", OK, f"gevent {gevent.__version__} with {backend}")
    fix = "unset GEVENT_BACKEND and LIBEV_FLAGS"
    return Check("loop", WARNING, f"gevent uses {backend}, which is slow with many connections", fix)


def _jq(settings: Settings, path: str) -> Check:
    name, program = jq.find_json_tool(settings, path)
    if program:
        return Check("jq", OK, f"{name} at {program}{_slowness_of(program)}")
    if settings.json_tool == "none":
        return Check("jq", OK, "none, because json_tool is none")
    fix = f"install jq, or the Python package: {sys.executable} -m pip install jq"
    return Check("jq", WARNING, "jq is not installed, so shell tools cannot read their arguments", fix)


def _slowness_of(program: str) -> str:
    """Return a note if jq is slow to start. Only the jq of the system is run, never one that a project names."""
    if program != shutil.which("jq"):
        return ""
    _, said = children.answer_of([program, "--version"], path=os.environ.get("PATH", ""))
    return f": {SLOW_JQ} takes 30 ms to start; newer versions take 4 ms" if said.strip() == SLOW_JQ else ""


def project_checks(project: Project, settings: Settings, environ: Mapping[str, str]) -> Iterator[Check]:
    yield Check("project", OK, f"{project.server_name()} at {project.root}")
    yield from _requirements(project, environ)
    for each in needed_packages(project, settings, environ):
        if not each.are_installed:  # a warning: tools may have them from elsewhere; if they need these, see `_items`
            yield Check("dependencies", WARNING, f"{project.shown(each.source)} needs {each.lack}", REMEDY)
    yield from _permissions(project, settings)
    yield from _settings(settings)
    findings = list(server_findings(project, settings))
    yield from _hooks(project, settings, findings)
    yield from _registry(project)
    yield from _tasks(project, environ)
    yield from _items(project, settings, environ, findings)


def _permissions(project: Project, settings: Settings) -> Iterator[Check]:
    faults = sorted(_untrusted_files(project))
    if open_files := [project.shown(path) for path, problem in faults if MEND in problem]:
        yield Check("permissions", ERROR, told_together(open_files), MEND)
    of_others = [(project.shown(path), problem) for path, problem in faults if MEND not in problem]
    for shown, problem in of_others[:MOST_FILES]:
        fix = problem[problem.rfind("(") + 1 : -1] if problem.endswith(")") else "replace it with a file of your own"
        yield Check("permissions", ERROR, f"{shown}: it is {NOT_RUN} {problem.removesuffix(f' ({fix})')}", fix)
    if len(of_others) > MOST_FILES:
        yield Check("permissions", ERROR, f"there are {len(of_others) - MOST_FILES} more of these", "do the same")
    place = settings.tmp_root or tempfile.gettempdir()
    if not os.access(place, os.W_OK | os.X_OK):
        fix = "set MCPGREEN_TMP_ROOT or TMPDIR to a directory of your own"
        yield Check("permissions", ERROR, f"{place}: cannot write temporary files there", fix)
    elif not faults:
        yield Check("permissions", OK, f"only you can change the files that are run; temporary files go to {place}")


def _untrusted_files(project: Project) -> Iterator[tuple[str, str]]:
    """Yield the files that are run, or decide what is run, and are not trusted, with the reason."""
    for home in (project.tools_dir, project.server_dir, project.prompts_dir, project.providers_dir):
        ground = project.ground(home)
        for directory in survey(project, [home]).directories:
            for name, status in directory.files.items():
                is_run = status.st_mode & metadata.EXECUTABLE_BITS or name.endswith((*SHELL_SUFFIXES, ".py"))
                if not is_run and home != project.server_dir:
                    continue
                with suppress(FileNotFoundError):
                    if problem := ground.problem_with(f"{directory.path}/{name}"):
                        yield f"{directory.path}/{name}", problem


def _settings(settings: Settings) -> Iterator[Check]:
    for note in settings.notes:
        yield Check("settings", WARNING, note, "correct the variable, or remove it")
    changed = [row for row in ROWS if settings.origin(row.name) != "default"]
    for row in changed:
        value = "(secret)" if row.secret else _as_written(getattr(settings, row.name))
        yield Check("settings", OK, f"{row.name} = {value} (from {settings.origin(row.name)})")
    if not changed and not settings.notes:
        yield Check("settings", OK, "all have their default values")


def _as_written(value: object) -> str:
    """Return the value as it would be written into a variable."""
    if isinstance(value, bool):
        return str(value).lower()
    return (",".join(map(str, value)) if isinstance(value, tuple) else str(value))[:MAX_VALUE_CHARS]


def _hooks(project: Project, settings: Settings, findings: list[Finding]) -> Iterator[Check]:
    files = {project.shown(project.server_file(name)) for name in HOOKS}
    there = [finding for finding in findings if finding.file in files]
    for finding in there:
        message = finding.message
        if finding.level == OK and message.endswith("register.sh") and not settings.allow_project_hooks:
            message += " is not run, because MCPGREEN_ALLOW_PROJECT_HOOKS is not true"
        if finding.code != WRITABLE:  # `permissions` says so
            yield Check("hooks", OK if finding.level == OK else ERROR, message, finding.fix)
    if not there:
        yield Check("hooks", OK, "none")


def _registry(project: Project) -> Iterator[Check]:
    directory = project.registry_dir
    shown = project.shown(directory)
    if not os.path.lexists(directory):
        yield Check("registry", OK, f"{shown} does not exist yet; the server creates it")
    elif not os.path.isdir(directory):
        yield Check("registry", WARNING, f"{shown} is not a directory, so the lists are not saved", "remove it")
    elif not os.access(directory, os.W_OK | os.X_OK):
        fix = "make it writable by the user who runs the server, or set MCPGREEN_REGISTRY_DIR"
        yield Check("registry", WARNING, f"{shown} is not writable, so the lists are not saved", fix)
    else:
        files = [registry_file(project, kind) for kind in TITLE_OF]
        broken = [project.shown(path) for path in files if file_status(path)["status"] == "unreadable"]
        for path in broken:
            yield Check("registry", WARNING, f"{path} is not valid JSON", "run mcpgreen registry refresh")
        if not broken:
            yield Check("registry", OK, shown)


def _tasks(project: Project, environ: Mapping[str, str]) -> Iterator[Check]:
    try:
        task_place.prepare(task_place.directory_of(project.root, environ), makes=False)
    except OSError as error:
        fix = f"give it to the user that runs the server, with chmod 700, or remove it: {error.filename}"
        yield Check("tasks", WARNING, f"no task can be stored: {error.filename}: {error.strerror}", fix)


def _items(project: Project, settings: Settings, environ: Mapping[str, str], server: list[Finding]) -> Iterator[Check]:
    registration, error = registration_of(project, settings, environ)
    items = list(Checks(project, settings, environ, registration).findings(is_served=error is None))
    failed = [finding for finding in (*server, *items) if finding.level == ERROR and finding.code != WRITABLE]
    errors = len(failed) + (error is not None)
    found = discoveries(project, registration)
    counts = {kind: len(each.items) for kind, each in found.items() if not isinstance(each, OSError) and kind != "ui"}
    if not project.has_skills:
        counts.pop("skills", None)
    offered = ", ".join(f"{count} {WORD_OF[kind]}{'' if count == 1 else 's'}" for kind, count in counts.items())
    if errors:
        message = f"{offered}; {errors} error{'s' * (errors != 1)} in their files"
        yield Check("items", ERROR, message, "run mcpgreen validate to see them")
    elif not any(counts.values()):
        yield Check("items", WARNING, "the project offers nothing yet", "put an executable script into tools/")
    else:
        yield Check("items", OK, offered)


def _requirements(project: Project, environ: Mapping[str, str]) -> Iterator[Check]:
    """Check the requirements.json of mcp-bash, which a server does not read: {"framework": {"minVersion": "1.3.0"},
    "dependencies": [{"name": "git"}, {"or": ["jq", "gojq"]}]}."""
    path = project.server_file(REQUIREMENTS_FILE)
    if not os.path.lexists(path):
        return
    shown = project.shown(path)
    try:
        fields = metadata.read_meta_file(path)
        version, wanted = _required(fields)
    except (ProjectError, OSError, ValueError) as error:
        reason = error.reason if isinstance(error, ProjectError) else error
        yield Check("requirements", WARNING, f"{shown}: {reason}", "correct it, or remove it")
        return
    search_path = jq.path_with_jq(jq.path_in(environ))
    missing = [names for names in wanted if not any(shutil.which(name, path=search_path) for name in names)]
    for names in missing:
        fix = "install it, or add its directory to the server's PATH"
        yield Check("requirements", ERROR, f"{' or '.join(names)} is missing, but {shown} requires it", fix)
    is_newer = tuple(map(int, version.split(".")[:2])) > KNOWN_FRAMEWORK
    if is_newer:
        fix = "check what it needs from that version; everything up to 1.3 is supported"
        yield Check("requirements", WARNING, f"{shown} requires mcp-bash {version}", fix)
    if not missing and not is_newer:
        yield Check("requirements", OK, ", ".join(map(" or ".join, wanted)) or "no programs required")


def _required(fields: Json) -> tuple[str, list[list[str]]]:
    """Return the required version of mcp-bash, and the required programs: for each a list of alternatives."""
    framework, entries = fields.get("framework", {}), fields.get("dependencies", [])
    if not isinstance(framework, dict) or not isinstance(entries, list):
        raise ValueError("framework must be an object, and dependencies an array")
    version = framework.get("minVersion") or "0.0"
    if not isinstance(version, str) or not re.fullmatch(r"\d{1,6}(\.\d{1,6}){1,3}", version):
        raise ValueError("framework.minVersion must be a version such as 1.3.0")
    wanted: list[Any] = [entry.get("or", [entry.get("name")]) if isinstance(entry, dict) else None for entry in entries]
    for names in wanted:
        if not isinstance(names, list) or not names or not all(isinstance(name, str) and name for name in names):
            raise ValueError('every entry of dependencies must look like {"name": "git"} or {"or": ["jq", "gojq"]}')
    return version, wanted
