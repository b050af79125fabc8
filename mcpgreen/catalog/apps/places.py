"""Where the pages of a project may be, looked at without reading any of them.

Apart from `resources`, because a look for changes needs no more than this, and may come before the first list.
"""

from __future__ import annotations

import os
import stat

from mcpgreen.catalog.items import Loss
from mcpgreen.catalog.pace import UNPACED, Pace
from mcpgreen.catalog.tree_scan import Tree, survey

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcpgreen.project.project import Project


def look_at_apps(project: Project, pace: Pace = UNPACED) -> Tree:
    """Its fingerprint changes whenever a file of an app does. Stats only; reads nothing."""
    directories = [directory for _, directory in candidates(project, [])]
    # What a build leaves behind is not served, and there may be a lot of it.
    tree = survey(project, directories, pace=pace, without=("node_modules",))
    return tree._replace(fingerprint=(*tree.fingerprint, *tree.links_out))


def candidates(project: Project, warnings: list[str]) -> Iterator[tuple[str, str]]:
    """Names and directories that may hold an app."""
    for name, path in _directories_in(project, project.tools_dir, []):  # what is wrong with tools/ is told elsewhere
        below = os.path.join(path, "ui")
        if _is_directory(project, below, warnings):
            yield name, below
    yield from _directories_in(project, project.ui_dir, warnings)


def _directories_in(project: Project, parent: str, warnings: list[str]) -> list[tuple[str, str]]:
    try:
        names = sorted(os.listdir(parent))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except PermissionError:
        warnings.append(f"{project.shown(parent)}: the directory may not be read")
        return []
    found = []
    for name in names:
        path = os.path.join(parent, name)
        if name.startswith(".") or not _is_directory(project, path, warnings):
            continue
        if name.isprintable():
            found.append((name, path))
        else:
            warnings.append(Loss(f"{project.shown(path)!a}: skipped, its name has characters that cannot be shown"))
    return found


def _is_directory(project: Project, path: str, warnings: list[str]) -> bool:
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return False
    if stat.S_ISLNK(mode) and os.path.isdir(path):
        warnings.append(f"{project.shown(path)}: a symbolic link to a directory is not followed")
    return stat.S_ISDIR(mode)
