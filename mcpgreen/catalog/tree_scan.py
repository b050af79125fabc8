"""Walk through a project's directories: list and stat the files, without reading them.

A check for changes costs no more than this. `tools`, `resources` and `prompts` read the files; `catalog` decides when
to look. Hidden files and directories are ignored.

Rule: one odd file costs a warning, never the walk. Raise only an error that makes the whole walk unreliable: an OSError
other than a missing permission or a vanished file.

Rule: during `Pace.step` other greenlets run. Work on data that no other greenlet has, and publish it last.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from mcpgreen.errors import ProjectError
from mcpgreen.project.project import Project
from mcpgreen.project.unmarked import META_SUFFIXES
from mcpgreen.text.uris import is_within

Thing = TypeVar("Thing")
# By path, the stats of a file and of its description, and what was read from it: only changed files are read again.
# The others, even if there are thousands, are not.
Memory = dict[str, tuple[object, Any]]

MAX_DEPTH = 32
MAX_DIRECTORIES = 5000
# Two writes within one tick of the file system's clock leave the same time stamp; a tick is at most 10 ms on Linux.
SETTLING_NS = 50_000_000
STRETCH_SECS = 0.005
NO_PERMISSION = "no permission to read the directory"


class Pace:
    """Lets other greenlets run during long work: `turn`, if there is one, is called every few milliseconds."""

    def __init__(self, turn: Callable[[], object] | None = None) -> None:
        self._turn = turn
        self._began_at = time.monotonic()

    def step(self) -> None:
        """Call this after each small piece of work."""
        if self._turn is not None and time.monotonic() - self._began_at >= STRETCH_SECS:
            self._turn()
            self._began_at = time.monotonic()

    def over(self, things: Iterable[Thing]) -> Iterator[Thing]:
        """Yield the things, with a step after each."""
        for thing in things:
            yield thing
            self.step()


UNPACED = Pace()


class Loss(str):
    """A warning about an item that is therefore not listed. URIs that it `hides` must not be read."""

    hides: Sequence[str] = ()


class Directory(NamedTuple):
    path: str
    files: dict[str, os.stat_result]
    unusable: frozenset[str] = frozenset()  # names of descriptions that are not files of this tree: links out, folders


class Tree(NamedTuple):
    """The result of a walk. Equal fingerprints mean equal files, provided that the earlier tree was settled."""

    directories: list[Directory]
    fingerprint: object
    is_settled: bool
    warnings: list[str]
    links_out: dict[str, int]  # links to files elsewhere, which are not served, and the modes of those files
    pace: Pace  # for reading the files
    settled_ns: int  # a file that was changed later may change again without a new time
    memory: Memory = {}  # what is read from the files now
    earlier: Memory = {}  # what an earlier scan read

    def below(self, directory: str) -> Tree:
        """Return the part of the tree below one of the directories that were walked."""
        links_out = {path: mode for path, mode in self.links_out.items() if is_within(path, directory)}
        directories = [each for each in self.directories if is_within(each.path, directory)]
        return self._replace(directories=directories, links_out=links_out)

    def warnings_with_links(self, project: Project, home: str) -> list[str]:
        """Return the warnings of the walk, and one for each link that leads out of the directory `home`."""
        skipped = (
            f"{project.shown(path)}: skipped because it links to a file outside {home}/" for path in self.links_out
        )
        return [*self.warnings, *map(Loss, skipped)]


def survey(
    project: Project,
    bases: Sequence[str],
    *,
    only_below: str | None = None,
    pace: Pace = UNPACED,
    without: Sequence[str] = (),
) -> Tree:
    """List and stat the files below these directories, or below the subdirectory `only_below` of the first. Names in
    `without` are ignored."""
    walk = _Walk(project, pace, without)
    started_ns = time.time_ns()
    for base in bases if only_below is None else [subdirectory(project, bases[0], only_below)]:
        walk.through(base, home=bases[0] if only_below is not None else base)
    listed = (
        (each.path, each.unusable, *((name, stamp_of(status)) for name, status in each.files.items()))
        for each in walk.directories
    )
    changes_ns = (status.st_ctime_ns for each in walk.directories for status in each.files.values())
    return Tree(
        walk.directories,
        (*listed, *walk.warnings, *walk.links_out),
        max(changes_ns, default=0) < started_ns - SETTLING_NS,
        walk.warnings,
        walk.links_out,
        pace,
        started_ns - SETTLING_NS,
        memory={},
    )


def stamp_of(status: os.stat_result) -> tuple[int, ...]:
    """Return a value that changes when the file does."""
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_mode, status.st_ino


def subdirectory(project: Project, base: str, path: str) -> str:
    """Find a directory below `base`; `path` is absolute, or relative to it or to the project. Raises ProjectError."""
    for start in (base, project.root):
        place = os.path.realpath(os.path.join(start, path))
        if os.path.isdir(place) and is_within(place, base):
            return place
    raise ProjectError(path, f"not a directory below {project.shown(base)}/")


def nearest(place: str) -> str:
    """Return the directory itself if it exists, else the nearest existing directory above it."""
    while not os.path.isdir(place) and place != os.path.dirname(place):
        place = os.path.dirname(place)
    return place


class _Walk:
    def __init__(self, project: Project, pace: Pace, without: Sequence[str]) -> None:
        self.directories: list[Directory] = []
        self.warnings: list[str] = []
        self.links_out: dict[str, int] = {}
        self._project = project
        self._pace = pace
        self._without = without

    def through(self, start: str, *, home: str) -> None:
        """Walk from `start` downwards. Links may lead to files below `home`."""
        pending = [(start, 0)]
        while pending:
            path, depth = pending.pop()
            self._pace.step()
            if depth > MAX_DEPTH or len(self.directories) >= MAX_DIRECTORIES:  # each would have to be watched
                limits = f"more than {MAX_DEPTH} levels or {MAX_DIRECTORIES} folders"
                warning = Loss(f"{self._project.shown(start)}: it has {limits}; the others are left out")
                self.warnings += [warning] if warning not in self.warnings else []
                continue
            files: dict[str, os.stat_result] = {}
            unusable: set[str] = set()
            try:
                entries = os.scandir(path)
            except (FileNotFoundError, NotADirectoryError) as error:  # vanished meanwhile, or it was never there
                if path == start and isinstance(error, NotADirectoryError):
                    self.warnings.append(Loss(f"{self._project.shown(path)}: not a folder"))
                continue
            except PermissionError:
                self.warnings.append(f"{self._project.shown(path)}: {NO_PERMISSION}")
                continue
            with entries:
                for entry in self._pace.over(entries):
                    if entry.name[0] == "." or entry.name in self._without or not self._accept_name(entry.path):
                        continue
                    status = None
                    if entry.is_dir(follow_symlinks=False):
                        pending.append((entry.path, depth + 1))
                    else:
                        status = self._status_of(entry, home)
                    if status is not None:
                        files[entry.name] = status
                    elif entry.name.endswith(META_SUFFIXES):
                        unusable.add(entry.name)
            self.directories.append(Directory(path, files, frozenset(unusable)))

    def _accept_name(self, path: str) -> bool:
        """Return False, and warn, for a name that cannot be part of a line of UTF-8, as in the registry and the log."""
        if path.isprintable():
            return True
        name = os.path.basename(path)
        is_utf8 = name.encode("utf-8", "replace").decode("utf-8") == name
        if is_utf8 and "\n" not in name and "\r" not in name:
            return True
        problem = "contains a line break" if is_utf8 else "is not UTF-8"
        self.warnings.append(Loss(f"{self._project.shown(path)!a}: skipped because its name {problem}"))
        return False

    def _status_of(self, entry: os.DirEntry[str], home: str) -> os.stat_result | None:
        """Return the stat of a regular file, else None: opening a FIFO or a device would block the server. A link may
        lead to another file below `home`; other places may belong to someone else."""
        is_link = entry.is_symlink()
        try:
            status = entry.stat()
        except OSError as error:
            # Removed since the directory was listed, not readable for us, or a link to nothing or to itself.
            if is_link or isinstance(error, (FileNotFoundError, PermissionError)):
                return None
            raise
        if is_link and stat.S_ISDIR(status.st_mode):
            self.warnings.append(f"{self._project.shown(entry.path)}: a symbolic link to a directory is not followed")
        is_file = stat.S_ISREG(status.st_mode)
        if is_file and (not is_link or is_within(os.path.realpath(entry.path), home)):
            return status
        if is_file:
            self.links_out[entry.path] = status.st_mode
        return None
