"""The clients, a row each: where their file is, what is in it, what an entry looks like.

Places are templates; `places` fills in what the environment says. A client whose file belongs to nobody in particular
has none, and says why.
"""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from mcpgreen.cli.clients.formats import json_edits, toml_edits, yaml_edits
from mcpgreen.cli.clients.formats.spot import Format, Spot
from mcpgreen.cli.clients.launch import Launch
from mcpgreen.errors import ProjectError

Entry = dict[str, Any]

# To a tool's own time, for what comes before and after it.
MARGIN_SECS = 5
FORMATS: dict[str, Format] = {"json": json_edits, "toml": toml_edits, "yaml": yaml_edits}


class Patience(NamedTuple):
    """How a client is told to wait longer for a tool than it would."""

    key: str
    per_second: int  # 1000 where it counts milliseconds
    default_secs: float


class Places(NamedTuple):
    """Templates: the first of which the file exists, else the first."""

    linux: tuple[str, ...] = ()
    macos: tuple[str, ...] = ()
    windows: tuple[str, ...] = ()


class Client(NamedTuple):
    word: str
    title: str
    shape: Callable[[Launch], Entry]
    root: str = "mcpServers"
    format: str = "json"
    places: Places = Places()
    project: str = ""
    other_words: tuple[str, ...] = ()
    why_no_place: str = ""
    spoiler: str = ""  # a file that would no longer count if we made ours
    is_list: bool = False
    has_comments: bool = False
    has_trailing_commas: bool = False
    preamble: str = ""
    names: str = ""  # what the client takes for a name, as a pattern; empty for anything
    patience: Patience | None = None

    def spot(self, name: str) -> Spot:
        return Spot(
            self.root,
            name,
            is_list=self.is_list,
            has_comments=self.has_comments,
            has_trailing_commas=self.has_trailing_commas,
            preamble=self.preamble,
        )

    def entry(self, launch: Launch) -> Entry:
        entry = self.shape(launch)
        secs = launch.tool_secs + MARGIN_SECS
        if self.patience and secs > self.patience.default_secs:
            entry[self.patience.key] = math.ceil(secs * self.patience.per_second)
        return entry

    def takes_name(self, name: str) -> bool:
        return not self.names or re.fullmatch(self.names, name) is not None

    def user_places(self, environ: Mapping[str, str], system: str = sys.platform) -> list[str]:
        """Where its file may be, the best first."""
        rows = {"darwin": self.places.macos, "win32": self.places.windows}.get(system, self.places.linux)
        return [template.format_map(_variables(environ)) for template in rows if _is_known(template, environ)]

    def project_place(self, root: str, name: str) -> str:
        return os.path.join(root, self.project.format(name=re.sub(r"[^\w.-]", "-", name)))


def home_of(environ: Mapping[str, str]) -> str:
    """The home directory; for Python, an empty HOME is the root of the file system. Raises ProjectError."""
    named = environ.get("HOME") or environ.get("USERPROFILE")
    if not named:
        import pwd

        try:
            named = pwd.getpwuid(os.getuid()).pw_dir
        except KeyError:
            raise ProjectError("HOME", "it is not set, and you have no home directory; set it") from None
    return named


def _variables(environ: Mapping[str, str]) -> dict[str, str]:
    home = home_of(environ)
    variables = {
        "home": home,
        "config": _absolute(environ, "XDG_CONFIG_HOME") or os.path.join(home, ".config"),
        "appdata": environ.get("APPDATA") or os.path.join(home, "AppData", "Roaming"),
        "codex": _absolute(environ, "CODEX_HOME") or os.path.join(home, ".codex"),
        "copilot": _absolute(environ, "COPILOT_HOME") or os.path.join(home, ".copilot"),
        "claude": _absolute(environ, "CLAUDE_CONFIG_DIR") or home,
    }
    return {**variables, **{name: environ.get(name, "") for name in OWN_VARIABLES}}


# Variables of a client that name its file; a place with one is left out where it is not set.
OWN_VARIABLES = ("CLINE_MCP_SETTINGS_PATH",)


def _is_known(template: str, environ: Mapping[str, str]) -> bool:
    return all(environ.get(name) for name in OWN_VARIABLES if f"{{{name}}}" in template)


def _absolute(environ: Mapping[str, str], name: str) -> str:
    """The XDG specification has relative paths ignored."""
    path = environ.get(name, "")
    return path if os.path.isabs(path) else ""


def _plain(launch: Launch) -> Entry:
    return {"command": launch.command, "args": list(launch.arguments), "env": dict(launch.env)}


def _typed(launch: Launch) -> Entry:
    return {"type": "stdio", **_plain(launch)}


def _copilot(launch: Launch) -> Entry:
    return {"type": "local", **_plain(launch), "tools": ["*"]}


def _goose(launch: Launch) -> Entry:
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


def _continue(launch: Launch) -> Entry:
    return {"name": launch.name, **_plain(launch)}


def _everywhere(*templates: str) -> Places:
    return Places(templates, templates, templates)


CLINE = "Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"
SHARED_BY_CLINE = ("{CLINE_MCP_SETTINGS_PATH}", "{home}/.cline/data/settings/cline_mcp_settings.json")

CLIENTS = (
    Client(
        "claude-desktop",
        "Claude Desktop",
        _plain,
        places=Places(
            linux=("{config}/Claude/claude_desktop_config.json",),
            macos=("{home}/Library/Application Support/Claude/claude_desktop_config.json",),
            windows=("{appdata}/Claude/claude_desktop_config.json",),
        ),
    ),
    Client(
        "claude-code",
        "Claude Code",
        _typed,
        places=_everywhere("{claude}/.claude.json"),
        project=".mcp.json",
        other_words=("claude-cli",),
    ),
    Client("cursor", "Cursor", _plain, places=_everywhere("{home}/.cursor/mcp.json"), project=".cursor/mcp.json"),
    Client(
        "vscode",
        "VS Code",
        _typed,
        root="servers",
        places=Places(
            linux=("{config}/Code/User/mcp.json",),
            macos=("{home}/Library/Application Support/Code/User/mcp.json",),
            windows=("{appdata}/Code/User/mcp.json",),
        ),
        project=".vscode/mcp.json",
        has_comments=True,
        has_trailing_commas=True,
    ),
    Client("windsurf", "Windsurf", _plain, places=_everywhere("{home}/.codeium/windsurf/mcp_config.json")),
    Client(
        "zed",
        "Zed",
        _plain,
        root="context_servers",
        places=Places(
            linux=("{config}/zed/settings.json",),
            macos=("{home}/.config/zed/settings.json",),
            windows=("{appdata}/Zed/settings.json",),
        ),
        project=".zed/settings.json",
        has_comments=True,
        has_trailing_commas=True,
    ),
    Client(
        "gemini",
        "Gemini CLI",
        _plain,
        places=_everywhere("{home}/.gemini/settings.json"),
        project=".gemini/settings.json",
        has_comments=True,
        patience=Patience("timeout", 1000, 600),
    ),
    Client(
        "codex",
        "Codex CLI",
        _plain,
        root="mcp_servers",
        format="toml",
        places=_everywhere("{codex}/config.toml"),
        project=".codex/config.toml",
        names=r"[a-zA-Z0-9_-]+",
        patience=Patience("tool_timeout_sec", 1, 60),
    ),
    Client(
        "goose",
        "Goose",
        _goose,
        root="extensions",
        format="yaml",
        places=Places(
            linux=("{config}/goose/config.yaml",),
            macos=("{home}/.config/goose/config.yaml",),
            windows=("{appdata}/Block/goose/config/config.yaml",),
        ),
    ),
    Client(
        "jetbrains",
        "JetBrains AI Assistant",
        _plain,
        why_no_place="JetBrains IDEs keep their servers in settings of their own (Settings, Tools, AI Assistant, Model "
        "Context Protocol), where you can paste what `config --client jetbrains` prints; name a file with --file",
    ),
    Client(
        "continue",
        "Continue",
        _continue,
        format="yaml",
        places=_everywhere("{home}/.continue/config.yaml"),
        project=".continue/mcpServers/{name}.yaml",
        spoiler="{home}/.continue/config.json",
        is_list=True,
        preamble="name: mcpgreen\nversion: 0.0.1\nschema: v1\n",
    ),
    Client(
        "cline",
        "Cline",
        _plain,
        places=Places(
            linux=(*SHARED_BY_CLINE, "{config}/" + CLINE),
            macos=(*SHARED_BY_CLINE, "{home}/Library/Application Support/" + CLINE),
            windows=(*SHARED_BY_CLINE, "{appdata}/" + CLINE),
        ),
        patience=Patience("timeout", 1, 60),
    ),
    Client(
        "librechat",
        "LibreChat",
        _typed,
        format="yaml",
        preamble="version: 1.2.1\n",
        patience=Patience("timeout", 1000, 30),
        why_no_place="LibreChat has its librechat.yaml where it is installed; name that file with --file",
    ),
    Client(
        "copilot",
        "Copilot CLI",
        _copilot,
        places=_everywhere("{copilot}/mcp-config.json"),
        project=".github/mcp.json",
    ),
)
BY_WORD = {word: client for client in CLIENTS for word in (client.word, *client.other_words)}


def place_in(template: str, environ: Mapping[str, str]) -> str:
    return template.format_map(_variables(environ))
