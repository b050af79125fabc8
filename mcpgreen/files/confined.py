"""Local files as resources: opened without blocking, and only inside the allowed directories.

`open_file` first resolves the symbolic links of a path and checks the result. Then it walks that path from the allowed
directory, step by step, and follows no further link. So a link that ends inside is followed, and a later link leads
nowhere. A hard link cannot be distinguished from the file itself: a file that is linked into an allowed directory is
allowed. The kernel's own files (/proc, /sys and /dev) are outside of every directory, and none of these is a root. A
project that lies there as a whole, in a memory disk such as /dev/shm, may serve its own files.

`Private` is the part of a project that is never served: not to clients, not to scripts that embed files, not for
descriptions that name a file.

Rule: outside, existing and missing files must look the same. After the check, the system is only asked about
names relative to an open directory inside.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence

from mcpgreen.errors import McpgreenError
from mcpgreen.files.regular_files import CAREFULLY
from mcpgreen.text.uris import is_within

CHUNK_BYTES = 65_536
# Files that the kernel makes up hold the secrets of processes, ours among them.
KERNEL_DIRECTORIES = ("/proc", "/sys", "/dev")
# Also where they are mounted a second time: containers often have the /proc of their host in another place.
KERNEL_FILESYSTEMS = frozenset(
    ("proc", "sysfs", "devtmpfs", "cgroup", "cgroup2", "debugfs", "tracefs", "securityfs", "configfs", "pstore", "bpf")
)
SIZES_IN_KERNEL = (0, 4096)  # which the kernel reports for its files, whatever is in them
# Where the system has O_PATH, a directory can be passed through without the right to list it.
DIRECTORY_FLAGS = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Errors of the server or the machine, not of the file.
OUR_TROUBLES = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO)


class FileFailure(McpgreenError):
    """The file is not served; the text says why."""


class OutsideRoots(FileFailure):
    """The file lies outside the allowed directories. Clients learn no more than that."""

    def __init__(self) -> None:
        super().__init__("Resource outside allowed roots")


class NotFound(FileFailure):
    """There is no such file, or it is not a regular file."""


class TooLarge(FileFailure):
    """The file has more bytes than the caller accepts."""

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(f"Resource content exceeds {limit_bytes} bytes")


class Private:
    """Files that are never served, even from an allowed directory: hidden ones in the project at `root`, and whole
    directories, such as that of the server's settings. All are real paths."""

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
        self.close = self._file.close
        self.size = size
        self.path = path

    def __enter__(self) -> OpenFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def chunks(self, limit_bytes: int) -> Iterator[bytes]:
        """Return the content, from the beginning at each call. Raises TooLarge: at once, or when the file grows."""
        if self.size > limit_bytes:
            raise TooLarge(limit_bytes)
        return self._read(limit_bytes)

    def _read(self, limit_bytes: int) -> Iterator[bytes]:
        rest_bytes = limit_bytes
        try:
            self._file.seek(0)
            # Read one byte more than allowed, so that the limit also holds for a file that grows.
            while chunk := self._file.read(min(CHUNK_BYTES, rest_bytes + 1)):
                rest_bytes -= len(chunk)
                if rest_bytes < 0:
                    raise TooLarge(limit_bytes)
                yield chunk
        except OSError as error:
            raise FileFailure(f"The file cannot be read: {error.strerror}") from None


def open_file(path: str, *, allowed: Sequence[str], private: Private) -> OpenFile:
    """Open an absolute path. `allowed` are real paths; private files count as outside. Raises FileFailure."""
    try:
        real_path = os.path.realpath(path)
    except ValueError:  # a NUL or a lone surrogate
        raise NotFound("No file can have this name") from None
    except OSError:  # it changes while we look at it, so it may lead anywhere
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
        # Check before opening, because opening alone can have effects: on a device, or on the writer of a FIFO.
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


def is_kernel_path(path: str) -> bool:
    """Tell whether an absolute path without links leads into /proc, /sys or /dev."""
    return any(is_within(path, directory) for directory in KERNEL_DIRECTORIES)


def holds(directory: str, path: str) -> bool:
    """Tell whether permission to read a directory covers this path. Both are absolute and free of symbolic links."""
    return is_within(path, directory) and (not is_kernel_path(path) or is_kernel_path(directory))


def lies_in_kernel(device: int) -> bool:
    """Tell whether the kernel makes up the files of a device (`st_dev`). False on systems without /proc."""
    number = b"%d:%d" % (os.major(device), os.minor(device))
    try:
        with open("/proc/self/mountinfo", "rb") as file:
            for line in file:
                about, _, mounted = line.partition(b" - ")
                if about.split(b" ", 3)[2] == number:
                    return mounted.split(b" ", 1)[0].decode("ascii", "replace") in KERNEL_FILESYSTEMS
    except OSError:
        return False
    return False
