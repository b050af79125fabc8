"""Stop one script and every process that it has started: SIGTERM, some time to clean up, SIGKILL, until none is left.

`strays` are the processes that left their parents for us; None where the system does not hand them over.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress

import gevent

from mcpgreen import journal
from mcpgreen.running.processes.process import Child
from mcpgreen.running.processes.strays import Strays, signal_group
from mcpgreen.running.system import descendants

KILL_PATIENCE_SECS = 5.0


def wait_or_kill(leader: Child, grace_secs: float, strays: Strays | None) -> None:
    """Wait after SIGTERM until nothing is left of a script; kill what is left after the time that it has."""
    if _wait_until_gone(leader, grace_secs, strays):
        return
    give_up_at = time.monotonic() + KILL_PATIENCE_SECS
    while time.monotonic() < give_up_at:
        signal_all_of(leader, signal.SIGKILL, strays)
        if strays is not None:
            strays.kill(leader.tag)
        if _wait_until_gone(leader, 0.1, strays):
            return
    journal.error("process group %d does not die", leader.pid)


def _wait_until_gone(leader: Child, secs: float, strays: Strays | None) -> bool:
    give_up_at = time.monotonic() + secs
    pause_secs = 0.0002
    while is_anything_left(leader, strays):
        if time.monotonic() >= give_up_at:
            return False
        gevent.sleep(pause_secs)
        pause_secs = min(pause_secs * 2, 0.02)
    return True


def is_anything_left(leader: Child, strays: Strays | None) -> bool:
    if leader.returncode is None:
        return True
    if strays is None:
        return signal_group(leader.pid, 0)
    if not strays.are_there():
        return False  # all that it started would be below one of our children
    return signal_group(leader.pid, 0) or strays.is_any_of(leader.tag)


def signal_all_of(leader: Child, number: int, strays: Strays | None) -> None:
    """Signal the group at once, then the processes that have left it; each gets the signal once."""
    outsiders: list[int] = []
    if strays is not None:
        # Looked up first: once the group is dead, the tree that leads to them is gone.
        family = descendants.with_descendants([leader.pid, *strays.of_call(leader.tag)])[1:]
        outsiders = [pid for pid in family if _group_of(pid) != leader.pid]
    if not signal_group(leader.pid, number) and leader.returncode is None:
        signal_process(leader.pid, number)  # it has just been forked, and has no group of its own yet
    for pid in outsiders:
        signal_process(pid, number)


def signal_process(pid: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _group_of(pid: int) -> int | None:
    try:
        return os.getpgid(pid)
    except OSError:
        return None
