"""Look at processes from outside: who descends from whom, what they use, when they are gone. Linux only."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path


def cpu_secs(pid: int) -> float:
    """CPU time of the process itself, without its children.

    The same figure as utime + stime in /proc/PID/stat, but in nanoseconds instead of hundredths of a second: the
    kernel numbers the CPU clock of each process like this (clock_getcpuclockid).
    """
    return time.clock_gettime((~pid << 3) | 2)


def rss_mb(pid: int) -> float:
    """Resident memory of the process and of every helper it keeps. To be asked when no script is running."""
    pages = 0
    for member in (pid, *descendants(pid)):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            pages += int(Path(f"/proc/{member}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGESIZE") / 1e6


def pss_mb(pid: int) -> float:
    """Memory of the process and of every helper it keeps; what they share counts once."""
    return sum(map(own_pss_mb, (pid, *descendants(pid))))


def own_pss_mb(pid: int) -> float:
    """Of the process alone; of what it shares with others, its part. Nothing if it has ended."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024 / 1e6
    return 0.0


def descendants(pid: int) -> list[int]:
    """Children, their children and so on; also those that have ended and are not reaped yet."""
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            children = Path(f"/proc/{pid}/task/{thread}/children").read_text(encoding="ascii")
            for child in map(int, children.split()):
                found += [child, *descendants(child)]
    except (FileNotFoundError, ProcessLookupError):
        pass  # it ended while we looked
    return found


@contextmanager
def handles(pids: Iterable[int]) -> Iterator[list[int]]:
    """Descriptors that stand for these processes, even after their numbers are used again."""
    descriptors: list[int] = []
    try:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                descriptors.append(os.pidfd_open(pid))
        yield descriptors
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def wait_until_gone(descriptors: Iterable[int], *, timeout_secs: float) -> bool:
    """True once every process has ended; a zombie has ended. The kernel wakes us, nothing is polled."""
    deadline = time.monotonic() + timeout_secs
    for descriptor in descriptors:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
            return False
    return True


def kill(descriptors: Iterable[int]) -> None:
    for descriptor in descriptors:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
