"""The clients, one row each: where their file is, its format, and what an entry looks like.

Places are templates that `place_in` fills in from the environment. A client without a usual place says why.
"""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

from mcpgreen.cli.clients.formats import json_edits, toml_edits, yaml_edits
from mcpgreen.cli.clients.formats.spot import Format, Spot
from mcpgreen.cli.clients.launch import Launch
from mcpgreen.cli.output import did_you_mean
from mcpgreen.errors import ProjectError, UsageError
from mcpgreen.text.json_types import Json

# Added to the time limit of a tool, for what comes before and after it.
MARGIN_SECS = 5
KEPT_VARIABLES = ("HOME", "LOGNAME", "SHELL", "TERM", "USER")  # which both official SDKs pass on
DESKTOP_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"  # of a program started from the desktop
if sys.platform == "darwin":
    DESKTOP_PATH = "/usr/bin:/bin:/usr/sbin:/sbin"
FORMATS: dict[str, Format] = {"json": json_edits, "toml": toml_edits, "yaml": yaml_edits}


class Patience(NamedTuple):
    """How an entry tells the client to wait longer for tools than usual."""

    key: str
    per_second: int  # 1000 where it counts milliseconds
    default_secs: float


class Client(NamedTuple):
    word: str
    title: str
    shape: Callable[[Launch], Json]
    places: tuple[str, ...] = ()  # the first one with a file counts, else the first
    project: str = ""
    format: str = "json"
    entries: Spot = Spot("mcpServers")  # where its file has entries
    other_words: tuple[str, ...] = ()
    why_no_place: str = ""
    spoiler: str = ""  # a file that the client would no longer read if we made ours
    names: str = ".*"  # a pattern for the names that it accepts
    patience: Patience | None = None
    workspace: str = ""  # what its file for a project may write for the folder that is open
    is_in_terminal: bool = False  # it runs in a terminal, and so with the person's PATH and directory

    def environment(self, variables: Mapping[str, str]) -> dict[str, str]:
        """Return what a server gets whose entry has these variables."""
        kept = {key: os.environ[key] for key in KEPT_VARIABLES if key in os.environ}
        own_path = os.environ.get("PATH") if self.is_in_terminal else None
        return {**kept, "PATH": own_path or DESKTOP_PATH, **variables}

    def spot(self, name: str) -> Spot:
        return self.entries._replace(name=name)

    def entry(self, launch: Launch) -> Json:
        entry = self.shape(launch)
        secs = launch.tool_secs + MARGIN_SECS
        if self.patience and secs > self.patience.default_secs:
            entry[self.patience.key] = math.ceil(secs * self.patience.per_second)
        return entry

    def user_places(self, environ: Mapping[str, str], system: str = sys.platform) -> list[str]:
        """Return the places of its file, the best first."""
        unset = [f"{{{name}}}" for name in OWN_VARIABLES if not environ.get(name)]
        return [place_in(each, environ, system) for each in self.places if not any(name in each for name in unset)]

    def project_place(self, root: str, name: str) -> str:
        return os.path.join(root, self.project.format(name=re.sub(r"[^\w.-]", "-", name)))


def home_of(environ: Mapping[str, str]) -> str:
    """Return the home directory. Raises ProjectError. (`expanduser` takes an empty HOME for the root directory.)"""
    named = environ.get("HOME")
    if not named:
        import pwd

        try:
            named = pwd.getpwuid(os.getuid()).pw_dir
        except KeyError:
            raise ProjectError("HOME", "it is not set, and you have no home directory; set HOME") from None
    return named


def place_in(template: str, environ: Mapping[str, str], system: str = sys.platform) -> str:
    home, is_mac = home_of(environ), system == "darwin"
    dotfiles = os.path.join(home, ".config")
    config = _absolute(environ, "XDG_CONFIG_HOME") or dotfiles
    variables = {
        "home": home,
        "config": config,
        "own_config": dotfiles if is_mac else config,  # of clients that ignore the variable on macOS
        "support": os.path.join(home, "Library/Application Support") if is_mac else config,
        "codex": _absolute(environ, "CODEX_HOME") or os.path.join(home, ".codex"),
        "copilot": _absolute(environ, "COPILOT_HOME") or os.path.join(home, ".copilot"),
        "qwen": _absolute(environ, "QWEN_HOME") or os.path.join(home, ".qwen"),
        "claude": _absolute(environ, "CLAUDE_CONFIG_DIR") or home,
        **{name: environ.get(name, "") for name in OWN_VARIABLES},
    }
    return template.format_map(variables)


# Variables that name the file of a client; a place that uses one counts only if it is set.
OWN_VARIABLES = ("CLINE_MCP_SETTINGS_PATH",)


def _absolute(environ: Mapping[str, str], name: str) -> str:
    """Return the path in a variable, if it is absolute. The XDG specification ignores relative ones."""
    path = environ.get(name, "")
    return path if os.path.isabs(path) else ""


def _plain(launch: Launch) -> Json:
    return {"command": launch.command, "args": list(launch.arguments), **_env(launch)}


def _env(launch: Launch, key: str = "env") -> Json:
    return {key: dict(launch.env)} if launch.env else {}


def _typed(launch: Launch) -> Json:
    return {"type": "stdio", **_plain(launch)}


def _goose(launch: Launch) -> Json:
    return {
        "enabled": True,
        "type": "stdio",
        "name": launch.name,
        "description": launch.description,
        "cmd": launch.command,
        "args": list(launch.arguments),
        "envs": dict(launch.env),
        "env_keys": [],
        "timeout": max(300, math.ceil(launch.tool_secs) + MARGIN_SECS),
    }


_IN_VSCODE = Spot("servers", has_comments=True, has_trailing_commas=True)
_IN_ZED = _IN_VSCODE._replace(root="context_servers")
_IN_GEMINI = Spot("mcpServers", has_comments=True)
_terminal_client = partial(Client, is_in_terminal=True)
_editor = partial(Client, workspace="${workspaceFolder}")
_gemini_cli = partial(_terminal_client, entries=_IN_GEMINI, patience=Patience("timeout", 1000, 600))

CLIENTS = (
    Client("claude-desktop", "Claude Desktop", _plain, ("{support}/Claude/claude_desktop_config.json",)),
    _terminal_client(
        "claude-code",
        "Claude Code",
        _typed,
        ("{claude}/.claude.json",),
        ".mcp.json",
        other_words=("claude-cli",),
        workspace="${CLAUDE_PROJECT_DIR:-.}",  # where the variable is not set, the server starts in that folder
    ),
    _editor("cursor", "Cursor", _plain, ("{home}/.cursor/mcp.json",), ".cursor/mcp.json"),
    _editor("vscode", "VS Code", _typed, ("{support}/Code/User/mcp.json",), ".vscode/mcp.json", entries=_IN_VSCODE),
    Client("windsurf", "Windsurf", _plain, ("{home}/.codeium/windsurf/mcp_config.json",)),
    Client("zed", "Zed", _plain, ("{own_config}/zed/settings.json",), ".zed/settings.json", entries=_IN_ZED),
    _gemini_cli("gemini", "Gemini CLI", _plain, ("{home}/.gemini/settings.json",), ".gemini/settings.json"),
    _terminal_client(
        "codex",
        "Codex CLI",
        _plain,
        ("{codex}/config.toml",),
        ".codex/config.toml",
        "toml",
        Spot("mcp_servers"),
        names=r"[a-zA-Z0-9_-]+",
        patience=Patience("tool_timeout_sec", 1, 60),
    ),
    _terminal_client("goose", "Goose", _goose, ("{own_config}/goose/config.yaml",), "", "yaml", Spot("extensions")),
    Client(
        "jetbrains",
        "JetBrains AI Assistant",
        _plain,
        why_no_place="JetBrains IDEs keep their servers in their own settings (Settings, Tools, AI Assistant, Model "
        "Context Protocol), where you can paste what `config --client jetbrains` prints; name a file with --file",
    ),
    Client(
        "continue",
        "Continue",
        lambda launch: {"name": launch.name, **_plain(launch)},
        ("{home}/.continue/config.yaml",),
        ".continue/mcpServers/{name}.yaml",
        "yaml",
        Spot("mcpServers", is_list=True, preamble="name: mcpgreen\nversion: 0.0.1\nschema: v1\n"),
        spoiler="{home}/.continue/config.json",
    ),
    Client(
        "cline",
        "Cline",
        _plain,
        (
            "{CLINE_MCP_SETTINGS_PATH}",
            "{home}/.cline/data/settings/cline_mcp_settings.json",
            "{support}/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
        ),
        patience=Patience("timeout", 1, 60),
    ),
    Client(
        "librechat",
        "LibreChat",
        _typed,
        format="yaml",
        entries=Spot("mcpServers", preamble="version: 1.2.1\n"),
        patience=Patience("timeout", 1000, 30),
        why_no_place="LibreChat keeps librechat.yaml in its installation folder; name that file with --file",
    ),
    _terminal_client(
        "copilot",
        "Copilot CLI",
        lambda launch: {"type": "local", **_plain(launch), "tools": ["*"]},
        ("{copilot}/mcp-config.json",),
        ".github/mcp.json",
    ),
    _terminal_client(
        "opencode",
        "OpenCode",
        lambda launch: {"type": "local", "command": [*launch.words], "enabled": True, **_env(launch, "environment")},
        ("{config}/opencode/opencode.json", "{config}/opencode/opencode.jsonc"),
        "opencode.json",
        entries=_IN_VSCODE._replace(root="mcp"),
        patience=Patience("timeout", 1000, 60),
    ),
    _gemini_cli("qwen", "Qwen Code", _plain, ("{qwen}/settings.json",), ".qwen/settings.json"),
)
BY_WORD = {word: client for client in CLIENTS for word in (client.word, *client.other_words)}


def client_named(word: str) -> Client:
    """Find the client with this word or another of its words. Raises UsageError."""
    if word in BY_WORD:
        return BY_WORD[word]
    words = [client.word for client in CLIENTS]
    near = did_you_mean(word.lower(), words) or "."
    raise UsageError(f"unknown client: {word}{near} Choose from {', '.join(words)}.")
