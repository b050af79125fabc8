"""Which jq scripts use: that of the host, gojq, or our own command, for which the Python package `jq` has the library.

Some scripts ask for it by MCPBASH_JSON_TOOL_BIN, others just call `jq`. For these, on a host without one, a directory
with a `jq` in it becomes the last of their PATH.

Rule: imported before the first answer if a project has an `env.sh`, so it may need nothing that is not there already.
"""

from __future__ import annotations

import _imp
import os
import sys

from mcpgreen import PACKAGE_DIR

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

SDK_DIR = os.path.join(PACKAGE_DIR, "sdk")
OWN_JSON_TOOL = os.path.join(SDK_DIR, "json-tool")
OWN_DIRECTORY = os.path.join(SDK_DIR, "bin")
DEFAULT_PATH = "/usr/bin:/bin"


def path_in(environ: Mapping[str, str]) -> str:
    """The PATH of an environment, which may have none."""
    return environ.get("PATH") or DEFAULT_PATH


def variables(preferred: str, path: str) -> dict[str, str]:
    """What scripts are told if this is the PATH that they would have, and this, if any, the program that was chosen."""
    name, program = find_json_tool(preferred, path)
    return {
        "PATH": path_with_jq(path),
        "MCPBASH_JSON_TOOL": name,
        "MCPBASH_JSON_TOOL_BIN": program,
        "MCPBASH_MODE": "full" if program else "minimal",
    }


def find_json_tool(preferred: str, path: str) -> tuple[str, str]:
    """What it is called, as scripts know it, and where it is: jq, gojq, or none."""
    if preferred and os.access(preferred, os.X_OK):
        return "gojq" if os.path.basename(preferred) == "gojq" else "jq", preferred
    others = _without_ours(path)
    for name in ("jq", "gojq"):
        program = _found(name, others)
        if program:
            return name, program
    # An installer may have lost the permission to run it.
    return ("jq", OWN_JSON_TOOL) if os.access(OWN_JSON_TOOL, os.X_OK) and _has_library() else ("none", "")


def path_with_jq(path: str) -> str:
    """The same PATH, with our directory at its end if nothing else on it has a `jq`."""
    others = _without_ours(path)
    if _found("jq", others) or not os.access(os.path.join(OWN_DIRECTORY, "jq"), os.X_OK):
        return others
    return f"{others}{os.pathsep}{OWN_DIRECTORY}"


def _has_library() -> bool:
    """Not every platform has the package. Only its file is looked for: the server has no use for the module."""
    paths = (os.path.join(place, f"jq{ending}") for place in sys.path for ending in _imp.extension_suffixes())
    return any(map(os.path.isfile, paths))


def _without_ours(path: str) -> str:
    """It may be there already: whoever got this PATH from us may have built another on it."""
    return os.pathsep.join(place for place in path.split(os.pathsep) if place != OWN_DIRECTORY)


def _found(name: str, path: str) -> str | None:
    for place in path.split(os.pathsep):
        program = os.path.join(place, name)
        if os.path.isfile(program) and os.access(program, os.X_OK):
            return program
    return None
