"""One walk that looks: list and stat what lies below some directories of a project. Reads no file.

It is all that a check for changes costs. What the files mean is up to `tools`, `resources` and `prompts`; when to look
is up to `catalog`. Hidden files and directories do not exist for a project.

Rule: one odd file costs a warning, never the walk. Only what makes the walk as a whole unreliable (OSError other than a
missing permission or a vanished file) may be raised.
"""

from __future__ import annotations

import os
import stat
import time

from mcpgreen.catalog.items import Loss
from mcpgreen.catalog.pace import UNPACED, Pace
from mcpgreen.errors import ProjectError
from mcpgreen.text.records import NamedTuple
from mcpgreen.text.uris import is_within

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from mcpgreen.project.project import Project

# Two writes within one tick of the file system's clock leave the same time stamp; a tick is at most 10 ms on Linux.
MAX_DEPTH = 32
MAX_DIRECTORIES = 5000
SETTLING_NS = 50_000_000


class Directory(NamedTuple):
    path: str
    files: dict[str, os.stat_result]


class Tree(NamedTuple):
    """What a walk saw. Equal fingerprints mean equal files, provided that the earlier tree was settled."""

    directories: list[Directory]
    fingerprint: tuple[Any, ...]
    is_settled: bool
    warnings: list[str]
    links_out: dict[str, int]  # links to files elsewhere, which are not served, and the modes of those files
    pace: Pace = UNPACED  # for those who read what the walk saw
    age_ns: int = 0  # how long before the walk the last of the files was changed

    def warnings_with_links(self, project: Project, home: str) -> list[str]:
        """What was odd about the walk, and each link that leads out of `home`, as people call it."""
        skipped = (f"{project.shown(path)}: skipped, it links to a file outside {home}/" for path in self.links_out)
        return [*self.warnings, *map(Loss, skipped)]

    def below(self, base: str) -> Tree:
        """Only the directories of the walk that lie in this one, itself included."""
        return self._replace(directories=[each for each in self.directories if is_within(each.path, base)])


def survey(
    project: Project,
    bases: Sequence[str],
    *,
    only_below: str | None = None,
    pace: Pace = UNPACED,
    without: Sequence[str] = (),
) -> Tree:
    """List and stat what lies below these directories, or below the one subdirectory `only_below` of the first, apart
    from what is called as one of `without`."""
    walk = _Walk(project, pace, without)
    for base in bases if only_below is None else [subdirectory(project, bases[0], only_below)]:
        walk.through(base, home=bases[0] if only_below is not None else base)
    return walk.tree()


def subdirectory(project: Project, base: str, path: str) -> str:
    """A directory below `base`, given absolute, relative to it or relative to the project. Raises ProjectError."""
    for start in (base, project.root):
        place = os.path.realpath(os.path.join(start, path))
        if os.path.isdir(place) and is_within(place, base):
            return place
    raise ProjectError(path, f"not a directory below {project.shown(base)}/")


def nearest(place: str) -> str:
    """The directory itself, or where it would have to appear."""
    while not os.path.isdir(place) and place != os.path.dirname(place):
        place = os.path.dirname(place)
    return place


class _Walk:
    def __init__(self, project: Project, pace: Pace, without: Sequence[str]) -> None:
        self._project = project
        self._pace = pace
        self._without = without
        self._directories: list[Directory] = []
        self._fingerprint: list[Any] = []
        self._warnings: list[str] = []
        self._links_out: dict[str, int] = {}
        self._newest_ns = 0
        self._started_ns = time.time_ns()

    def through(self, start: str, *, home: str) -> None:
        """Links may lead to files below `home`."""
        pending = [(start, 0)]
        while pending:
            path, depth = pending.pop()
            self._pace.step()
            if depth > MAX_DEPTH or len(self._directories) >= MAX_DIRECTORIES:
                self._leave_out(start)
                continue
            files: dict[str, os.stat_result] = {}
            try:
                entries = os.scandir(path)
            except (FileNotFoundError, NotADirectoryError):
                continue  # vanished meanwhile, or it was never there
            except PermissionError:
                self._warnings.append(f"{self._project.shown(path)}: the directory may not be read")
                continue
            with entries:
                for entry in self._pace.over(entries):
                    if entry.name[0] == "." or entry.name in self._without or not self._is_utterable(entry.path):
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        pending.append((entry.path, depth + 1))
                        continue
                    status = self._status_of(entry, home)
                    self._fingerprint.append(entry.name)
                    if status is not None:
                        files[entry.name] = status
                        if status.st_ctime_ns > self._newest_ns:
                            self._newest_ns = status.st_ctime_ns
                        self._fingerprint += (status.st_mtime_ns, status.st_ctime_ns)
                        self._fingerprint += (status.st_size, status.st_mode, status.st_ino)
            self._directories.append(Directory(path, files))
            self._fingerprint.append(path)

    def _leave_out(self, start: str) -> None:
        """Once: what is too deep or too many is not worth looking at, and each directory has to be watched."""
        limits = f"more than {MAX_DEPTH} levels or {MAX_DIRECTORIES} folders"
        warning = Loss(f"{self._project.shown(start)}: it has {limits}; those beyond are left out")
        if warning not in self._warnings:
            self._warnings.append(warning)

    def tree(self) -> Tree:
        age_ns = self._started_ns - self._newest_ns
        fingerprint = tuple(self._fingerprint)
        return Tree(
            self._directories,
            fingerprint,
            age_ns > SETTLING_NS,
            self._warnings,
            self._links_out,
            self._pace,
            age_ns,
        )

    def _is_utterable(self, path: str) -> bool:
        """Registry, environment and log are lines of UTF-8; a name that breaks them cannot be served."""
        if path.isprintable():
            return True
        name = os.path.basename(path)
        is_utf8 = name.encode("utf-8", "replace").decode("utf-8") == name
        if is_utf8 and "\n" not in name and "\r" not in name:
            return True
        problem = "contains a line break" if is_utf8 else "is not UTF-8"
        self._warnings.append(Loss(f"{self._project.shown(path)!a}: skipped, its name {problem}"))
        return False

    def _status_of(self, entry: os.DirEntry[str], home: str) -> os.stat_result | None:
        """Of a regular file, else None: opening a FIFO or a device while scanning would stop the server. A link may
        name another file of the same home; elsewhere the owner of the project does not decide."""
        is_link = entry.is_symlink()
        try:
            status = entry.stat()
        except OSError as error:
            # Removed since the directory was listed, or none of our business; or a link to nothing, or to itself.
            if is_link or isinstance(error, (FileNotFoundError, PermissionError)):
                return None
            raise
        if is_link and stat.S_ISDIR(status.st_mode):
            self._warnings.append(f"{self._project.shown(entry.path)}: a symbolic link to a directory is not followed")
        if not stat.S_ISREG(status.st_mode):
            return None
        if not is_link or is_within(os.path.realpath(entry.path), home):
            return status
        self._links_out[entry.path] = status.st_mode
        return None
