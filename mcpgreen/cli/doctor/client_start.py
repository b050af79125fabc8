"""Start the server as a client would, from the entry in its file: check the handshake, the tools and what is missing.

Rule: the server gets the environment that the client gives it, and it is always stopped at the end.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import NamedTuple

from mcpgreen.catalog.tools import discover_tools
from mcpgreen.catalog.tree_scan import survey
from mcpgreen.cli.checking.findings import ERROR, OK, WARNING, Check
from mcpgreen.cli.clients.formats.spot import Unfit
from mcpgreen.cli.clients.install import ClientFile
from mcpgreen.cli.clients.launch import launch_of, unset_keys
from mcpgreen.cli.clients.table import FORMATS, Client
from mcpgreen.cli.connection import Connection, NoAnswer
from mcpgreen.cli.mcp_client import McpClient, Refused
from mcpgreen.errors import ProjectError, UsageError
from mcpgreen.project.project import Project
from mcpgreen.running.scripts import shebang
from mcpgreen.settings.settings import ROWS, Settings, load
from mcpgreen.text.json_types import Json

START_SECS = 30.0
SLOW_SECS = 10.0  # some clients give up after this
MOST_NAMED = 5
COMMAND_KEYS, ENV_KEYS = ("command", "cmd"), ("env", "envs", "environment")
PROJECT_FILE = "project file: "  # of an origin


class Start(NamedTuple):
    """How a client starts the server. `path` is the client's file."""

    client: Client
    path: str
    words: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str


def files_of(client: Client, file: str | None, root: str, name: str) -> list[str]:
    """List the files that may have the entry, in the client's order. Raises UsageError if it has no usual file."""
    if file:
        return [os.path.abspath(os.path.expanduser(file))]
    places = [client.project_place(root, name)] if client.project else []
    places += client.user_places(os.environ)
    if not places:
        raise UsageError(f"{client.title}: {client.why_no_place}.")
    return places


def find_start(client: Client, places: list[str], *, name: str, root: str) -> Start | None:
    """Return the start that the first entry in these files describes, if any. Raises ProjectError for a bad file."""
    spot = client.spot(name)
    for path in places:
        content = ClientFile(path).read()
        if content is None:
            continue
        try:
            entry = spot.entry_in(FORMATS[client.format].values(content.decode("utf-8-sig"), spot))
        except (Unfit, UnicodeDecodeError) as error:
            raise ProjectError(path, f"{client.title} cannot read it: {error}") from error
        if entry is not None:
            return _start(client, path, entry, root)
    return None


def _start(client: Client, path: str, entry: object, root: str) -> Start:
    if not isinstance(entry, dict):
        raise ProjectError(path, "the entry is not an object")
    command = next((entry[key] for key in COMMAND_KEYS if key in entry), None)
    arguments: object = entry.get("args", [])
    given: object = next((entry[key] for key in ENV_KEYS if key in entry), {})
    if isinstance(command, list) and command:
        command, *arguments = command  # OpenCode has one list for both
    if not isinstance(command, str) or not command:
        raise ProjectError(path, "the entry has no command: it is for a remote server, or is incomplete")
    if not isinstance(arguments, list) or not isinstance(given, dict):
        raise ProjectError(path, "args must be a list, and env an object")
    word = client.workspace or root
    words = [str(each).replace(word, root) for each in (command, *arguments)]
    variables = {str(key): str(value).replace(word, root) for key, value in given.items()}
    cwd, default = entry.get("cwd"), root if client.is_in_terminal else os.sep
    cwd = cwd if isinstance(cwd, str) and cwd else default
    return Start(client, path, tuple(words), client.environment(variables), cwd)


def start_checks(start: Start, project: Project, settings: Settings) -> Iterator[Check]:
    """Check whether the server starts, how long that takes, and what is missing."""
    command = start.words[0]
    place = shutil.which(command, path=start.env["PATH"])
    if place is None:
        fix = f"use the full path of the command: run mcpgreen config --client {start.client.word} --install"
        yield Check("entry", ERROR, f"{start.client.title} cannot find {command} on its PATH", fix)
        return
    if not os.path.isdir(start.cwd):
        message = f"the entry's working directory {start.cwd} does not exist"
        yield Check("entry", ERROR, message, "fix cwd in the entry")
        return
    yield Check("entry", OK, f"{start.path}: {' '.join(start.words)}")
    yield from _overruled(start, settings)
    try:
        took_secs, info, tools = _try_server(start)
    except (NoAnswer, TimeoutError, Refused) as error:
        yield Check("start", ERROR, str(error), "run the same command in a terminal; mcpgreen doctor checks the rest")
        return
    name = info.get("name", "a server without a name")
    message = f"{name} answered after {took_secs * 1000:.0f} ms and lists {len(tools)} tool{'s' * (len(tools) != 1)}"
    is_slow = took_secs > SLOW_SECS
    advice = "check why server.d/env.sh or register.sh takes so long" if is_slow else None
    yield Check("start", WARNING if is_slow else OK, message, advice)
    yield from _missing(start, project, settings, tools)


def _overruled(start: Start, settings: Settings) -> Iterator[Check]:
    """Report settings of the project that the entry overrules, such as an allow-list that was written after the entry.
    Variables of the environment come before the files of a project."""
    of_entry = load({}, start.env, {})
    for row in ROWS:
        name = next((variable for variable in row.all_variables if start.env.get(variable)), None)
        is_of_project = settings.origin(row.name).startswith(PROJECT_FILE)
        if name and is_of_project and getattr(of_entry, row.name) != getattr(settings, row.name):
            message = f"{name} in the entry overrides {row.name}, which the project sets in server.d/"
            fix = f"remove it from the entry, or run mcpgreen config --client {start.client.word} --install"
            yield Check("entry", WARNING, message, fix)


def _missing(start: Start, project: Project, settings: Settings, listed: list[str]) -> Iterator[Check]:
    tools = discover_tools(project, survey(project, [project.tools_dir])).items
    lost = sorted({tool.name for tool in tools} - set(listed))
    if lost and not os.path.lexists(project.server_file("register.json")):
        fix = "make sure that the entry names this project and sets the variables it needs"
        yield Check("missing", WARNING, f"the project has tools that the server does not list: {_some(lost)}", fix)
    unrunnable = []
    for tool in tools:
        fault = shebang.fault_of(tool.path, search_path=start.env["PATH"]) if tool.command[0] == tool.path else None
        if fault:
            unrunnable.append(f"{project.shown(tool.path)} {fault}")
    if unrunnable:
        fix = "add a PATH with these interpreters to env in the entry, or use their full paths"
        yield Check("missing", ERROR, _some(unrunnable), fix)
    if keys := unset_keys(project, tools, start.env):
        fix = f"run mcpgreen config --client {start.client.word} --install {' '.join(f'--env {key}' for key in keys)}"
        yield Check("missing", ERROR, f"tools need these variables, which the entry does not set: {_some(keys)}", fix)
    launch = launch_of(project, settings, os.environ)
    given = {each for row in ROWS if not start.env.keys().isdisjoint(row.all_variables) for each in row.all_variables}
    unset = [name for name in (*launch.env, *launch.left_out) if name not in start.env and name not in given]
    if unset:
        fix = f"run mcpgreen config --client {start.client.word} --install; add secrets to env in the entry yourself"
        yield Check("missing", WARNING, f"these variables are set here, but not in the entry: {_some(unset)}", fix)
    if not (lost or unrunnable or keys or unset):
        yield Check("missing", OK, "nothing")


def _some(names: list[str]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def _try_server(start: Start) -> tuple[float, Json, list[str]]:
    """Start the server, initialize, list its tools, and stop it. Return the time to the first answer, the server's info
    and the names of its tools. Raises NoAnswer, TimeoutError and Refused."""
    began_at = time.monotonic()
    # Popen would look for the program on our PATH; the client has its own.
    words = (shutil.which(start.words[0], path=start.env["PATH"]) or start.words[0], *start.words[1:])
    connection = Connection(words, env=start.env, cwd=start.cwd)
    with closing(connection):
        client = McpClient(connection.send, connection.receive, capabilities={}, give_up_at=began_at + START_SECS)
        took_secs = time.monotonic() - began_at
        tools = client.all_of("tools/list", "tools")
    info = client.server_info if isinstance(client.server_info, dict) else {}
    return took_secs, info, [str(tool.get("name")) for tool in tools]
