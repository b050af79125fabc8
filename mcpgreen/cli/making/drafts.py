"""Write files together, or none of them; and replace a file as a whole.

An existing file is never overwritten, not even one that appears while we write. A script becomes executable at the end.

Rule: only the user may write to what will be executed, whatever the umask says. The server refuses everything else.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

from mcpgreen.errors import ProjectError
from mcpgreen.files.regular_files import new_file, unguessable

HIDDEN = ".mcpgreen-"  # how a name begins until all is written; hidden, so that no server looks at it
WRITABLE_BY_OTHERS = 0o022


class Draft:
    """The files to write: texts by absolute path. A text that begins with #! becomes executable."""

    def __init__(self) -> None:
        self.files: dict[str, str] = {}

    def add(self, path: str, content: str) -> None:
        self.files[path] = content

    def drop_existing(self) -> list[str]:
        """Leave out the files that exist already, and return their paths."""
        existing = [path for path in self.files if os.path.lexists(path)]
        for path in existing:
            del self.files[path]
        return existing

    def is_written(self) -> bool:
        """Whether all files exist with exactly these contents."""
        try:
            for path, content in self.files.items():
                with open(path, encoding="utf-8", newline="") as stream:
                    if stream.read(len(content) + 1) != content:
                        return False
        except (OSError, ValueError):
            return False
        return True

    def write(self) -> None:
        """Raises ProjectError if a file exists or cannot be written; then none of them is there."""
        for path in self.files:
            if os.path.lexists(path):
                raise ProjectError(
                    path, "this exists already and is left as it is; choose another name, or move it away"
                )
        made: list[str] = []  # noted before it is made, so that an interrupt leaves nothing
        try:
            for path, content in self.files.items():
                _make_directories(os.path.dirname(path), made)
                made.append(path)
                try:
                    with open(path, "x", encoding="utf-8", newline="") as stream:
                        stream.write(content)
                        os.fchmod(stream.fileno(), _allowed_mode(0o755 if content.startswith("#!") else 0o644))
                except FileExistsError:
                    made.remove(path)
                    raise
        except BaseException as error:
            for each in reversed(made):
                with suppress(OSError):
                    os.rmdir(each) if os.path.isdir(each) else os.unlink(each)
            if isinstance(error, OSError):
                raise ProjectError(error.filename or path, f"it cannot be written to: {error.strerror}") from error
            raise


def _allowed_mode(mode: int) -> int:
    """The mode without the bits that the umask forbids, and never writable by others."""
    umask = os.umask(0)
    os.umask(umask)
    return mode & ~umask & ~WRITABLE_BY_OTHERS


def _make_directories(path: str, made: list[str]) -> None:
    if os.path.lexists(path):
        return
    _make_directories(os.path.dirname(path), made)
    made.append(path)
    os.mkdir(path, 0o755)


@contextmanager
def replacing(path: str, *, mode: int) -> Iterator[BinaryIO]:
    """Open a file that replaces `path` once it is complete. An error or an interrupt leaves `path` as it was."""
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
