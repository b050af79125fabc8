"""`mcpgreen doctor`: why does it not work here? Machine, project, and with `--as` the client's own way to start it.

Changes nothing. `--as` starts the entry of a client's file, and only then something of the project runs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping

from mcpgreen.cli.checking.findings import ERROR, OK, SIGN_OF, WARNING, Check
from mcpgreen.cli.clients.table import CLIENTS, client_named
from mcpgreen.cli.commands import Options
from mcpgreen.cli.doctor.client_entry import files_of, start_by
from mcpgreen.cli.doctor.client_start import start_checks
from mcpgreen.cli.doctor.machine import machine_checks
from mcpgreen.cli.doctor.project_state import project_checks
from mcpgreen.cli.opening import opened
from mcpgreen.cli.output import print_json
from mcpgreen.errors import ProjectError, Untrusted, UsageError
from mcpgreen.project.project import Project
from mcpgreen.settings.settings import Settings


def run(options: Options) -> int:
    """0 when all is well or could be better, 1 when something is wrong, 2 when there is no project."""
    client = client_named(options["--as"]) if options["--as"] else None
    if options["--file"] and client is None:
        raise UsageError("--file needs --as with the client whose file it is.")
    status = 0
    project: Project | None = None
    settings: Settings | None = None
    environ: Mapping[str, str] = os.environ
    checks: list[Check] = []
    try:
        project, settings, environ = opened(options)
    except ProjectError as error:
        status, fix = 2, "make one with mcpgreen new or mcpgreen init, or name yours with --project-root"
        if isinstance(error, Untrusted):
            status, fix = 1, "run mcpgreen validate --fix"
        checks.append(Check("project", ERROR, str(error), fix))
    checks = [*machine_checks(environ, settings), *checks]
    if project is not None and settings is not None:
        checks += project_checks(project, settings, environ)
        name = options["--name"] or project.server_name()
        if client is not None:
            checks += _as_client(options, project, settings, name)
        else:
            checks += _clients(project, name)
    _print(checks, as_json=options["--json"])
    return status or (1 if any(check.status == ERROR for check in checks) else 0)


def _as_client(options: Options, project: Project, settings: Settings, name: str) -> Iterator[Check]:
    client = client_named(options["--as"])
    places = files_of(client, options["--file"], project.root, name, os.environ)
    for path in places:
        try:
            start = start_by(client, path, name=name, root=project.root, environ=os.environ)
        except ProjectError as error:
            yield Check("client", ERROR, str(error), "correct that file, or restore its backup")
            return
        if start is not None:
            yield Check("client", OK, f"{client.title} has an entry {name} in {path}")
            yield from start_checks(start, project, settings)
            return
    file = f" --file {options['--file']}" if options["--file"] else ""
    fix = f"mcpgreen config --client {client.word}{file} --install"
    yield Check("client", ERROR, f"{client.title} has no entry {name} in {' or '.join(places)}", fix)


def _clients(project: Project, name: str) -> Iterator[Check]:
    """Which clients have an entry. Their files are looked at, and nothing is started."""
    found = []
    for client in CLIENTS:
        try:
            places = files_of(client, None, project.root, name, os.environ)
        except UsageError:
            continue  # it has no file of its own
        for path in places:
            try:
                if start_by(client, path, name=name, root=project.root, environ=os.environ) is not None:
                    found.append(f"{client.word} ({path})")
                    break
            except ProjectError as error:
                yield Check("client", WARNING, str(error), "correct that file, or restore its backup")
                break
    told = f"no client has an entry {name}; mcpgreen config --client NAME --install writes one"
    yield Check("client", OK, f"{name} is an entry of {', '.join(found)}; --as CLIENT starts it" if found else told)


def _print(checks: list[Check], *, as_json: bool) -> None:
    statuses = {check.status for check in checks}
    overall = next((each for each in (ERROR, WARNING) if each in statuses), OK)
    if as_json:
        print_json({"status": overall, "checks": [check._asdict() for check in checks]})
        return
    lines = []
    for check in checks:
        remedy = f" → {check.fix}" if check.fix else ""
        lines.append(f"{SIGN_OF[check.status]} {check.name}: {check.message}{remedy}")
    verdict = {OK: "All is well.", WARNING: "It works; some things could be better.", ERROR: "Something is wrong."}
    sys.stdout.buffer.write("\n".join([*lines, verdict[overall], ""]).encode("utf-8", "backslashreplace"))
