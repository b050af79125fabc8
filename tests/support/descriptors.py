"""What a process has open, as /proc tells it: to see that nothing stays behind."""

from __future__ import annotations

import os
from collections import Counter

import pytest

has_proc = os.path.isdir("/proc/self/fd")
needs_proc = pytest.mark.skipif(not has_proc, reason="descriptors are looked for in /proc")


def descriptors_of(pid: int) -> list[str]:
    """What the open descriptors lead to; pipes without their numbers, which change. One may close while we look."""
    targets = []
    for entry in os.listdir(f"/proc/{pid}/fd"):
        try:
            targets.append(os.readlink(f"/proc/{pid}/fd/{entry}").partition(":[")[0])
        except FileNotFoundError:
            continue
    return sorted(targets)


def new_descriptors(pid: int, before: list[str]) -> list[str]:
    """What is open now and was not then. What was open then only in passing does not count."""
    return sorted((Counter(descriptors_of(pid)) - Counter(before)).elements())
