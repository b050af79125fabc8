"""Keep a child that was just started from delaying the start of the next one (Linux).

A child begins on its parent's processor, and the kernel leaves it there as long as no other is idle. We interrupt it to
go on, and start the next child on the same processor; the kernel runs the first one to its end before it begins the
second; and starting blocks until the new program is loaded. Meanwhile other processors run dry. So once there are
more scripts than processors, a new child is moved out of our way. On two processors that makes a quarter more calls.
"""

from __future__ import annotations

import os
from collections.abc import Callable


class Processors:
    """The processors that we and our children may use."""

    def __init__(self, own: Callable[[], int]) -> None:
        self._own = own
        self._count = len(os.sched_getaffinity(0))

    @classmethod
    def found(cls) -> Processors | None:
        """The processors of this machine; None where no process can be moved from one to another."""
        import ctypes

        try:
            return cls(ctypes.CDLL(None).sched_getcpu)
        except (AttributeError, OSError):
            return None  # another system than Linux, or a sandbox that forbids it

    def make_way(self, pid: int, *, scripts: int) -> None:
        """Move a child off our processor if so many scripts are running that none is likely to be idle. Afterwards it
        may use the same processors as before."""
        if scripts <= self._count:
            return
        try:
            allowed = os.sched_getaffinity(pid)
            others = allowed - {self._own()}
            if others:
                os.sched_setaffinity(pid, others)
                os.sched_setaffinity(pid, allowed)
        except OSError:
            return  # it has ended, or belongs to another user by now: it stays where it is
