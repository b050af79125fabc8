"""`mcpgreen config`: connect a client. Prints what its file needs, or writes it there, or takes it out again."""

from __future__ import annotations

import os
import sys
from typing import Any

from mcpgreen import journal
from mcpgreen.cli.clients import ways_in, wrapper
from mcpgreen.cli.clients.client_file import Refused
from mcpgreen.cli.clients.difference import shown
from mcpgreen.cli.clients.install import Change, Target, install, uninstall
from mcpgreen.cli.clients.launch import Launch, launch_of
from mcpgreen.cli.clients.records import Records
from mcpgreen.cli.clients.table import CLIENTS, FORMATS, Client, client_named, place_in
from mcpgreen.cli.commands import Options
from mcpgreen.cli.opening import opened
from mcpgreen.cli.output import print_json
from mcpgreen.errors import UsageError

SCOPES = ("user", "project")
MAX_NAME_CHARS = 128


def run(options: Options) -> int:
    client = client_named(options["--client"]) if options["--client"] is not None else None
    _require_sense(options, client)
    if client and options["--uninstall"] and options["--name"] and options["--scope"] != "project":
        return _make_change(options, client, options["--name"], "")  # the project may be gone
    project, settings, _ = opened(options)
    launch = launch_of(project, settings, os.environ, options["--name"] or "")
    if options["--wrapper"] or options["--wrapper-env"]:
        return wrapper.write(launch, project.root, has_environment=options["--wrapper-env"])
    if options["--inspector"]:
        sys.stdout.write(ways_in.inspector_line(launch) + "\n")
        return 0
    if client and options["--uninstall"]:
        return _make_change(options, client, launch.name, project.root)
    if client and options["--install"]:
        return _make_change(options, client, launch.name, project.root, launch)
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


def _change(options: Options, client: Client, name: str, root: str, launch: Launch | None) -> Change:
    """Put an entry for this launch into the client's file, or without one take out the entry of this name."""

    def show(change: Change) -> None:
        if not options["--json"]:
            sys.stdout.write(shown(change))
            sys.stdout.flush()

    target = Target(_place(options, client, name, root), FORMATS[client.format], client.spot(name))
    records, is_dry = Records(os.environ), options["--dry-run"]
    if launch is None:
        return uninstall(target, records, show=show, is_dry=is_dry)
    if not client.takes_name(name):
        raise Refused(name, f"{client.title} takes no such name for a server; choose another with --name")
    spoiled = place_in(client.spoiler, os.environ)
    if os.path.lexists(spoiled) and target.path in client.user_places(os.environ) and not os.path.lexists(target.path):
        raise Refused(spoiled, f"{client.title} would no longer read it if there were {target.path}")
    return install(target, client.entry(launch), records, show=show, is_dry=is_dry)


def _make_change(options: Options, client: Client, name: str, root: str, launch: Launch | None = None) -> int:
    """And say what has become of it."""
    try:
        change = _change(options, client, name, root, launch)
    except Refused as error:
        if options["--json"]:
            print_json({"client": client.word, "name": name, "file": error.path, "changed": False, "error": str(error)})
        raise
    doing = "uninstall" if launch is None else "install"
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
        print_json(report)
    else:
        sys.stdout.write(_sentence(doing, name, client, change, is_dry=options["--dry-run"]))
    if launch is not None:
        _tell_left_out(launch)
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
        if client:
            report |= {
                "client": client.word,
                "file": _shown_place(options, client, launch, root),
                "format": client.format,
                "entry": client.entry(launch),
                "snippet": ways_in.snippet(client, launch),
                "links": ways_in.links(client, launch),
                "commands": ways_in.command_lines(client, launch, options["--scope"]),
            }
        print_json(report)
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
