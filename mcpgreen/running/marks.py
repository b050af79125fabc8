"""A number for each call, which every process below it carries, and by which /proc tells whose a stray is.

Session, environment and descriptors can be shed in passing: `env -i setsid` is all it takes. A resource limit stays,
through fork and exec, unless somebody changes it on purpose. So a call's number is put where it does no harm: into the
soft limit of CPU time for real-time processes, as some hundred thousand years. Where that limit cannot be set, the same
number in the environment has to do.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

VARIABLE = "MCPGREEN_CALL"
CALL_DIGITS = 8
CALLS = 100_000_000  # what so many digits can tell apart
LIMIT_LINE = b"Max realtime timeout"


class Marks:
    """The marks of one server: all begin with the same digits."""

    def __init__(self) -> None:
        self.prefix = f"8{int.from_bytes(os.urandom(8), 'big') % 10**10:010d}"
        self._count = 0

    def next(self) -> int:
        self._count = (self._count + 1) % CALLS
        return int(self.prefix) * CALLS + self._count

    def is_ours(self, mark: int | None) -> bool:
        return mark is not None and mark // CALLS == int(self.prefix)

    @contextmanager
    def put_on(self, mark: int) -> Iterator[None]:
        """Who is started meanwhile carries the mark. Nothing in here may switch greenlets."""
        try:
            import resource

            before = resource.getrlimit(resource.RLIMIT_RTTIME)
            resource.setrlimit(resource.RLIMIT_RTTIME, (mark, before[1]))
        except (ImportError, AttributeError, ValueError, OSError):
            yield  # not Linux, or somebody has limited us already
            return
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_RTTIME, before)


def mark_of(pid: int) -> int | None:
    """The mark that a running process carries; None without one, for a zombie and for one that is gone."""
    try:
        if content_of(f"/proc/{pid}/stat").rpartition(b")")[2].split()[0] == b"Z":
            return None
        return _mark_in_limits(pid) or _mark_in_environment(pid)
    except OSError:
        return None


def content_of(path: str) -> bytes:
    """A whole file of /proc, read without the cost of a file object."""
    fd = os.open(path, os.O_RDONLY)
    try:
        content = b""
        while chunk := os.read(fd, 65536):
            content += chunk
        return content
    finally:
        os.close(fd)


def _mark_in_limits(pid: int) -> int | None:
    words = content_of(f"/proc/{pid}/limits").partition(LIMIT_LINE)[2].split(None, 1)
    return int(words[0]) if words and words[0].isdigit() else None


def _mark_in_environment(pid: int) -> int | None:
    prefix = VARIABLE.encode() + b"="
    for entry in content_of(f"/proc/{pid}/environ").split(b"\0"):
        if entry.startswith(prefix) and entry[len(prefix) :].isdigit():
            return int(entry[len(prefix) :])
    return None
