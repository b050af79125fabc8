"""Note the end of our children, and what they have used.

The hub's own child watchers lose that: libev reaps by `waitpid`, in its handler of SIGCHLD. So the signal is ours, and
every child that ends is reaped by `wait4`. A byte in a pipe tells the hub of the signal: it may come right before the
hub goes to sleep. That costs what the watcher of each child cost.

Rule: one for the process, as the signal is. All children are reaped, orphans that we adopted too; so no module may
use gevent's child watchers or subprocesses.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from functools import cache
from resource import struct_rusage
from typing import Any

import gevent

from mcpgreen.running.processes.pipes import READ_EVENT

OnChange = Callable[[int, struct_rusage], None]

AT_A_TIME = 200  # others are served meanwhile
SIGNALS_READ = 4096


class Reaper:
    """Calls a function when a child changes. There is one for the process: `reaper()`."""

    def __init__(self) -> None:
        self._watched: dict[int, OnChange] = {}
        self._bell_fd, signal_fd = os.pipe()
        for fd in (self._bell_fd, signal_fd):
            os.set_blocking(fd, False)
        signal.set_wakeup_fd(signal_fd, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, _on_signal)
        self._watcher: Any = gevent.get_hub().loop.io(self._bell_fd, READ_EVENT, ref=False)
        self._watcher.start(self._on_bell)

    def watch(self, pid: int, on_change: OnChange) -> None:
        """Call this in the hub with the status, as `wait` gives it, when the child ends, and whenever it is stopped.
        To be told in the same turn in which the child is started: its end would be missed later."""
        self._watched[pid] = on_change

    def forget(self, pid: int) -> None:
        self._watched.pop(pid, None)

    def _on_bell(self) -> None:
        os.read(self._bell_fd, SIGNALS_READ)
        self._reap()

    def _reap(self) -> None:
        for _ in range(AT_A_TIME):
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG | os.WUNTRACED)
            except ChildProcessError:
                return
            if not pid:
                return
            on_change = self._watched.get(pid) if os.WIFSTOPPED(status) else self._watched.pop(pid, None)
            if on_change is not None:
                on_change(status, usage)
        gevent.get_hub().loop.run_callback(self._reap)


@cache
def reaper() -> Reaper:
    """The reaper of this process, made at its first use."""
    return Reaper()


def _on_signal(number: int, frame: object) -> None:
    """Without a handler in Python there would be no byte in the pipe."""
