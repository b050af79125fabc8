"""A number for each call, which every process below it carries: it tells to which call a stray process belongs.

Session, environment and descriptors can be lost by accident: `env -i setsid` is all it takes. A resource limit stays,
through fork and exec, unless a process changes it on purpose. So a call's number is put where it does no harm: into the
soft limit of CPU time for real-time processes, as some hundred thousand years. Where that limit cannot be set, the same
number in the environment has to do.
"""

from __future__ import annotations

import os
import resource

from mcpgreen.running.system.descendants import content_of

VARIABLE = b"MCPGREEN_CALL"
CALL_DIGITS = 8
CALLS = 100_000_000  # what so many digits can tell apart
THREADS = 17  # the field of /proc/PID/stat, counted from the state
LIMIT_LINE = b"Max realtime timeout"


class Tags:
    """The tags of one server: all begin with the same digits."""

    def __init__(self) -> None:
        self.prefix = f"8{int.from_bytes(os.urandom(8), 'big') % 10**10:010d}"
        self._first = int(self.prefix) * CALLS
        self._count = 0
        self._limits = _own_limits()

    def next_serial(self) -> int:
        """The number of the next call."""
        self._count = (self._count + 1) % CALLS
        return self._count

    def of(self, serial: int) -> int:
        """The tag of the call that has this number."""
        return self._first + serial

    @property
    def all(self) -> range:
        return range(self._first, self._first + CALLS)

    @property
    def are_limits(self) -> bool:
        """Tell whether processes carry them where they cannot be lost by accident."""
        return self._limits is not None

    def put_on(self, tag: int) -> None:
        """Every process that is started from now on carries the tag. Nothing may switch greenlets until it is taken
        off."""
        if self._limits is not None:
            resource.setrlimit(resource.RLIMIT_RTTIME, (tag, self._limits[1]))

    def take_off(self) -> None:
        if self._limits is not None:
            resource.setrlimit(resource.RLIMIT_RTTIME, self._limits)


def _own_limits() -> tuple[int, int] | None:
    """The limits to go back to; None where the soft one cannot be set."""
    if not hasattr(resource, "RLIMIT_RTTIME"):
        return None
    limits = resource.getrlimit(resource.RLIMIT_RTTIME)
    return limits if limits[1] == resource.RLIM_INFINITY else None


def is_alive(pid: int) -> bool:
    """Tell whether a process is neither gone nor a zombie."""
    try:
        fields = content_of(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    except OSError:
        return False
    return fields[0] != b"Z" or int(fields[THREADS]) > 1  # else only its first thread has ended


def tag_of(pid: int) -> int | None:
    """The tag that a process carries, a zombie too; None without one, and for one that is gone."""
    try:
        return _tag_in_limits(pid) or _tag_in_environment(pid)
    except OSError:
        return None


def _tag_in_limits(pid: int) -> int | None:
    words = content_of(f"/proc/{pid}/limits").partition(LIMIT_LINE)[2].split(None, 1)
    return int(words[0]) if words and words[0].isdigit() else None


def _tag_in_environment(pid: int) -> int | None:
    for entry in content_of(f"/proc/{pid}/environ").split(b"\0"):
        name, _, value = entry.partition(b"=")
        if name == VARIABLE and value.isdigit():
            return int(value)
    return None
