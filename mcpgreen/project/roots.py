"""Roots: the directories that tools are meant to work in, as the operator or the project configures them. Also the
other directories that resources may come from.

`Roots` is a value; if a client names roots later (`links.roots`), that makes another one. Everything that depends on
roots is computed here once, and not for each call.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

from mcpgreen import journal
from mcpgreen.errors import ProjectError
from mcpgreen.files.confined import is_kernel_path
from mcpgreen.files.regular_files import content_of
from mcpgreen.project.project import MAX_TEXT_BYTES, Project
from mcpgreen.settings.settings import Settings
from mcpgreen.text import jsontext
from mcpgreen.text.uris import file_uri, is_within

ROOTS_FILE = os.path.join("config", "roots.json")
EXAMPLE = '{"roots": [{"path": "./data", "name": "Data"}]}'


class Root(NamedTuple):
    """One file or directory: its real path, and a name for people, if it is not that of the file."""

    path: str
    name: str | None = None


class Roots:
    """Some roots, each path once, as paths and as variables for scripts. `are_chosen`: the operator named them; the
    roots of the project are only for clients that name none."""

    def __init__(self, roots: Iterable[Root], *, are_chosen: bool = True) -> None:
        self.are_chosen = are_chosen
        distinct: dict[str, str] = {}
        for path, name in roots:
            distinct.setdefault(path, os.path.basename(path) if name is None else name)
        self._names = distinct
        self.paths = list(distinct)

    @cached_property
    def variables(self) -> dict[str, str]:
        listed = [{"uri": file_uri(path), "name": name, "path": path} for path, name in self._names.items()]
        return {
            "MCP_ROOTS_JSON": jsontext.dumps(listed).decode("ascii"),
            "MCP_ROOTS_PATHS": "\n".join(self.paths),
            "MCP_ROOTS_COUNT": str(len(self.paths)),
        }

    def __repr__(self) -> str:
        return f"<Roots {', '.join(self.paths)}>"


def configured_roots(
    project_root: str, configured: str, *, warn: Callable[[str], None] = lambda text: journal.warning("%s", text)
) -> Roots:
    """Return the roots for a client that names none: the setting, else `config/roots.json`, else the project.

    Raises ProjectError if one of the colon-separated `configured` paths is not usable. In the file, it is skipped.
    """
    named = []
    for path in filter(None, configured.split(":")):
        try:
            named.append(Root(_resolved(path, project_root)))
        except ValueError as error:
            raise ProjectError(path, f"this cannot be a root: {error}; fix MCPGREEN_ROOTS or --roots") from error
    if named:
        return Roots(named)
    try:
        from_file = list(roots_in_file(project_root, warn=warn))
    except ProjectError as error:
        warn(f"{error.path} is ignored: {error.reason}")
        from_file = []
    return Roots(from_file or [Root(project_root)], are_chosen=False)


def real_path(path: str) -> str:
    """Return the path without symbolic links. Raises ValueError, with the reason, if it cannot be a root."""
    real = os.path.realpath(path)
    # MCP_ROOTS_PATHS has one path per line: a newline would turn one root into two.
    if "\n" in real:
        raise ValueError("its path contains a newline")
    if is_kernel_path(real):
        raise ValueError("a path in /proc, /sys or /dev cannot be a root")
    if not os.access(real, os.R_OK):
        raise ValueError("it does not exist or cannot be read")
    return real


def roots_in_file(project_root: str, *, warn: Callable[[str], None]) -> Iterator[Root]:
    """Yield the roots in `config/roots.json`. Raises ProjectError if the file cannot be used."""
    file = os.path.join(project_root, ROOTS_FILE)
    if not os.path.lexists(file):
        return
    try:
        fields = jsontext.loads(content_of(file, MAX_TEXT_BYTES).decode("utf-8", "replace").removeprefix("\ufeff"))
    except ValueError as error:
        raise ProjectError(file, f"not valid JSON: {error}") from error
    if not isinstance(fields, dict):
        raise ProjectError(file, f"must be an object, such as {EXAMPLE}")
    entries = fields.get("roots")
    if not isinstance(entries, list):
        raise ProjectError(file, f"roots must be a list, as in {EXAMPLE}")
    for entry in entries:
        path = entry.get("path") if isinstance(entry, dict) else None
        try:
            if not isinstance(path, str) or not path:
                raise ValueError("its path must be a string")
            real = _resolved(path, project_root)
        except ValueError as error:
            warn(f"{file}: root {path!r} is skipped: {error}")
            continue
        name = entry.get("name")
        yield Root(real, name if isinstance(name, str) else None)


def _resolved(path: str, project_root: str) -> str:
    return real_path(os.path.join(project_root, os.path.expanduser(path)))


def resource_directories(project: Project, settings: Settings) -> list[str]:
    """Return the directories whose files may be read as resources besides the roots: resources/, the operator's."""
    refused = refused_directories(project, settings)
    return [project.resources_dir, *(path for path in _named_for_resources(project, settings) if path not in refused)]


def refused_directories(project: Project, settings: Settings) -> list[str]:
    """Return the directories of the operator from which no resource is served."""
    named = _named_for_resources(project, settings)
    return [path for path in named if is_kernel_path(path) and not is_within(path, project.root)]


def _named_for_resources(project: Project, settings: Settings) -> list[str]:
    named = [path for path in settings.resources_roots.split(":") if path]
    return [os.path.realpath(os.path.join(project.root, os.path.expanduser(path))) for path in named]
