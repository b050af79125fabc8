"""What a process can ask of Linux for itself. Elsewhere nothing is asked.

Rule: `ctypes` costs two milliseconds, so nothing here is called before the first answer unless a hook has to run.
"""

from __future__ import annotations

import os
import sys

PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36


def shut_out_others() -> None:
    """No other process of the same user, as scripts are, may look into this one or use what it has open: its
    environment, its memory, the pipes of the protocol. Root may. It writes no core file either."""
    if sys.platform.startswith("linux"):
        _ask(PR_SET_DUMPABLE, 0)


def adopt_orphans() -> None:
    """Who loses its parent below this process becomes its child."""
    if not sys.platform.startswith("linux"):
        raise OSError("orphans are adopted on Linux only")
    _ask(PR_SET_CHILD_SUBREAPER, 1)


def _ask(option: int, value: int) -> None:
    import ctypes

    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
