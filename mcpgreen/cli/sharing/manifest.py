"""`manifest.json` of a bundle (MCPB 0.3): what a client shows before it installs one, and how it starts it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence

from mcpgreen.cli.making.languages import filled
from mcpgreen.cli.sharing.bundle_settings import BundleSettings
from mcpgreen.cli.sharing.runtime import DIRECTORY
from mcpgreen.errors import ProjectError
from mcpgreen.protocol.schemas.validator import compile_schema
from mcpgreen.settings.settings import Settings
from mcpgreen.text.json_types import Json

ENTRY_POINT = f"server/{DIRECTORY}/start.py"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
VERSION = re.compile(r"[0-9A-Za-z][0-9A-Za-z.+-]{0,63}")
PLACEHOLDER = re.compile(r"\{\{\s*([^{}]+?)\s*\}\}")
ICONS = ("icon.png", "icon.svg")
MAX_PROMPT_BYTES = 65_536


def manifest_of(
    settings: BundleSettings, server: Settings, *, name: str | None, version: str | None, platforms: Sequence[str]
) -> Json:
    """Without the lists of tools and prompts. Raises ProjectError for what cannot be used."""
    info = settings.project.server_info()
    name, version = (
        name or settings.text("NAME") or info["name"],
        version or settings.text("VERSION") or info["version"],
    )
    if not NAME.fullmatch(name):
        raise ProjectError(name, "this cannot be the name of a bundle; give one of A-Z a-z 0-9 . _ - with --name")
    if not VERSION.fullmatch(version):
        raise ProjectError(version, "this cannot be the version of a bundle; give one such as 1.0.0 with --version")
    runtimes = {"python": settings.text("RUNTIME_PYTHON") or ">=3.10", "node": settings.text("RUNTIME_NODE")}
    compatibility = {
        "claude_desktop": settings.text("COMPAT_CLAUDE_DESKTOP"),
        "platforms": list(platforms),
        "runtimes": _given(runtimes),
    }
    repository = settings.repository()
    icon = next((each for each in ICONS if os.path.isfile(os.path.join(settings.project.root, each))), "")
    user_config = settings.user_config()
    return _given(
        {
            "manifest_version": "0.3",
            "name": name,
            "display_name": info["title"],
            "version": version,
            "description": settings.text("DESCRIPTION") or f"{info['title']}, an MCP server",
            "long_description": settings.long_description(),
            "author": settings.author(),
            "repository": {"type": "git", "url": repository} if repository else None,
            "homepage": settings.text("HOMEPAGE"),
            "documentation": settings.text("DOCUMENTATION"),
            "support": settings.text("SUPPORT"),
            "icon": icon,
            "server": {
                "type": "python",
                "entry_point": ENTRY_POINT,
                "mcp_config": _start(settings, server, user_config),
            },
            "keywords": settings.words("KEYWORDS"),
            "license": settings.text("LICENSE"),
            "privacy_policies": settings.words("PRIVACY_POLICIES"),
            "compatibility": _given(compatibility),
            "user_config": user_config,
        }
    )


def is_static(settings: BundleSettings) -> bool:
    """Whether the bundle serves what was found when it was made, without looking again."""
    return settings.text("STATIC").lower() not in ("false", "0", "no", "off")


def problems_of(manifest: Json) -> list[str]:
    """What the published schema has against a manifest."""
    schema = json.loads(filled("sharing/mcpb-manifest.schema.json"))
    return compile_schema(schema, noun="member").problems(manifest)


def listed(registry: str, prompts_dir: str) -> Json:
    """The tools and prompts of a project, as its `.registry` has them."""
    tools = [
        _given({"name": each["name"], "description": each.get("description")}) for each in _items(registry, "tools")
    ]
    return _given({"tools": tools, "prompts": list(_prompts(registry, prompts_dir))})


def _start(settings: BundleSettings, server: Settings, user_config: Json) -> Json:
    """The command line, and the variables that the user's choices become."""
    variables = settings.pairs("USER_CONFIG_ENV_MAP")
    arguments = settings.words("USER_CONFIG_ARGS_MAP")
    for key in (*variables, *arguments):
        if key not in user_config:
            raise ProjectError(key, "this is mapped, but there is no such user configuration")
    env = {variable: f"${{user_config.{key}}}" for key, variable in variables.items()}
    if is_static(settings):
        env["MCPGREEN_STATIC_REGISTRY"] = "true"
    # Scripts see few variables, and those that the user was asked for are meant for them.
    for kind in ("tool", "provider"):
        if env and variables and server.origin(f"{kind}_env_mode") == "default":
            env[f"MCPGREEN_{kind.upper()}_ENV_MODE"] = "allowlist"
            env[f"MCPGREEN_{kind.upper()}_ENV_ALLOWLIST"] = ",".join(variables.values())
    chosen = ["--", *(f"${{user_config.{key}}}" for key in arguments)] if arguments else []
    return _given({"command": "python3", "args": [f"${{__dirname}}/{ENTRY_POINT}", *chosen], "env": env})


def _prompts(registry: str, prompts_dir: str) -> Iterator[Json]:
    """Those that are texts: the manifest has to have the text."""
    for entry in _items(registry, "prompts"):
        path = os.path.join(prompts_dir, str(entry.get("path", "")))
        if not path.endswith((".txt", ".md")) or not os.path.isfile(path) or os.path.getsize(path) > MAX_PROMPT_BYTES:
            continue
        with open(path, encoding="utf-8", errors="replace") as file:
            text = PLACEHOLDER.sub(r"${arguments.\1}", file.read())
        names = [argument["name"] for argument in entry.get("arguments") or ()]
        described = {"name": entry["name"], "description": entry.get("description"), "arguments": names, "text": text}
        yield _given(described)


def _items(registry: str, kind: str) -> list[Json]:
    with open(os.path.join(registry, f"{kind}.json"), encoding="utf-8") as file:
        items: list[Json] = json.load(file)["items"]
    return items


def _given(fields: Json) -> Json:
    """Without what is empty."""
    return {name: value for name, value in fields.items() if value}
