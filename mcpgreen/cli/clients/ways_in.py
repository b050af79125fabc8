"""What a person can paste, click or run to connect a client: the entry as its file has it, links, command lines."""

from __future__ import annotations

import base64
import json
import shlex
from collections.abc import Callable
from urllib.parse import quote

from mcpgreen.cli.clients.launch import Launch
from mcpgreen.cli.clients.table import FORMATS, Client

Way = Callable[[Client, Launch, str], str]


def snippet(client: Client, launch: Launch) -> str:
    """A whole file with nothing but the entry."""
    return FORMATS[client.format].inserted("", client.spot(launch.name), client.entry(launch))


def links(client: Client, launch: Launch) -> list[str]:
    """What the client opens and asks the person about."""
    return [LINKS[client.word](client, launch, "")] if client.word in LINKS else []


def command_lines(client: Client, launch: Launch, scope: str) -> list[str]:
    return [COMMANDS[client.word](client, launch, scope)] if client.word in COMMANDS else []


def inspector_line(launch: Launch) -> str:
    return shlex.join(("npx", "@modelcontextprotocol/inspector", *_variables(launch, "-e"), "--", *launch.words))


def _cursor_link(client: Client, launch: Launch, scope: str) -> str:
    config = base64.b64encode(_json(client.entry(launch)).encode()).decode("ascii")
    return f"cursor://anysphere.cursor-deeplink/mcp/install?name={quote(launch.name, '')}&config={quote(config, '')}"


def _vscode_link(client: Client, launch: Launch, scope: str) -> str:
    return "vscode:mcp/install?" + quote(_json({"name": launch.name, **client.entry(launch)}), "")


def _claude(client: Client, launch: Launch, scope: str) -> str:
    # The variables stand behind the name: `--env` takes all words up to the next option.
    words = ("claude", "mcp", "add", "--scope", scope, launch.name, *_variables(launch, "--env"), "--", *launch.words)
    return shlex.join(words)


def _code(client: Client, launch: Launch, scope: str) -> str:
    return shlex.join(("code", "--add-mcp", _json({"name": launch.name, **client.entry(launch)})))


def _add(client: Client, launch: Launch, scope: str) -> str:
    """For clients whose command has their own name."""
    return shlex.join((client.word, "mcp", "add", launch.name, *_variables(launch, "--env"), "--", *launch.words))


LINKS: dict[str, Way] = {"cursor": _cursor_link, "vscode": _vscode_link}
COMMANDS: dict[str, Way] = {"claude-code": _claude, "vscode": _code, "codex": _add, "copilot": _add}


def _variables(launch: Launch, option: str) -> list[str]:
    return [word for name, value in launch.env.items() for word in (option, f"{name}={value}")]


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
