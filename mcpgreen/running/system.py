"""Operating system features: on Linux, protection from other processes and adoption of orphans; descriptor limits.

Most systems allow a thousand descriptors and more. With `ulimit -n 64` the server still runs, fewer scripts at once.

Rule: `ctypes` costs two milliseconds, so before the first answer nothing that needs it is called, except for a hook.
"""

from __future__ import annotations

import os
import resource
import sys

MAX_SECS = 1e9  # 30 years; clocks cannot be set to more
MAX_VARIABLE_CHARS = 120 * 1024  # Linux takes 128 KiB for one variable, name included

PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36
M_MMAP_THRESHOLD = -3  # mallopt(3)
LARGE_BYTES = 1 << 20

CONTROL_FD = 97  # above what scripts use by hand (3 to 9) and what shells take by themselves (10 and up, 63 and down)
HIGHEST_BY_HAND = 9
BELOW_THE_LIMIT = 4
# Of the server itself, with the descriptors that it needs for a moment to read the project or to start a script.
OWN_DESCRIPTORS = 36
DESCRIPTORS_OF_A_SCRIPT = 3
DESCRIPTORS_OF_A_RESIDENT = 4
PASSING_CONNECTIONS = 32  # that have just come, or are about to go
MOST_RESIDENTS = 512
ROOMY = 256  # enough for processes that are started ahead of the scripts that need them


def shut_out_others() -> None:
    """Let no other process of the same user, as scripts are, look into this one or use what it has open: its
    environment, its memory, the pipes of the protocol. Root may. It writes no core file either."""
    if sys.platform.startswith("linux"):
        _ask(PR_SET_DUMPABLE, 0)


def adopt_orphans() -> None:
    """Become the parent of every descendant process whose own parent ends."""
    if not sys.platform.startswith("linux"):
        raise OSError("orphans are adopted on Linux only")
    _ask(PR_SET_CHILD_SUBREAPER, 1)


def keep_large_blocks_apart() -> None:
    """Have the C library give large blocks of memory back as soon as they are free (glibc). By itself it begins to keep
    them among the small ones once the first has been freed, and what is small and stays holds them there: after some
    megabytes of arguments or output a server would take up to twice what it needs."""
    import ctypes

    try:
        ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, LARGE_BYTES)
    except (AttributeError, OSError):
        return  # another C library, or a sandbox that forbids it


def _ask(option: int, value: int) -> None:
    import ctypes

    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def descriptor_limit() -> int:
    """Return a number above every descriptor of this process and of its children."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return limit if limit != resource.RLIM_INFINITY else sys.maxsize


def fitting_descriptor(limit: int) -> int:
    """Return the number of the control pipe in a script: the usual one, or one below the limit."""
    if limit > CONTROL_FD:
        return CONTROL_FD
    return max(HIGHEST_BY_HAND + 1, limit - BELOW_THE_LIMIT)


def scripts_that_fit(wanted: int, limit: int) -> int:
    """Return how many of the `wanted` scripts can run at a time; at least one is tried."""
    return max(1, min(wanted, (limit - OWN_DESCRIPTORS) // DESCRIPTORS_OF_A_SCRIPT))


def residents_that_fit(limit: int) -> int:
    """Return how many processes can stay: they may have an eighth of the descriptors. At least one is tried."""
    return max(1, min(MOST_RESIDENTS, limit // 8 // DESCRIPTORS_OF_A_RESIDENT))


def connections_that_fit(wanted: int, limit: int, *, scripts: int) -> int:
    """Return how many connections a server can have in addition to its scripts; at least one is tried."""
    room = limit - OWN_DESCRIPTORS - scripts * DESCRIPTORS_OF_A_SCRIPT - PASSING_CONNECTIONS
    room -= residents_that_fit(limit) * DESCRIPTORS_OF_A_RESIDENT
    return max(1, min(wanted, room))


def stamp_of_file(path: str | None) -> tuple[int, ...]:
    """Return what changes when the file does; nothing if there is no such file."""
    if path is None:
        return ()
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return ()
    return (status.st_ctime_ns, status.st_mtime_ns, status.st_size, status.st_ino)
