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
    directories = [directory for _, directory in candidates(project, [], pace)]
    # What a build leaves behind is not served, and there may be a lot of it.
    tree = survey(project, directories, pace=pace, without=("node_modules",))
    return tree._replace(fingerprint=(*tree.fingerprint, *tree.links_out))


def candidates(project: Project, warnings: list[str], pace: Pace) -> Iterator[tuple[str, str]]:
    """Names and directories that may hold an app."""
    for name, path in _directories_in(project, project.tools_dir, [], pace):  # what is wrong with it is told elsewhere
        below = os.path.join(path, "ui")
        if _is_directory(project, below, warnings):
            yield name, below
        pace.step()
    yield from _directories_in(project, project.ui_dir, warnings, pace)


def candidates_named(name: str, project: Project) -> Iterator[tuple[str, str]]:
    """Those of one name."""
    if name.startswith(".") or not name.isprintable():
        return
    tool = os.path.join(project.tools_dir, name)
    for parent, path in ((tool, os.path.join(tool, "ui")), (project.ui_dir, os.path.join(project.ui_dir, name))):
        if _is_directory(project, parent, []) and _is_directory(project, path, []):
            yield name, path


def _directories_in(project: Project, parent: str, warnings: list[str], pace: Pace) -> Iterator[tuple[str, str]]:
    """By name. There may be many files beside them."""
    try:
        with os.scandir(parent) as entries:
            found = [entry for entry in pace.over(entries) if entry.is_symlink() or entry.is_dir(follow_symlinks=False)]
    except (FileNotFoundError, NotADirectoryError):
        return
    except PermissionError:
        warnings.append(f"{project.shown(parent)}: the directory may not be read")
        return
    for entry in sorted(found, key=lambda entry: entry.name):
        if entry.name.startswith(".") or not _is_directory(project, entry.path, warnings):
            continue
        if entry.name.isprintable():
            yield entry.name, entry.path
        else:
            shown = f"{project.shown(entry.path)!a}"
            warnings.append(Loss(f"{shown}: skipped, its name has characters that cannot be shown"))


def _is_directory(project: Project, path: str, warnings: list[str]) -> bool:
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return False
    if stat.S_ISLNK(mode) and os.path.isdir(path):
        warnings.append(f"{project.shown(path)}: a symbolic link to a directory is not followed")
    return stat.S_ISDIR(mode)
