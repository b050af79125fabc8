"""Which modules an interpreter would not find, asked without importing any of them.

An interpreter of the system is asked itself, once for all scripts that it runs. One that lies in the project, in a
virtual environment, is not run: there the files of the environment tell.

Rule: a module that may be there is not called missing.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection

from mcpgreen.cli import children
from mcpgreen.text.uris import is_within

# Only the first part of a name: to look for the second, Python would import the first.
_QUESTION = """
import importlib.util, site, sys
sys.path.append(site.getusersitepackages())
for name in sys.argv[1:]:
    try:
        found = importlib.util.find_spec(name) is not None
    except Exception:
        found = True
    if not found:
        print("missing", name)
"""
_HARMLESS_PTH = ("distutils-precedence.pth", "_virtualenv.pth")
AT_ONCE = 500


def missing_from(interpreter: str, names: Collection[str], *, root: str, path: str) -> set[str]:
    """Those of these names that this interpreter does not know; `root` is the project."""
    wanted = sorted(names)[:AT_ONCE]
    if is_within(os.path.abspath(interpreter), root):
        return _missing_from_environment(os.path.dirname(os.path.dirname(os.path.abspath(interpreter))), wanted)
    command = [interpreter, "-I", "-W", "ignore", "-c", _QUESTION, *wanted]
    ((status, said),) = children.outputs_of([command], path=path)
    if status != 0:
        return set()
    return {line.split()[1] for line in said.splitlines() if line.startswith("missing ")}


def _missing_from_environment(place: str, names: list[str]) -> set[str]:
    try:
        with open(os.path.join(place, "pyvenv.cfg"), encoding="utf-8") as file:
            settings = {key.strip(): value.strip() for key, _, value in (line.partition("=") for line in file)}
        libraries = os.path.join(place, "lib")
        sites = [os.path.join(libraries, version, "site-packages") for version in os.listdir(libraries)]
        entries = [entry for site in sites for entry in os.listdir(site)]
    except OSError:
        return set()
    others = any(entry.endswith(".pth") and entry not in _HARMLESS_PTH for entry in entries)
    if others or settings.get("include-system-site-packages") == "true":
        return set()  # modules may lie elsewhere
    known = {entry.partition(".")[0] for entry in entries} | set(sys.stdlib_module_names)
    return {name for name in names if name not in known}


def is_beside(directory: str, name: str) -> bool:
    """Whether a script in this directory would find the module there."""
    try:
        entries = os.listdir(directory)
    except OSError:
        return False
    return any(entry == name or entry.startswith(f"{name}.") for entry in entries)
