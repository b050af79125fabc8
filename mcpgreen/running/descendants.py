"""Find what a child has left behind, also when it left its process group (Linux).

The server is made a *subreaper*: whoever daemonises becomes our child again instead of init's. Elsewhere nothing is
found here, and stopping the process group has to do.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection

from mcpgreen.running.marks import content_of

PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> bool:
    """Make this process the parent of its orphaned descendants. False where the system cannot."""
    if not sys.platform.startswith("linux"):
        return False
    import ctypes

    prctl = ctypes.CDLL(None, use_errno=True).prctl
    if prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        return False
    try:
        own_children()
    except OSError:
        return False  # no /proc here, or a kernel that does not tell
    return True


def own_children() -> list[int]:
    """Our children. All are the main thread's: it starts them, and the kernel gives it the orphans."""
    return list(map(int, content_of(f"/proc/self/task/{os.getpid()}/children").split()))


def children_of(pid: int) -> list[int]:
    """The direct children of all threads of a process; empty when it is gone."""
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            found.extend(map(int, content_of(f"/proc/{pid}/task/{thread}/children").split()))
    except OSError:
        return found
    return found


def with_descendants(pids: Collection[int]) -> list[int]:
    """These processes and everything below them, parents first."""
    found = list(pids)
    for pid in found:
        found.extend(child for child in children_of(pid) if child not in found)
    return found
