"""`mcpgreen registry status`: what the files in `.registry/` hold, and how old they are. Reads no other file."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from mcpgreen.catalog.item_kinds import FILE_OF
from mcpgreen.files.regular_files import without_waiting
from mcpgreen.project.project import open_project
from mcpgreen.running.scripts import jq
from mcpgreen.text import jsontext

# Of pages, older servers wrote them under a name of their own.
ITEMS = ("items", "uiResources")


def registry_status(flags: Mapping[str, str], environ: Mapping[str, str], *, kinds: Sequence[str]) -> int:
    """Print one line of JSON. 0, also when files are missing: the server does not need them."""
    project, settings, environ = open_project(flags, environ, needs_own=True)
    name, _ = jq.find_json_tool(settings, jq.path_in(environ))
    report: dict[str, Any] = {"projectRoot": project.root, "jsonTool": name}
    for kind in kinds:
        report[kind] = _file(os.path.join(project.registry_dir, FILE_OF.get(kind, kind) + ".json"))
    sys.stdout.buffer.write(jsontext.dumps(report) + b"\n")
    return 0


def _file(path: str) -> dict[str, Any]:
    found: dict[str, Any] = {"status": "missing", "path": path, "count": 0, "hash": None, "mtime": None}
    try:
        with open(path, "rb", opener=without_waiting) as file:
            found["mtime"] = int(os.fstat(file.fileno()).st_mtime)
            content = jsontext.loads(file.read())
    except FileNotFoundError:
        return found
    except (OSError, ValueError):
        content = None
    if not isinstance(content, dict):
        return {**found, "status": "unreadable"}
    items: list[Any] = next((content[name] for name in ITEMS if isinstance(content.get(name), list)), [])
    return {**found, "status": "present", "count": len(items), "hash": content.get("hash")}
