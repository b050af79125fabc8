"""Find what a child has left behind, also when it left its process group (Linux).

The server is made a *subreaper*: whoever daemonises becomes our child again instead of init's. A stray is attributed
to its call by its session, else by the marker in its environment, else by the call's pipes that it still holds. One
that shed all three is stopped as soon as no call runs that could own it.

Elsewhere nothing is found here, and stopping the process group has to do.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Collection
from typing import NamedTuple

CALL_MARK = "MCPGREEN_CALL"
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


def ticks_since_boot() -> int:
    """Now, on the clock and in the unit in which the kernel notes when a process was started."""
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK"))


def children_of(pid: int | str) -> list[int]:
    """The direct children of all threads of a process; empty when it is gone or the kernel does not say."""
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            found.extend(map(int, _content(f"/proc/{pid}/task/{thread}/children").split()))
    except OSError:
        return found
    return found


def own_children() -> list[int]:
    """Our children. All are the main thread's: it starts them, and the kernel gives it the orphans."""
    return list(map(int, _content(f"/proc/self/task/{os.getpid()}/children").split()))


def with_descendants(pids: Collection[int]) -> list[int]:
    """These processes and everything below them, parents first."""
    found = list(pids)
    for pid in found:
        found.extend(child for child in children_of(pid) if child not in found)
    return found


class Leader(NamedTuple):
    """A child that we started, and how its descendants can be told from others."""

    pid: int
    mark: str
    since_ticks: int
    pipes: frozenset[int]  # inode numbers


def belongs_to(pid: int, leader: Leader) -> bool | None:
    """Whether an adopted process was started by this leader. None: it may have been, but hides whose it is."""
    try:
        # The command name may hold spaces and parentheses; the fields after its last ")" do not.
        fields = _content(f"/proc/{pid}/stat").rpartition(b")")[2].split()
        environment = _content(f"/proc/{pid}/environ")
    except OSError:
        return False  # gone meanwhile, or another user's
    state, session, started_ticks = fields[0], int(fields[3]), int(fields[19])
    if state == b"Z" or started_ticks < leader.since_ticks:
        return False
    if session == leader.pid:
        return True
    prefix = CALL_MARK.encode() + b"="
    marks = [entry for entry in environment.split(b"\0") if entry.startswith(prefix)]
    if marks:
        return prefix + leader.mark.encode() in marks
    if leader.pipes & _pipes_of(pid):
        return True
    return False if session == os.getsid(0) else None


def _pipes_of(pid: int) -> set[int]:
    """The inode numbers of the pipes that a process holds."""
    found: set[int] = set()
    try:
        for fd in os.listdir(f"/proc/{pid}/fd"):
            target = os.readlink(f"/proc/{pid}/fd/{fd}")
            if target.startswith("pipe:["):
                found.add(int(target[6:-1]))
    except OSError:
        return found
    return found


def _content(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY)
    try:
        content = b""
        while chunk := os.read(fd, 65536):
            content += chunk
        return content
    finally:
        os.close(fd)
