"""Files that appear together, or not at all; and a file that is replaced as a whole.

Everything is written beside its place under a hidden name first, and then moved: whoever interrupts us, and whoever
looks meanwhile, finds nothing half-written. What exists is never overwritten, also if it came to exist a moment ago.

Rule: nobody but us may write to what will be executed, whatever the umask says. The server refuses anything else.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO, NamedTuple

from mcpgreen.errors import ProjectError
from mcpgreen.files.regular_files import new_file, unguessable

HIDDEN = ".mcpgreen-"  # how names begin until all is written; hidden, so that no server looks at them
WRITABLE_BY_OTHERS = 0o022


class _File(NamedTuple):
    content: str
    mode: int


class Draft:
    """What is to be written, by absolute path."""

    def __init__(self) -> None:
        self._files: dict[str, _File] = {}

    def add(self, path: str, content: str, *, is_executable: bool = False) -> None:
        self._files[path] = _File(content, 0o755 if is_executable else 0o644)

    def content_of(self, path: str) -> str:
        return self._files[path].content

    def replace(self, path: str, content: str) -> None:
        self._files[path] = self._files[path]._replace(content=content)

    @property
    def paths(self) -> list[str]:
        return list(self._files)

    def leave_out_existing(self) -> list[str]:
        """Do without the files that are there already. Their paths."""
        existing = [path for path in self._files if os.path.lexists(path)]
        for path in existing:
            del self._files[path]
        return existing

    def is_there(self) -> bool:
        """Whether all of it has been written before, and nothing was changed since."""
        try:
            for path, file in self._files.items():
                with open(path, encoding="utf-8", newline="") as stream:
                    if stream.read(len(file.content) + 1) != file.content:
                        return False
        except (OSError, ValueError):
            return False
        return True

    def write(self) -> None:
        """Raises ProjectError if one of the files exists, or cannot be written; then none of them is there."""
        for path in self._files:
            if os.path.lexists(path):
                raise ProjectError(
                    path, "this exists already and is left as it is; choose another name, or move it away"
                )
        units: dict[str, dict[str, _File]] = {}
        for path, file in self._files.items():
            units.setdefault(_topmost_missing(path), {})[path] = file
        hiding_places: list[str] = []
        try:
            _move_in([(_prepared(unit, files, hiding_places), unit) for unit, files in units.items()])
        except OSError as error:
            at = error.filename2 or error.filename or next(iter(units))
            hidden = next((place for place in hiding_places if at.startswith(place)), None)
            if hidden is not None:  # nobody knows that name
                at = os.path.dirname(hidden)
            raise ProjectError(at, f"it cannot be written to: {error.strerror}") from error
        finally:
            for place in hiding_places:
                shutil.rmtree(place, ignore_errors=True)


def file_mode(mode: int) -> int:
    """As the umask wants it, but never for others to write to."""
    umask = os.umask(0)
    os.umask(umask)
    return mode & ~umask & ~WRITABLE_BY_OTHERS


def _topmost_missing(path: str) -> str:
    """What has to be made for this path to exist: the file, or the first directory on the way to it."""
    parent = os.path.dirname(path)
    return path if os.path.lexists(parent) else _topmost_missing(parent)


def _prepared(unit: str, files: dict[str, _File], hiding_places: list[str]) -> str:
    """The unit as it will be, under a hidden name beside its place."""
    place = os.path.join(os.path.dirname(unit), HIDDEN + unguessable())
    hiding_places.append(place)  # before it is made: it has to go, whatever happens
    os.mkdir(place, 0o700)
    hidden = os.path.join(place, os.path.basename(unit))
    for path, file in files.items():
        target = hidden + path.removeprefix(unit)
        _make_directories(os.path.dirname(target), up_to=place)
        with open(target, "x", encoding="utf-8", newline="") as stream:
            stream.write(file.content)
        os.chmod(target, file_mode(file.mode))
    return hidden


def _make_directories(path: str, *, up_to: str) -> None:
    if path == up_to or os.path.isdir(path):
        return
    _make_directories(os.path.dirname(path), up_to=up_to)
    os.mkdir(path)
    os.chmod(path, file_mode(0o755))


def _move_in(moves: list[tuple[str, str]]) -> None:
    """All of them, or none: refused by the system where something is already."""
    try:
        for source, target in moves:
            if os.path.isdir(source):
                os.rename(source, target)  # not to a file, nor to a directory with something in it
            else:
                os.link(source, target)  # as `rename`, but not to anything
                os.unlink(source)
    except BaseException:
        for source, target in moves:
            _take_back(source, target)
        raise


def _take_back(source: str, target: str) -> None:
    with suppress(OSError):
        if not os.path.lexists(source):  # it has been moved
            shutil.rmtree(target) if os.path.isdir(target) else os.unlink(target)
        elif os.path.samefile(source, target):
            os.unlink(target)


@contextmanager
def replacing(path: str, *, mode: int) -> Iterator[BinaryIO]:
    """What is written here takes the place of a file once it is complete; whoever interrupts us loses nothing of it."""
    hidden = os.path.join(os.path.dirname(path), HIDDEN + unguessable())
    try:
        with open(new_file(hidden), "wb") as file:
            yield file
            os.fchmod(file.fileno(), mode)
        os.replace(hidden, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(hidden)
        raise
