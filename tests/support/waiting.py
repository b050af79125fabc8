"""Wait for conditions, never for seconds."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

# On a loaded machine; a condition that holds ends the wait at once. Who expects failures waits less.
PATIENCE_SECS = float(os.environ.get("TEST_PATIENCE_SECS", "60"))


def eventually(condition: Callable[[], T], *, within_secs: float = PATIENCE_SECS) -> T:
    """The first true value of the condition. Fails when it stays false."""
    give_up_at = time.monotonic() + within_secs
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < give_up_at, f"still false after {within_secs} s: {condition}"
        time.sleep(0.005)


def is_alive(pid: int | str) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        with open(f"/proc/{int(pid)}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        if os.path.isdir("/proc/self"):
            return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    return True
