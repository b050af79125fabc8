"""`mcpgreen config`: connect a client. Prints what its file needs, or writes it there, or takes it out again."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from mcpgreen import journal
from mcpgreen.cli.clients import ways_in, wrapper
from mcpgreen.cli.clients.client_file import Refused
from mcpgreen.cli.clients.difference import shown
from mcpgreen.cli.clients.install import Change, Show, Target, install, uninstall
from mcpgreen.cli.clients.launch import Launch, launch_of
from mcpgreen.cli.clients.records import Records
from mcpgreen.cli.clients.table import CLIENTS, FORMATS, Client, client_named, place_in
from mcpgreen.cli.commands import Options
from mcpgreen.cli.opening import opened
from mcpgreen.errors import UsageError
from mcpgreen.text import jsontext

SCOPES = ("user", "project")
MAX_NAME_CHARS = 128


def run(options: Options) -> int:
    client = client_named(options["--client"]) if options["--client"] is not None else None
    _require_sense(options, client)
    if client and options["--uninstall"] and options["--name"] and options["--scope"] != "project":
        return _uninstall(options, client, options["--name"], "")  # the project may be gone
    project, settings, _ = opened(options)
    launch = launch_of(project, settings, os.environ, options["--name"] or "")
    if options["--wrapper"] or options["--wrapper-env"]:
        return wrapper.write(launch, project.root, has_environment=options["--wrapper-env"])
    if options["--inspector"]:
        sys.stdout.write(ways_in.inspector_line(launch) + "\n")
        return 0
    if client and options["--uninstall"]:
        return _uninstall(options, client, launch.name, project.root)
    if client and options["--install"]:
        return _install(options, client, launch, project.root)
    return _print(options, client, launch, project.root)


def _require_sense(options: Options, client: Client | None) -> None:
    for option in ("--install", "--uninstall"):
        if options[option] and client is None:
            raise UsageError(f"{option} needs --client with one of {', '.join(each.word for each in CLIENTS)}.")
    if options["--scope"] not in SCOPES:
        raise UsageError(f"--scope is user or project, not {options['--scope']}.")
    name = options["--name"]
    if name is not None and not (0 < len(name) <= MAX_NAME_CHARS and name.isprintable()):
        raise UsageError(f"--name needs 1 to {MAX_NAME_CHARS} printable characters.")
    if options["--file"] == "":
        raise UsageError("--file needs a value.")


def _place(options: Options, client: Client, name: str, root: str) -> str:
    """The file of the client. Raises Refused if it has none."""
    if options["--file"]:
        return os.path.abspath(os.path.expanduser(str(options["--file"])))
    if options["--scope"] == "project":
        if not client.project:
            raise Refused(client.title, "it has no file for a project; leave out --scope, or name a file with --file")
        return client.project_place(root, name)
    places = client.user_places(os.environ)
    if not places:
        raise Refused(client.title, client.why_no_place)
    return next((place for place in places if os.path.lexists(place)), places[0])


def _target(options: Options, client: Client, name: str, root: str) -> Target:
    return Target(_place(options, client, name, root), FORMATS[client.format], client.spot(name))


def _install(options: Options, client: Client, launch: Launch, root: str) -> int:
    def change() -> Change:
        target = _target(options, client, launch.name, root)
        if not client.takes_name(launch.name):
            raise Refused(launch.name, f"{client.title} takes no such name for a server; choose another with --name")
        _require_nothing_spoiled(client, target.path)
        return install(
            target, client.entry(launch), Records(os.environ), show=_show(options), is_dry=options["--dry-run"]
        )

    status = _told(options, client, "install", launch.name, change)
    _tell_left_out(launch)
    return status


def _require_nothing_spoiled(client: Client, path: str) -> None:
    spoiled = place_in(client.spoiler, os.environ)
    if path in client.user_places(os.environ) and os.path.lexists(spoiled) and not os.path.lexists(path):
        raise Refused(spoiled, f"{client.title} would no longer read it if there were {path}")


def _uninstall(options: Options, client: Client, name: str, root: str) -> int:
    def change() -> Change:
        target = _target(options, client, name, root)
        return uninstall(target, Records(os.environ), show=_show(options), is_dry=options["--dry-run"])

    return _told(options, client, "uninstall", name, change)


def _show(options: Options) -> Show:
    def show(change: Change) -> None:
        if not options["--json"]:
            sys.stdout.write(shown(change))
            sys.stdout.flush()

    return show


def _told(options: Options, client: Client, doing: str, name: str, make: Callable[[], Change]) -> int:
    """Have a change made, and say what has become of it."""
    try:
        change = make()
    except Refused as error:
        if options["--json"]:
            _print_json(
                {"client": client.word, "name": name, "file": error.path, "changed": False, "error": str(error)}
            )
        raise
    if not change.is_recorded:
        journal.warning("what was done could not be noted; --uninstall will remove the entry, and no more")
    if options["--json"]:
        report = {
            "client": client.word,
            "name": name,
            "action": doing,
            "file": change.path,
            "backup": change.backup,
            "changed": change.is_one and not options["--dry-run"],
            "dryRun": options["--dry-run"],
            "diff": shown(change),
        }
        _print_json(report)
        return 0
    sys.stdout.write(_sentence(doing, name, client, change, is_dry=options["--dry-run"]))
    return 0


def _sentence(doing: str, name: str, client: Client, change: Change, *, is_dry: bool) -> str:
    if not change.is_one:
        return f"{name} is {'already in' if doing == 'install' else 'not in'} {change.path}\n"
    if is_dry:
        return f"Not written, because of --dry-run: {change.path}\n"
    if change.after is None:
        return f"Removed, as there was nothing else in it: {change.path}\n"
    done = "Installed" if doing == "install" else "Uninstalled"
    backup = change.backup or ("none, the file is new" if change.before is None else "none, nothing was lost")
    return f"{done} {name} for {client.title}: {change.path}\nBackup: {backup}\n"


def _print(options: Options, client: Client | None, launch: Launch, root: str) -> int:
    if options["--json"]:
        report: dict[str, Any] = {
            "name": launch.name,
            "command": launch.command,
            "args": launch.arguments,
            "env": launch.env,
            "leftOut": launch.left_out,
        }
        _print_json({**report, **_about(options, client, launch, root)} if client else report)
        return 0
    for each in (client,) if client else CLIENTS:
        if client is None:
            sys.stdout.write(f"# {each.title}\n")
        sys.stdout.write(ways_in.snippet(each, launch))
        for way in (*ways_in.links(each, launch), *ways_in.command_lines(each, launch, options["--scope"])):
            sys.stdout.write(f"\n{way}\n")
        if client is None:
            sys.stdout.write("\n")
        else:
            sys.stdout.flush()
            place = _shown_place(options, each, launch, root)
            sys.stderr.write(f"This goes into {place}.\nWith --install it is written there.\n" if place else "")
    _tell_left_out(launch)
    return 0


def _about(options: Options, client: Client, launch: Launch, root: str) -> dict[str, Any]:
    return {
        "client": client.word,
        "file": _shown_place(options, client, launch, root),
        "format": client.format,
        "entry": client.entry(launch),
        "snippet": ways_in.snippet(client, launch),
        "links": ways_in.links(client, launch),
        "commands": ways_in.command_lines(client, launch, options["--scope"]),
    }


def _shown_place(options: Options, client: Client, launch: Launch, root: str) -> str | None:
    try:
        return _place(options, client, launch.name, root)
    except Refused as error:
        journal.info("%s", error)
        return None


def _tell_left_out(launch: Launch) -> None:
    if launch.left_out:
        names = ", ".join(launch.left_out)
        journal.warning("not in the entry, because they may be secret: %s; add them to it yourself if needed", names)


def _print_json(value: dict[str, Any]) -> None:
    sys.stdout.buffer.write(jsontext.dumps(value) + b"\n")
