"""Configuration of a tool: defaults, an example, a file, the environment. A part of `mcp_tool`, loaded on demand."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import Any

import mcp_tool

__all__ = ["config_get", "config_load"]

Json = dict[str, Any]
VARIABLE = "MCP_CONFIG_JSON"


def config_load(
    *,
    env: str | None = None,
    file: str | os.PathLike[str] | None = None,
    example: str | os.PathLike[str] | None = None,
    defaults: Mapping[str, Any] | None = None,
) -> Json:
    """Merge the configuration, member by member: defaults, then the example, then the file, then the variable `env`.

    The variable contains JSON, or the path of a file. An unusable source is skipped with a warning on stderr. Raises
    LookupError if there is no usable source and no default.
    """
    named = os.environ.get(env, "") if env else ""
    pieces = [_from_file(os.fspath(path)) for path in (example, file) if path]
    pieces.append(_from_text(named, f"the variable {env}") if named.lstrip()[:1] in ("{", "[") else _from_file(named))
    found = [piece for piece in pieces if piece is not None]
    if not found and not defaults:
        raise LookupError("config_load: there is no configuration, and there are no defaults")
    merged: Json = dict(defaults or {})
    for piece in found:
        merged.update(piece)
    os.environ[VARIABLE] = json.dumps(merged)  # for programs that the tool starts
    return merged


def config_get(path: str, default: object = mcp_tool._ABSENT) -> Any:
    """The value at a path such as "server.port". If it is absent or null: the default, or KeyError without one."""
    value: Any = json.loads(os.environ.get(VARIABLE) or "{}")
    for part in filter(None, path.split(".")):
        value = value.get(part) if isinstance(value, dict) else None
    if value is not None:
        return value
    if default is mcp_tool._ABSENT:
        raise KeyError(path)
    return default


def _from_file(path: str) -> Json | None:
    if not path or not os.path.exists(path):
        return None
    try:
        with open(path, encoding="utf-8") as file:
            return _from_text(file.read(), path)
    except (OSError, UnicodeDecodeError):
        return _skipped(path, "it cannot be read as text")


def _from_text(text: str, name: str) -> Json | None:
    try:
        value = json.loads(text)
    except ValueError:
        return _skipped(name, "it is not valid JSON")
    return value if isinstance(value, dict) else _skipped(name, "it is not a JSON object")


def _skipped(name: str, why: str) -> Json | None:
    print(f"config_load: skipped {name}: {why}", file=sys.stderr)
    return None
