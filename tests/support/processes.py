"""What /proc tells of processes: the memory that they have, those below them, and whose they are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

MIB = 1 << 20


def proc_text(path: str) -> str:
    """The text of a file below /proc; empty if the process is gone, or lets nobody look."""
    try:
        return Path(path).read_bytes().decode("utf-8", "replace")
    except OSError:
        return ""


def peak_bytes(pid: int) -> int:
    """The most that a process has had in memory so far."""
    return _status_bytes(pid, "VmHWM:")


def memory_bytes(pid: int) -> int:
    """What a process has in memory now."""
    return _status_bytes(pid, "VmRSS:")


def children_of(pid: int) -> list[int]:
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []
    return [int(child) for thread in threads for child in proc_text(f"/proc/{pid}/task/{thread}/children").split()]


def command_of(pid: int | str) -> str:
    """The command line; empty for a zombie."""
    return proc_text(f"/proc/{pid}/cmdline").replace("\0", " ").strip()


def _status_bytes(pid: int, name: str) -> int:
    if not os.path.isdir("/proc/self"):
        pytest.skip("this system does not say how much memory a process has used")
    found = [line.split()[1] for line in proc_text(f"/proc/{pid}/status").splitlines() if line.startswith(name)]
    return int(found[0]) * 1024 if found else 0
