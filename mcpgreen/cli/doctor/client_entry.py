"""How a client would start this server: the entry in its file, and the environment and directory that it gives."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

from mcpgreen.cli.clients.client_file import ClientFile
from mcpgreen.cli.clients.formats.spot import Unfit
from mcpgreen.cli.clients.table import FORMATS, Client
from mcpgreen.errors import ProjectError, UsageError

# What both official SDKs hand on; the rest is said by the entry.
KEPT_VARIABLES = ("HOME", "LOGNAME", "SHELL", "TERM", "USER")
# What a program has that was started by a click, not in a terminal.
DESKTOP_PATH = {
    "darwin": "/usr/bin:/bin:/usr/sbin:/sbin",
    "linux": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
}
IN_TERMINAL = ("claude-code", "gemini", "codex", "goose", "copilot")
COMMAND_KEYS, ENV_KEYS = ("command", "cmd"), ("env", "envs")


class Start(NamedTuple):
    """What the client does. `path` is its file."""

    client: Client
    path: str
    words: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str


def files_of(client: Client, file: str | None, root: str, name: str, environ: Mapping[str, str]) -> list[str]:
    """Where its entry may be, the first that counts first. Raises UsageError for a client that needs a file named."""
    if file:
        return [os.path.abspath(os.path.expanduser(file))]
    places = [client.project_place(root, name)] if client.project else []
    places += client.user_places(environ)
    if not places:
        raise UsageError(f"{client.title}: {client.why_no_place}.")
    return places


def start_by(client: Client, path: str, *, name: str, root: str, environ: Mapping[str, str]) -> Start | None:
    """As the entry in this file says; None if there is none. Raises ProjectError for a file that cannot be read."""
    content = ClientFile(path).read()
    if content is None:
        return None
    try:
        text = content.decode("utf-8-sig")
        found = FORMATS[client.format].find(text, client.spot(name))
    except (Unfit, UnicodeDecodeError) as error:
        raise ProjectError(path, f"{client.title} cannot read it: {error}") from error
    return None if found.entry is None else _start(client, path, found.entry, root, environ)


def _start(client: Client, path: str, entry: Any, root: str, environ: Mapping[str, str]) -> Start:
    if not isinstance(entry, dict):
        raise ProjectError(path, "the entry is no object")
    command = next((entry[key] for key in COMMAND_KEYS if key in entry), None)
    arguments: Any = entry.get("args", [])
    given: Any = next((entry[key] for key in ENV_KEYS if key in entry), {})
    if not isinstance(command, str) or not command:
        raise ProjectError(path, "the entry has no command; it is for a server elsewhere, or incomplete")
    if not isinstance(arguments, list) or not isinstance(given, dict):
        raise ProjectError(path, "args must be a list, and env an object")
    is_in_terminal = client.word in IN_TERMINAL
    desktop_path = DESKTOP_PATH.get(sys.platform, DESKTOP_PATH["linux"])
    own_path = (environ.get("PATH") if is_in_terminal else None) or desktop_path
    kept = {key: environ[key] for key in KEPT_VARIABLES if key in environ}
    env = {**kept, "PATH": own_path, **{str(key): str(value) for key, value in given.items()}}
    cwd = entry.get("cwd")
    default = root if is_in_terminal else os.sep
    return Start(client, path, (command, *map(str, arguments)), env, cwd if isinstance(cwd, str) and cwd else default)
