"""Write several new files or none, fill in templates, and check new names.

`write` never overwrites a file, not even one that appears while we write. A script becomes executable at the end.

Rule: only the user may write to what will be executed, whatever the umask says. The server refuses everything else.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

from mcpgreen import PACKAGE_DIR
from mcpgreen.errors import ProjectError
from mcpgreen.files.regular_files import content_of, replacing
from mcpgreen.files.writers import WRITABLE_BY_OTHERS

# Clients put names of servers and tools together, and models accept no more than this.
SAFE_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
MAX_FILE_BYTES = 4 << 20
SCHEME = re.compile(r"[a-z][a-z0-9-]{0,63}")


class Draft(dict[str, str]):
    """Content by absolute path. A file that begins with #! becomes executable. A path that ends with / is a folder."""

    def on_disk(self) -> list[str]:
        """Return what the files contain now; nothing if one of them is missing or cannot be read."""
        try:
            return [content_of(path, MAX_FILE_BYTES).decode() for path in self]
        except (ProjectError, ValueError):
            return []

    def replace(self) -> None:
        """Write them in place of files that exist. Raises ProjectError."""
        for path, content in self.items():
            try:
                with replacing(path, mode=os.stat(path).st_mode & 0o777) as file:
                    file.write(content.encode())
            except OSError as error:
                raise ProjectError(path, f"cannot write to it: {error.strerror}") from error

    def write(self) -> None:
        """Raises ProjectError if a file exists or cannot be written; then none of them is there."""
        for path in self:
            if os.path.lexists(path):
                reason = "it already exists, and was not changed; choose another name, or move it out of the way"
                raise ProjectError(path, reason)
        umask = os.umask(0)
        os.umask(umask)
        made: list[str] = []  # noted before it is made, so that an interrupt leaves nothing
        try:
            for path, content in self.items():
                _make_directories(os.path.dirname(path), made)
                if path.endswith("/"):
                    continue
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
