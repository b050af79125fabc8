"""Where the servers of a user offer their events: a socket for each, `PID.sock`, in a directory of the user's alone.

A server and a viewer may have different environments, as when an editor has started the server. So a viewer looks in
all places where a server could have put its socket.

Rule: neither side trusts a place, or a process at the other end, that belongs to another user.
"""

from __future__ import annotations

import _socket  # `socket` itself takes milliseconds to import
import errno
import os
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from mcpgreen.files.regular_files import private_directory

NAME = "mcpgreen"
SUFFIX = ".sock"
TRIES = 3
MAX_ANCESTORS = 64


def directories(environ: Mapping[str, str]) -> Iterator[str]:
    """Yield the directories where sockets may be, the best one first."""
    user = os.geteuid()
    for runtime in (environ.get("XDG_RUNTIME_DIR", ""), f"/run/user/{user}"):
        if runtime.startswith("/") and _is_private(runtime):
            yield os.path.join(runtime, NAME)
    for temporary in (environ.get("TMPDIR", ""), "/tmp"):
        if temporary.startswith("/") and os.path.isdir(temporary):
            yield os.path.join(temporary, f"{NAME}-{user}")


def bind(listener: _socket.socket, environ: Mapping[str, str]) -> str:
    """Bind the socket of this process and return its path. Raises OSError if no directory will do."""
    for directory in directories(environ):
        path = os.path.join(directory, f"{os.getpid()}{SUFFIX}")
        for _ in range(TRIES):  # another server may remove the directory, when it is the last one there
            with suppress(OSError):  # another user has taken the name, or the path is too long
                os.close(private_directory(directory))
                with suppress(FileNotFoundError):
                    os.unlink(path)  # of a process that was killed
                listener.bind(path)
                return path
    raise OSError(errno.ENOENT, "there is no private directory for its socket")


def sockets(environ: Mapping[str, str]) -> Iterator[tuple[int, str]]:
    """Yield the process number and the path of each socket of this user."""
    for directory in dict.fromkeys(directories(environ)):
        if _is_private(directory):
            for name in sorted(os.listdir(directory)):
                number = name.removesuffix(SUFFIX)
                if name != number and number.isascii() and number.isdigit():
                    yield int(number), os.path.join(directory, name)


def _is_private(directory: str) -> bool:
    try:
        status = os.lstat(directory)
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o077


def peer_of(connection: Any) -> int | None:
    """Return the number of the process at the other end of a connected Unix socket; None where the system does not say
    it, and the directory alone keeps others out. Raises PermissionError if it belongs to another user."""
    if not hasattr(_socket, "SO_PEERCRED"):
        return None
    credentials = connection.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 3 * 4)  # struct ucred: pid, uid, gid
    pid, user = (int.from_bytes(credentials[at : at + 4], sys.byteorder) for at in (0, 4))
    if user != os.geteuid():
        raise PermissionError(errno.EPERM, "it belongs to another user")
    return pid


def is_descendant(pid: int) -> bool:
    """Tell whether a process was started by this one, or by one that was. A script may not look into the server, and
    all that it starts stays below the server."""
    for _ in range(MAX_ANCESTORS):
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                pid = int(file.read().rpartition(b")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            return False
        if pid == os.getpid():
            return True
    return False
