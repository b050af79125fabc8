"""`mcpgreen config`: connect a client. Print the entry for its file, add it there, or remove it."""

from __future__ import annotations

import base64
import difflib
import json
import os
import re
import shlex
import stat
import sys
from collections.abc import Mapping
from urllib.parse import quote

from mcpgreen import journal
from mcpgreen.catalog.tools import discover_tools
from mcpgreen.catalog.tree_scan import survey
from mcpgreen.cli.clients.install import Change, Refused, Target, change_entry
from mcpgreen.cli.clients.launch import Launch, launch_of, shell_words, unset_keys
from mcpgreen.cli.clients.table import CLIENTS, FORMATS, Client, client_named, place_in
from mcpgreen.cli.commands import Options
from mcpgreen.cli.making.drafts import filled
from mcpgreen.cli.opening import open_named
from mcpgreen.cli.output import harmless, print_json, say, tell
from mcpgreen.errors import ProjectError, UsageError
from mcpgreen.files.regular_files import content_of
from mcpgreen.logs.secrets import HIDDEN, is_secret_name
from mcpgreen.project.project import Project, variables_in
from mcpgreen.text.json_types import Json

SCOPES = ("user", "project")
MAX_NAME_CHARS = 128
MAX_LINE_CHARS = 300  # of a line of the diff

MAX_ENV_BYTES = 1 << 20
MAX_ENTRY_BYTES = 16 << 20
# A name before its value in JSON, TOML or YAML, but not in ${NAME:-default}. The rest of the line is hidden.
NAMED_VALUE = re.compile(r"""(?<![\w$])(?<!\$\{)["']?([A-Za-z_]\w*)["']?[ \t]*[:=][ \t]*(?=[^\s\[{])""")

FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")

# The end of the wrapper. The profile must not print to the client or read its messages.
WITH_LOGIN_SHELL = """
# Start with a login shell's environment, which desktop applications do not have.
case ${SHELL:-} in
  */bash | */zsh | */ksh | */dash | */sh) shell=$SHELL ;;
  *) shell=/bin/sh ;;
esac
exec 3<&0 4>&1
exec "$shell" -l -c 'exec "$0" "$@" <&3 >&4 3<&- 4>&-' "$@" </dev/null >&2
"""


def run(options: Options) -> int:
    client = client_named(options["--client"]) if options["--client"] is not None else None
    _check_options(options, client)
    if client and options["--uninstall"] and options["--name"] and options["--scope"] != "project":
        return _make_change(options, client, options["--name"], "")  # works without the project, which may be gone
    project, settings, _ = open_named(options)
    launch = launch_of(project, settings, os.environ, options["--name"] or "")
    given = _given_variables(options)
    if given:
        others = tuple(name for name in launch.left_out if name not in given)
        launch = launch._replace(env={**launch.env, **given}, left_out=others)
        if options["--scope"] == "project" and not options["--file"]:
            journal.warning("the values are written to a file in the project: keep it out of version control")
    if options["--wrapper"] or options["--wrapper-env"]:
        return _write_wrapper(launch, project.root, has_environment=options["--wrapper-env"])
    if options["--inspector"]:
        words = ("npx", "@modelcontextprotocol/inspector", *_variables(launch, "-e"), "--", *launch.words)
        say(shlex.join(words) + "\n", is_exact=True)
        return 0
    has_workspace = client and client.workspace and options["--scope"] == "project" and not options["--file"]
    local = launch.inside(project.root, client.workspace) if client and has_workspace else launch
    if client and (options["--install"] or options["--uninstall"]):
        if options["--uninstall"]:
            return _make_change(options, client, launch.name, project.root)
        status = _make_change(options, client, launch.name, project.root, local)
        _warn_of_keys(options, client, project, local, given)
        return status
    return _print(options, client, launch, local, project.root)


def _check_options(options: Options, client: Client | None) -> None:
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
    if (options["--env"] or options["--env-file"]) and not options["--install"]:
        raise UsageError("--env and --env-file need --install.")


def _given_variables(options: Options) -> dict[str, str]:
    """Return the variables that `--env-file` and `--env` name. Raises UsageError."""
    given: dict[str, str] = {}
    if file := options["--env-file"]:
        given, ignored = variables_in(content_of(file, MAX_ENV_BYTES).decode("utf-8", "replace"))
        if ignored:
            raise UsageError(f"--env-file {file}: line {ignored[0]} is not KEY=VALUE.")
    for word in options["--env"]:
        name, equals, value = word.partition("=")
        if not name.isidentifier():
            raise UsageError(f"--env {name}: this is not a valid variable name; use letters, digits and _.")
        if not equals and name not in os.environ:
            raise UsageError(f"--env {name}: it is not set here; set it first, or write --env {name}=VALUE.")
        given[name] = value if equals else os.environ[name]
    return given


def _place(options: Options, client: Client, name: str, root: str) -> str:
    """Return the file of the client. Raises Refused if it has none."""
    if options["--file"]:
        return os.path.abspath(os.path.expanduser(str(options["--file"])))
    if options["--scope"] == "project":
        if not client.project:
            raise Refused(client.title, "it has no project-level file; omit --scope, or name a file with --file")
        return client.project_place(root, name)
    places = client.user_places(os.environ)
    if not places:
        raise Refused(client.title, client.why_no_place)
    return next((place for place in places if os.path.lexists(place)), places[0])


def _change(options: Options, client: Client, name: str, root: str, launch: Launch | None) -> Change:
    """Put an entry for the launch into the client's file. Without a launch, take out the entry of this name."""

    def show(change: Change) -> None:
        if not options["--json"]:
            say(shown(change, launch))

    target = Target(_place(options, client, name, root), FORMATS[client.format], client.spot(name))
    is_dry = options["--dry-run"]
    if launch is None:
        return change_entry(target, None, show=show, is_dry=is_dry)
    if not re.fullmatch(client.names, name, re.DOTALL):
        raise Refused(name, f"{client.title} does not accept this name for a server; choose another with --name")
    spoiled = place_in(client.spoiler, os.environ)
    if os.path.lexists(spoiled) and target.path in client.user_places(os.environ) and not os.path.lexists(target.path):
        raise Refused(spoiled, f"{client.title} would ignore it once {target.path} exists; move its content there")
    return change_entry(target, client.entry(launch), show=show, is_dry=is_dry)


def _make_change(options: Options, client: Client, name: str, root: str, launch: Launch | None = None) -> int:
    """Change the client's file and print the result."""
    try:
        change = _change(options, client, name, root, launch)
    except Refused as error:
        if options["--json"]:
            print_json({"client": client.word, "name": name, "file": error.path, "changed": False, "error": str(error)})
        raise
    doing = "uninstall" if launch is None else "install"
    if options["--json"]:
        report = {
            "client": client.word,
            "name": name,
            "action": doing,
            "file": change.path,
            "backup": change.backup,
            "changed": change.has_effect and not options["--dry-run"],
            "dryRun": options["--dry-run"],
            "diff": shown(change, launch),
        }
        print_json(report)
    else:
        say(_sentence(doing, name, client, change, is_dry=options["--dry-run"]))
    if launch is not None:
        _warn_left_out(launch)
    return 0


def _sentence(doing: str, name: str, client: Client, change: Change, *, is_dry: bool) -> str:
    if not change.has_effect:
        return f"{name} is {'already in' if doing == 'install' else 'not in'} {change.path}\n"
    if is_dry:
        return f"Not written, because of --dry-run: {change.path}\n"
    if change.after is None:
        return f"Removed, because nothing else was in it: {change.path}\n"
    done = "Installed" if doing == "install" else "Uninstalled"
    return f"{done} {name} for {client.title}: {change.path}\nBackup: {change.backup or 'none, the file is new'}\n"


def shown(change: Change, launch: Launch | None = None) -> str:
    """Return the change as a unified diff, without values of variables. Empty if nothing changes."""
    names = launch.env.keys() if launch else ()
    old, new = ((text or "").splitlines() for text in (change.before, change.after))
    old_name, new_name = ("/dev/null" if text is None else change.path for text in (change.before, change.after))
    text = ""
    for line in difflib.unified_diff(old, new, old_name, new_name, n=1, lineterm=""):
        for found in NAMED_VALUE.finditer(line):
            is_setting = found[1].startswith("MCP") and not is_secret_name(found[1])
            if (found[1].isupper() or found[1] in names) and not is_setting:
                line = line[: found.end()] + HIDDEN
                break
        # Some files have only one line.
        rest = f"... ({len(line)} characters)" if len(line) > MAX_LINE_CHARS else ""
        text += f"{harmless(line[:MAX_LINE_CHARS])}{rest}\n"
    return text


def _print(options: Options, client: Client | None, launch: Launch, local: Launch, root: str) -> int:
    """`local` is for the client's file; links and commands of the client do not tell where they write."""
    if options["--json"]:
        report: Json = {
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
                "entry": client.entry(local),
                "snippet": snippet(client, local),
                "links": links(client, launch),
                "commands": command_lines(client, launch, options["--scope"]),
            }
        print_json(report)
        return 0
    for each in (client,) if client else CLIENTS:
        if client is None:
            say(f"# {each.title}\n")
        say(snippet(each, local), is_exact=True)
        for way in (*links(each, launch), *command_lines(each, launch, options["--scope"])):
            # A program reads only the snippet from stdout.
            (say if client is None else tell)(f"\n{way}\n")
        if client is None:
            say("\n")
        else:
            place = _shown_place(options, each, launch, root)
            tell(f"This goes into {place}.\nTo write it there, add --install.\n" if place else "")
    _warn_left_out(launch)
    return 0


def _shown_place(options: Options, client: Client, launch: Launch, root: str) -> str | None:
    try:
        return _place(options, client, launch.name, root)
    except Refused as error:
        journal.info("%s", error)
        return None


def _warn_left_out(launch: Launch) -> None:
    if launch.left_out:
        names = ", ".join(launch.left_out)
        journal.warning("left out of the entry, because they may be secret: %s; add them yourself if needed", names)


def _warn_of_keys(options: Options, client: Client, project: Project, launch: Launch, given: Mapping[str, str]) -> None:
    """Warn of variables that tools require and the client's file lacks, and of keys in a file that others can read."""
    place = _place(options, client, launch.name, project.root)
    try:
        mode, text = os.stat(place).st_mode, content_of(place, MAX_ENTRY_BYTES).decode("utf-8", "replace")
    except (OSError, ProjectError):
        return  # it was a dry run
    tools = discover_tools(project, survey(project, [project.tools_dir])).items
    if keys := [key for key in unset_keys(project, tools, client.environment(launch.env)) if key not in text]:
        words = ["config", "--client", client.word, "--install"]
        for option in ("--scope", "--name", "--file", "--project-root"):
            if options[option] and (option, options[option]) != ("--scope", SCOPES[0]):
                words += [option, options[option]]
        remedy = f"{shell_words(os.environ)} {shlex.join(words)}{''.join(f' --env {key}' for key in keys)}"
        how = f"set {'them' if keys[1:] else 'it'} in this shell (export {' '.join(f'{key}=…' for key in keys)})"
        names = ", ".join(keys)
        journal.warning("tools need variables that the entry does not set: %s; %s, then run %s", names, how, remedy)
    if given and mode & (stat.S_IRGRP | stat.S_IROTH):
        journal.warning("other users can read %s, which contains %s; run chmod 600 on it", place, ", ".join(given))


def snippet(client: Client, launch: Launch) -> str:
    """Return a whole file with only the entry."""
    return FORMATS[client.format].put("", client.spot(launch.name), client.entry(launch))


def links(client: Client, launch: Launch) -> list[str]:
    """Links that install the entry when the person opens them and agrees."""
    entry, name = client.entry(launch), quote(launch.name, "")
    config = quote(base64.b64encode(_json(entry).encode()).decode("ascii"), "")
    known = {
        "cursor": f"cursor://anysphere.cursor-deeplink/mcp/install?name={name}&config={config}",
        "vscode": "vscode:mcp/install?" + quote(_json({"name": launch.name, **entry}), ""),
    }
    return [known[client.word]] if client.word in known else []


def command_lines(client: Client, launch: Launch, scope: str) -> list[str]:
    """Commands of the client that install the entry."""
    # The variables follow the name, because `--env` takes all words up to the next option.
    server = (launch.name, *_variables(launch, "--env"), "--", *launch.words)
    known = {
        "claude-code": ("claude", "mcp", "add", "--scope", scope, *server),
        "vscode": ("code", "--add-mcp", _json({"name": launch.name, **client.entry(launch)})),
        **{word: (word, "mcp", "add", *server) for word in ("codex", "copilot", "opencode")},
    }
    return [shlex.join(known[client.word])] if client.word in known else []


def _variables(launch: Launch, option: str) -> list[str]:
    return [word for name, value in launch.env.items() for word in (option, f"{name}={value}")]


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def _write_wrapper(launch: Launch, root: str, *, has_environment: bool) -> int:
    """Write a script that serves the project: to a file in its root at a terminal, else to stdout."""
    program = shlex.join(launch.words[: launch.words.index("serve")])
    text = filled("clients/wrapper.sh", program=program)
    if has_environment:
        text = text.removesuffix('exec "$@"\n') + WITH_LOGIN_SHELL
    is_file_name = FILE_NAME.fullmatch(launch.name) is not None
    if not is_file_name and sys.stdout.isatty():
        tell(f"mcpgreen: {launch.name!r} cannot be a file name, so the content is printed instead.\n")
    if not is_file_name or not sys.stdout.isatty():
        say(text, is_exact=True)
        return 0
    path = os.path.join(root, f"{launch.name}.sh")
    try:
        with open(path, "x", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, 0o755)) as file:
            file.write(text)
    except OSError as error:
        raise Refused(path, f"it was not written: {error.strerror}") from None
    say(f"Wrote {path}\n")
    return 0
