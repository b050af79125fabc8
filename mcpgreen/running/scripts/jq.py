"""Choose the jq that scripts use: the host's jq or gojq, or the built-in command, which uses the Python package `jq`.

Some scripts ask for it by MCPBASH_JSON_TOOL_BIN, others just call `jq`. For these, on a host without one, a directory
with a `jq` in it becomes the last of their PATH.

Rule: imported before the first answer if a project has an `env.sh`, so it may need nothing that is not there already.
"""

from __future__ import annotations

import _imp
import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from mcpgreen import PACKAGE_DIR

if TYPE_CHECKING:
    from mcpgreen.settings.settings import Settings

SDK_DIR = os.path.join(PACKAGE_DIR, "sdk")
OWN_JSON_TOOL = os.path.join(SDK_DIR, "json-tool")
OWN_DIRECTORY = os.path.join(SDK_DIR, "bin")
DEFAULT_PATH = "/usr/bin:/bin"


def path_in(environ: Mapping[str, str]) -> str:
    """Return the PATH of an environment, which may have none."""
    return environ.get("PATH") or DEFAULT_PATH


def variables(settings: Settings, path: str) -> dict[str, str]:
    """Return the variables about the JSON tool for scripts that would have this PATH."""
    name, program = find_json_tool(settings, path)
    return {
        "PATH": path_with_jq(path),
        "MCPBASH_JSON_TOOL": name,
        "MCPBASH_JSON_TOOL_BIN": program,
        "MCPBASH_MODE": "full" if program else "minimal",
    }


def find_json_tool(settings: Settings, path: str) -> tuple[str, str]:
    """Return the name (jq, gojq or none) and the path of the JSON tool. The settings have the first choice."""
    chosen, program = settings.json_tool, settings.json_tool_bin
    if chosen == "none":
        return "none", ""
    if program and _is_program(program):
        return chosen or ("gojq" if os.path.basename(program) == "gojq" else "jq"), program
    others = _without_ours(path)
    for name in ("gojq", "jq") if chosen == "gojq" else ("jq", "gojq"):
        found = _found(name, others)
        if found:
            return name, found
    # An installer may have lost the permission to run it.
    return ("jq", OWN_JSON_TOOL) if os.access(OWN_JSON_TOOL, os.X_OK) and _has_library() else ("none", "")


def path_with_jq(path: str) -> str:
    """Return the same PATH, with our directory at its end if nothing else on it has a `jq`."""
    others = _without_ours(path)
    if _found("jq", others) or not os.access(os.path.join(OWN_DIRECTORY, "jq"), os.X_OK):
        return others
    return f"{others}{os.pathsep}{OWN_DIRECTORY}"


def _has_library() -> bool:
    """Not every platform has the package. Only its file is looked for: the server has no use for the module."""
    paths = (os.path.join(place, f"jq{ending}") for place in sys.path for ending in _imp.extension_suffixes())
    return any(map(os.path.isfile, paths))


def _without_ours(path: str) -> str:
    """It may be there already: a program that got this PATH from us may have built another on it."""
    return os.pathsep.join(place for place in path.split(os.pathsep) if place != OWN_DIRECTORY)


def _found(name: str, path: str) -> str | None:
    for place in path.split(os.pathsep):
        program = os.path.join(place, name)
        if _is_program(program):
            return program
    return None


def _is_program(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)
