"""Files of this machine as resources: opened without blocking, and only inside the allowed directories.

The path is freed of symbolic links and judged, and what is left of it is walked step by step from the allowed
directory, following no link. So a link that ends inside is followed, and one that is put in between leads nowhere. A
hard link cannot be told from the file itself: what is linked into an allowed directory is allowed. The kernel's own
files (`kernel_files`) are outside of every directory.

`Private` is what of a project nobody is served, whoever asks: clients, scripts that embed files, descriptions that name
them.

Rule: outside, what exists and what does not must look the same. Whatever is asked of the system after the judgement
is asked relative to an open directory inside.
"""

from __future__ import annotations

import errno
import os
import stat

from mcpgreen.errors import McpgreenError
from mcpgreen.files.kernel_files import holds, lies_in_kernel
from mcpgreen.files.regular_files import CAREFULLY
from mcpgreen.text.uris import is_within

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

CHUNK_BYTES = 65_536
SIZES_IN_KERNEL = (0, 4096)  # what the kernel says of its files, whatever is in them
# To pass through a directory one need not be allowed to list it, where the system knows the difference.
DIRECTORY_FLAGS = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# These say something about us or the machine, not about the file.
OUR_TROUBLES = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO)


class FileFailure(McpgreenError):
    """A file that is not served; its text says why."""


class OutsideRoots(FileFailure):
    """It lies outside the allowed directories. More is nobody's business."""

    def __init__(self) -> None:
        super().__init__("Resource outside allowed roots")


class NotFound(FileFailure):
    """There is no such file, or nothing that can be read as one."""


class TooLarge(FileFailure):
    """It has more bytes than the caller wants to see."""

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(f"Resource content exceeds {limit_bytes} bytes")


class Private:
    """What is never served, whatever contains it: what is hidden in the project at `root`, and whole directories, such
    as that of the server's settings. All are real paths."""

    def __init__(self, root: str, *directories: str) -> None:
        self.root = root
        self.directories = directories

    def covers(self, real_path: str) -> bool:
        is_hidden = is_within(real_path, self.root) and "/." in real_path[len(self.root.rstrip("/")) :]
        return is_hidden or any(is_within(real_path, each) for each in self.directories)


class OpenFile:
    """A regular file, open for reading. Leaving `with` closes it."""

    def __init__(self, fd: int, size: int, path: str) -> None:
        self._file = open(fd, "rb", buffering=0)  # noqa: SIM115 - `close` closes it
        self.size = size
        self.path = path

    def __enter__(self) -> OpenFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._file.close()

    def chunks(self, limit_bytes: int) -> Iterator[bytes]:
        """The content, from the beginning each time. Raises TooLarge: at once if the file is too large, later if it
        grows while it is read."""
        if self.size > limit_bytes:
            raise TooLarge(limit_bytes)
        return self._read(limit_bytes)

    def _read(self, limit_bytes: int) -> Iterator[bytes]:
        rest_bytes = limit_bytes
        try:
            self._file.seek(0)
            # One byte more than allowed is asked for, so that a file without a size (/proc) has its limit too.
            while chunk := self._file.read(min(CHUNK_BYTES, rest_bytes + 1)):
                rest_bytes -= len(chunk)
                if rest_bytes < 0:
                    raise TooLarge(limit_bytes)
                yield chunk
        except OSError as error:
            raise FileFailure(f"The file cannot be read: {error.strerror}") from None


def open_file(path: str, *, allowed: Sequence[str], private: Private) -> OpenFile:
    """Open an absolute path. The directories are real paths. What is private counts as outside. Raises FileFailure."""
    try:
        real_path = os.path.realpath(path)
    except ValueError:  # a NUL or a lone surrogate
        raise NotFound("No file can have this name") from None
    except OSError:  # it changes while we look, so nobody knows where it leads
        raise OutsideRoots from None
    directory = next((each for each in allowed if holds(each, real_path)), None)
    if directory is None or private.covers(real_path):
        raise OutsideRoots
    try:
        fd = _descriptor_below(directory, real_path)
    except OSError as error:
        raise _failure(error) from None
    status = os.fstat(fd)
    try:
        _require_regular(status)
        if status.st_size in SIZES_IN_KERNEL and lies_in_kernel(status.st_dev):
            raise OutsideRoots
    except FileFailure:
        os.close(fd)
        raise
    return OpenFile(fd, status.st_size, real_path)


def _descriptor_below(start: str, path: str) -> int:
    """Open a path without following any symbolic link from `start` on, which is the path itself or lies above it."""
    parent, name = os.path.split(path)
    start = parent if start == path else start
    directory_fd = os.open(start, DIRECTORY_FLAGS)
    try:
        for part in filter(None, parent[len(start) :].split("/")):
            below_fd = os.open(part, DIRECTORY_FLAGS, dir_fd=directory_fd)
            os.close(directory_fd)
            directory_fd = below_fd
        # Looked at first, because opening alone can have effects: on a device, or on who waits to write to a FIFO.
        _require_regular(os.stat(name, dir_fd=directory_fd, follow_symlinks=False))
        return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | CAREFULLY, dir_fd=directory_fd)
    finally:
        os.close(directory_fd)


def _require_regular(status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise NotFound("This is a directory, not a file")
    if not stat.S_ISREG(status.st_mode):
        raise NotFound("This is not a regular file")


def _failure(error: OSError) -> FileFailure:
    if error.errno in OUR_TROUBLES:
        return FileFailure(f"The file cannot be opened: {error.strerror}")
    if error.errno in (errno.EACCES, errno.EPERM):
        return FileFailure("The server may not read this file")
    return NotFound("Resource not found")
