"""The directories that are in scope for tools, those that the project and its operator name, and those that resources
may come from besides.

`Roots` is a value: what a client names later (`features.roots`) makes another one. Everything that depends on roots is
computed here, once, and not for each call.

Needed before the first answer when the operator names roots, hence plain classes and no `typing`.
"""

from __future__ import annotations

import os

from mcpgreen import journal
from mcpgreen.errors import ProjectError
from mcpgreen.files.kernel_files import is_kernel_path
from mcpgreen.project.project import Project, object_in
from mcpgreen.text import jsontext
from mcpgreen.text.uris import file_uri, is_within

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mcpgreen.settings.settings import Settings


class Root:
    """One file or directory: its real path, and a name for people."""

    __slots__ = ("name", "path")

    def __init__(self, path: str, name: str | None = None) -> None:
        self.path = path
        self.name = os.path.basename(path) if name is None else name


class Roots:
    """Some roots, each path once, as paths and as the variables that a script sees. `are_chosen`: whoever started the
    server named them; those of the project are only for clients that name none."""

    __slots__ = ("are_chosen", "paths", "variables")

    def __init__(self, roots: Iterable[Root], *, are_chosen: bool = True) -> None:
        self.are_chosen = are_chosen
        distinct: dict[str, str] = {}
        for root in roots:
            distinct.setdefault(root.path, root.name)
        listed = [{"uri": file_uri(path), "name": name, "path": path} for path, name in distinct.items()]
        self.paths = list(distinct)
        self.variables = {
            "MCP_ROOTS_JSON": jsontext.dumps(listed).decode("ascii"),
            "MCP_ROOTS_PATHS": "\n".join(distinct),
            "MCP_ROOTS_COUNT": str(len(distinct)),
        }

    def __repr__(self) -> str:
        return f"<Roots {', '.join(self.paths)}>"


def configured_roots(project_root: str, configured: str) -> Roots:
    """What is in scope when the client names nothing: the setting, else `config/roots.json`, else the project.

    Each of the colon-separated `configured` paths must be usable, or ProjectError is raised; entries of the file that
    are not are skipped.
    """
    named = [path for path in configured.split(":") if path]
    if named:
        return Roots([_strict(path, project_root) for path in named])
    from_file = list(_from_file(os.path.join(project_root, "config", "roots.json"), project_root))
    return Roots(from_file or [Root(project_root)], are_chosen=False)


def real_path(path: str) -> str:
    """An absolute path without symbolic links, if it can be a root; else ValueError says why not."""
    real = os.path.realpath(path)
    # A path is one line of MCP_ROOTS_PATHS: a newline in it would make two roots of one.
    if "\n" in real:
        raise ValueError("its path has a newline")
    if is_kernel_path(real):
        raise ValueError("what lies in /proc, /sys or /dev cannot be a root")
    if not os.access(real, os.R_OK):
        raise ValueError("it does not exist or cannot be read")
    return real


def _strict(path: str, project_root: str) -> Root:
    try:
        return Root(_resolved(path, project_root))
    except ValueError as error:
        raise ProjectError(path, f"this is no root: {error}; correct MCPGREEN_ROOTS or --roots") from error


def _from_file(file: str, project_root: str) -> Iterator[Root]:
    if not os.path.lexists(file):
        return
    entries = object_in(file).get("roots")
    if not isinstance(entries, list):
        journal.warning('%s is ignored: it must look like {"roots": [{"path": "./data", "name": "Data"}]}', file)
        return
    for entry in entries:
        path = entry.get("path") if isinstance(entry, dict) else None
        try:
            if not isinstance(path, str) or not path:
                raise ValueError("its path must be a text")
            real = _resolved(path, project_root)
        except ValueError as error:
            journal.warning("%s: root %r is skipped: %s", file, path, error)
            continue
        name = entry.get("name")
        yield Root(real, name if isinstance(name, str) else None)


def _resolved(path: str, project_root: str) -> str:
    return real_path(os.path.join(project_root, os.path.expanduser(path)))


def resource_directories(project: Project, settings: Settings) -> list[str]:
    """Below which files may be read as resources, whatever the roots: resources/, and what the operator names."""
    named = _named_for_resources(project, settings)
    return [project.resources_dir, *(path for path in named if not _is_refused(path, project))]


def refused_directories(project: Project, settings: Settings) -> list[str]:
    """Those that the operator names for resources in vain."""
    return [path for path in _named_for_resources(project, settings) if _is_refused(path, project)]


def _named_for_resources(project: Project, settings: Settings) -> list[str]:
    named = [path for path in settings.resources_roots.split(":") if path]
    return [os.path.realpath(os.path.join(project.root, os.path.expanduser(path))) for path in named]


def _is_refused(path: str, project: Project) -> bool:
    return is_kernel_path(path) and not is_within(path, project.root)
