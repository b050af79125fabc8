"""Write several new files or none, replace files atomically, fill in templates, and check new names.

`write` never overwrites a file, not even one that appears while we write. A script becomes executable at the end.

Rule: only the user may write to what will be executed, whatever the umask says. The server refuses everything else.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from mcpgreen import PACKAGE_DIR
from mcpgreen.errors import ProjectError
from mcpgreen.files.regular_files import content_of, new_file, unguessable
from mcpgreen.files.writers import WRITABLE_BY_OTHERS

HIDDEN = ".mcpgreen-"  # how a name begins until all is written; hidden, so that no server looks at it
# Clients put names of servers and tools together, and models accept no more than this.
SAFE_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
MAX_FILE_BYTES = 4 << 20
SCHEME = re.compile(r"[a-z][a-z0-9-]{0,63}")


class Draft(dict[str, str]):
    """The files to write: content by absolute path. A file that begins with #! becomes executable."""

    def on_disk(self) -> list[str]:
        """Return what the files contain now; nothing if one of them is missing or cannot be read."""
        try:
            return [content_of(path, MAX_FILE_BYTES).decode() for path in self]
        except (ProjectError, ValueError):
            return []

    def write(self, *, replaces: bool = False) -> None:
        """Raises ProjectError if a file exists (without `replaces`) or cannot be written; then no new one is there."""
        for path in () if replaces else self:
            if os.path.lexists(path):
                reason = "it already exists, and was not changed; choose another name, or move it away"
                raise ProjectError(path, reason)
        umask = os.umask(0)
        os.umask(umask)
        made: list[str] = []  # noted before it is made, so that an interrupt leaves nothing
        try:
            for path, content in self.items():
                if replaces:
                    with replacing(path, mode=os.stat(path).st_mode & 0o777) as file:
                        file.write(content.encode())
                    continue
                _make_directories(os.path.dirname(path), made)
                made.append(path)
                try:
                    with open(path, "x", encoding="utf-8", newline="") as stream:
                        stream.write(content)
                        mode = 0o755 if content.startswith("#!") else 0o644
                        os.fchmod(stream.fileno(), mode & ~umask & ~WRITABLE_BY_OTHERS)
                except FileExistsError:
                    made.remove(path)
                    raise
        except BaseException as error:
            for each in reversed(made):
                with suppress(OSError):
                    os.rmdir(each) if os.path.isdir(each) else os.unlink(each)
            if isinstance(error, OSError):
                raise ProjectError(error.filename or path, f"cannot write to it: {error.strerror}") from error
            raise


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


def filled(template: str, **values: str) -> str:
    """Return a file of `templates/` with the values in their places: `name` where it says @NAME@."""
    text = Path(PACKAGE_DIR, "templates", template).read_text(encoding="utf-8")
    for name, value in values.items():
        text = text.replace(f"@{name.upper()}@", value)
    return text


def require_name(name: str | None, what: str) -> str:
    if not name:
        raise ProjectError(what, f"the name is missing; write it after {what}")
    if not SAFE_NAME.fullmatch(name):
        raise ProjectError(name, "this is not a valid name; use 1 to 64 characters from A-Z a-z 0-9 _ -")
    return name


def require_scheme(name: str) -> str:
    """Return the name if URIs can begin with it, else raise ProjectError."""
    if not SCHEME.fullmatch(name):
        raise ProjectError(name, "this is not a valid URI scheme; use a-z, 0-9 and -, and begin with a letter")
    return name


def nearest_name(text: str) -> str:
    """Return a valid name that is as close as possible to some text."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-")[:64] or "mcp-server"


def title_of(name: str) -> str:
    words = re.sub(r"[_-]+", " ", name).strip()
    return words[:1].upper() + words[1:] or name
