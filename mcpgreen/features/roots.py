"""Which directories are in scope for tools: the configured roots, else `config/roots.json`, else the project itself."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from mcpgreen import journal, jsontext
from mcpgreen.errors import ProjectError
from mcpgreen.uris import file_uri


class Root(NamedTuple):
    path: str
    name: str


class Roots:
    """The roots of one server."""

    def __init__(self, roots: Sequence[Root]) -> None:
        self.paths = [root.path for root in roots]
        self.variables = _variables(roots)


def configured_roots(project_root: str, configured: str) -> Roots:
    """Colon-separated `configured` paths must exist; entries of `config/roots.json` that do not are skipped."""
    if configured:
        return Roots(_distinct(_strict(path, project_root) for path in configured.split(":") if path))
    from_file = _from_file(os.path.join(project_root, "config", "roots.json"), project_root)
    return Roots(_distinct(from_file) or [Root(project_root, os.path.basename(project_root))])


def _strict(path: str, project_root: str) -> Root:
    real_path = _resolved(path, project_root)
    if not os.access(real_path, os.R_OK):
        raise ProjectError(path, "this root does not exist or cannot be read")
    return Root(real_path, os.path.basename(real_path))


def _from_file(file: str, project_root: str) -> Iterable[Root]:
    try:
        with open(file, "rb") as stream:
            content = jsontext.loads(stream.read())
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        journal.warning("%s is not usable: %s", file, error)
        return
    entries: Any = content.get("roots") if isinstance(content, dict) else None
    if not isinstance(entries, list):
        journal.warning('%s is ignored: it must look like {"roots": [{"path": "./data", "name": "Data"}]}', file)
        return
    for entry in entries:
        path = entry.get("path") if isinstance(entry, dict) else None
        if not isinstance(path, str) or not os.access(_resolved(path, project_root), os.R_OK):
            journal.warning("%s: root %r does not exist or cannot be read; skipped", file, path)
            continue
        name = entry.get("name")
        real_path = _resolved(path, project_root)
        yield Root(real_path, name if isinstance(name, str) else os.path.basename(real_path))


def _resolved(path: str, project_root: str) -> str:
    return os.path.realpath(os.path.join(project_root, os.path.expanduser(path)))


def _distinct(roots: Iterable[Root]) -> list[Root]:
    return list({root.path: root for root in roots}.values())


def _variables(roots: Sequence[Root]) -> dict[str, str]:
    listed = [{"uri": file_uri(path), "name": name, "path": path} for path, name in roots]
    return {
        "MCP_ROOTS_JSON": jsontext.dumps(listed).decode("ascii"),
        "MCP_ROOTS_PATHS": "\n".join(root.path for root in roots),
        "MCP_ROOTS_COUNT": str(len(roots)),
    }
