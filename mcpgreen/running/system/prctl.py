"""What a process can ask of Linux for itself. Elsewhere nothing is asked.

Rule: `ctypes` costs two milliseconds, so nothing here is called before the first answer unless a hook has to run.
"""

from __future__ import annotations

import os
import sys

PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36
M_MMAP_THRESHOLD = -3  # mallopt(3)
LARGE_BYTES = 1 << 20


def shut_out_others() -> None:
    """Let no other process of the same user, as scripts are, look into this one or use what it has open: its
    environment, its memory, the pipes of the protocol. Root may. It writes no core file either."""
    if sys.platform.startswith("linux"):
        _ask(PR_SET_DUMPABLE, 0)


def adopt_orphans() -> None:
    """Become the parent of all processes below this one that lose their own."""
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
