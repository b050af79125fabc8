"""Start scripts and our own helpers as processes, and record how they end and what resources they used.

`posix_spawn` is the first way: gevent's own forks the whole server and runs Python in the copy, which is five times as
slow, and slower still the more memory the server holds. The second is `warm_python`.

The hub's own child watchers lose what a process has used: libev reaps by `waitpid`, in its handler of SIGCHLD. So the
signal is ours, and the `Reaper` waits for every child that ends by `wait4`, which costs no more.

Rule: one reaper for the process, as the signal is. All children are reaped, orphans that we adopted too; so no module
may use gevent's child watchers or subprocesses.
"""

from __future__ import annotations

import os
import signal
import sys
from _socket import socketpair  # `socket` takes milliseconds to import
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from resource import struct_rusage
from typing import TYPE_CHECKING, Any, Protocol

import gevent

from mcpgreen.running.processes.pipes import READ_EVENT
from mcpgreen.running.processes.stopping import Tags
from mcpgreen.running.system import descriptor_limit, fitting_descriptor

if TYPE_CHECKING:
    from mcpgreen.running.processes.run import ScriptRun

Variables = Mapping[bytes, bytes]
OnChange = Callable[[int, struct_rusage], None]

CONTROL_FD = fitting_descriptor(descriptor_limit())
CALLS_FD = CONTROL_FD - 1  # of a resident process
NO_INPUT = (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)
# All that can be: a script ignores no signal that we, or the program that started us, ignore.
RESET_SIGNALS = list(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP})
REAPED_AT_A_TIME = 200  # others are served meanwhile
SIGNALS_READ = 4096


class Spawner(Protocol):
    """Starts one process. It is our child, or becomes it; leads a session of its own; has no input, and no descriptor
    but its stdout, its stderr and the control pipe, which is `CONTROL_FD` there; ignores no signal; and carries the
    tag, as do all processes that it starts."""

    way: str  # what this way of starting is called; empty for a fresh start

    def spawn(self, run: ScriptRun, *, outputs: Sequence[int], tag: int) -> int:
        """Start it, and return its number. `outputs` are our descriptors of the three. Raises OSError. No greenlet may
        switch between its start and the return: its end would be missed."""

    def has_begun(self) -> bool:
        """Tell whether the process has become the script."""

    def let_go(self) -> None:
        """Free what belongs to the process: it is over."""


class PosixSpawner:
    """Starts processes in one directory by `posix_spawn`. It sets neither directory nor limits, so we take on both."""

    way = ""

    def __init__(self, directory: str, tags: Tags) -> None:
        self._directory_fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        self._home_fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
        self._is_home = os.path.samestat(os.fstat(self._directory_fd), os.fstat(self._home_fd))
        self._tags = tags

    def spawn(self, run: ScriptRun, *, outputs: Sequence[int], tag: int) -> int:
        stdout, stderr, control = outputs
        places = [(stdout, 1), (stderr, 2), (control, CONTROL_FD)]
        if run.calls_fd >= 0:
            places.append((run.calls_fd, CALLS_FD))
        actions = [NO_INPUT, *((os.POSIX_SPAWN_DUP2, ours, theirs) for ours, theirs in places)]
        return self.start(run.script.command, run.env, actions, tag=tag)

    def has_begun(self) -> bool:
        return True

    def let_go(self) -> None:
        """There is nothing to let go of."""

    def start(self, command: Sequence[str], env: Variables, actions: Sequence[tuple[Any, ...]], *, tag: int) -> int:
        """Start a process with the descriptors that these actions give it, and return its number. Directory and tag are
        those of this process meanwhile, so no greenlet may switch."""
        self._tags.put_on(tag)
        try:
            if not self._is_home:
                os.fchdir(self._directory_fd)
            return _spawned(command[0], command, env, actions)
        finally:
            if not self._is_home:
                os.fchdir(self._home_fd)
            self._tags.take_off()

    def close(self) -> None:
        os.close(self._directory_fd)
        os.close(self._home_fd)


def spawn_helper(path: str, command: list[str], env: Mapping[str, str], *, as_fd: int) -> tuple[int, int]:
    """Start a process of ours, not a script. Return its number and our end of its socket, which does not block. Its
    own end is `as_fd`. It has no other descriptor of the server: a client must see the end of our output."""
    ours, theirs = (each.detach() for each in socketpair())
    nothing = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1, 2) if fd != as_fd]
    try:
        os.set_blocking(ours, False)
        return _spawned(path, command, env, [(os.POSIX_SPAWN_DUP2, theirs, as_fd), *nothing]), ours
    except OSError:
        os.close(ours)
        raise
    finally:
        os.close(theirs)


def _spawned(program: str, command: Sequence[str], env: Mapping[Any, Any], actions: Sequence[tuple[Any, ...]]) -> int:
    return os.posix_spawnp(
        program, list(command), env, file_actions=actions, setsid=True, setsigmask=[], setsigdef=RESET_SIGNALS
    )


class Processors:
    """The processors that we and our children may use. A new child must not delay the start of the next one (Linux).

    A child begins on its parent's processor, and the kernel leaves it there as long as no other is idle. We interrupt
    it to go on, and start the next child on the same processor; the kernel runs the first one to its end before it
    begins the second; and starting blocks until the new program is loaded. Meanwhile other processors run dry. So once
    there are more scripts than processors, a new child is moved. On two processors that makes a quarter more calls.
    """

    def __init__(self) -> None:
        import ctypes

        try:
            self._own: Callable[[], int] = ctypes.CDLL(None).sched_getcpu
            self._count = len(os.sched_getaffinity(0))
        except (AttributeError, OSError):  # another system than Linux, or a sandbox that forbids it
            self._count = sys.maxsize

    def make_way(self, pid: int, *, scripts: int) -> None:
        """Move a child off our processor, if scripts keep all of them busy. For a moment, it may use fewer."""
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
        self._watcher.start(self._reap)

    def watch(self, pid: int, on_change: OnChange) -> None:
        """Call this in the hub with the status, as `wait` gives it, when the child ends, and whenever it is stopped.
        Must be called in the same turn in which the child is started: its end would be missed later."""
        self._watched[pid] = on_change

    def forget(self, pid: int) -> None:
        self._watched.pop(pid, None)

    def _reap(self) -> None:
        with suppress(BlockingIOError):
            os.read(self._bell_fd, SIGNALS_READ)
        for _ in range(REAPED_AT_A_TIME):
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
    """Return the reaper of this process, made at its first use."""
    return Reaper()


def _on_signal(number: int, frame: object) -> None:
    """Without a handler in Python there would be no byte in the pipe."""
