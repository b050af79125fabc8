"""Start one child process, collect what it says, and tell how it ended.

Knows nothing about tools or MCP: a command in, an `Outcome` out. The child gets a session of its own, no stdin, no
descriptor but its output and the control pipe. It is started by `posix_spawn`: gevent's own way forks the whole
server and runs Python in the copy, which is five times as slow, and slower still the more memory the server holds.

Rule: ending the child, and whoever it started, is not done here but by `runner`, whatever happens.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import gevent
from gevent import subprocess
from gevent.event import AsyncResult
from gevent.hub import Waiter

from mcpgreen.running.deadline import Deadline
from mcpgreen.running.descriptor_limit import descriptor_limit, fitting_descriptor
from mcpgreen.running.output_places import OutputPlace
from mcpgreen.running.pipes import Capture, OnChunk, PipeReader

CONTROL_CHUNK_BYTES = 8192  # each line costs more than its bytes
CONTROL_FD = fitting_descriptor(descriptor_limit())
# Most scripts are over by then, and what they left in these two pipes is read at once; watching costs them more.
UNWATCHED_SECS = 0.05
NO_INPUT = (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)
# All that can be: nothing that we or whoever started us ignores is ignored by a script, and posix_spawn need not ask.
RESET_SIGNALS = list(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP})


class Limits(NamedTuple):
    stdout_bytes: int
    stderr_bytes: int
    kill_grace_secs: float
    drain_secs: float


class Ending:
    """Why a child is over."""

    EXIT = "exit"
    DEADLINE = "deadline"
    STDOUT_LIMIT = "stdout limit"
    STDERR_LIMIT = "stderr limit"


class Outcome(NamedTuple):
    exit_code: int  # 128 + n after signal n, as a shell would say it
    stdout: list[bytes]  # in chunks: see `jsontext.LargeText`
    stderr: bytes
    ended_by: str
    place: OutputPlace  # in memory, until it is given back


class Directory:
    """Where children are started: posix_spawn itself knows no working directory."""

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        self._home_fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
        self._is_home = os.path.samestat(os.fstat(self._fd), os.fstat(self._home_fd))

    def spawn(self, args: Sequence[str], env: Mapping[bytes, bytes], file_actions: list[Any]) -> int:
        if self._is_home:
            return _spawn(args, env, file_actions)
        os.fchdir(self._fd)  # no greenlet can switch until we are back
        try:
            return _spawn(args, env, file_actions)
        finally:
            os.fchdir(self._home_fd)

    def close(self) -> None:
        os.close(self._fd)
        os.close(self._home_fd)


class Child(subprocess.Popen):  # type: ignore[misc]  # gevent has no type information
    """A gevent Popen whose process is created by posix_spawn. How Popen itself begins is left out: it considers thirty
    arguments, of which we have two."""

    def __init__(
        self, command: Sequence[str], *, env: Mapping[bytes, bytes], directory: Directory, fds: Sequence[int]
    ) -> None:
        stdout, stderr, control = fds
        self.args = command
        self.stdin = self.stdout = self.stderr = self.returncode = None
        self.result = AsyncResult()
        self._waiter: Any = None
        self._loop = gevent.get_hub().loop
        self._loop.install_sigchld()
        self.pid = directory.spawn(
            command,
            env,
            [
                NO_INPUT,
                (os.POSIX_SPAWN_DUP2, stdout, 1),
                (os.POSIX_SPAWN_DUP2, stderr, 2),
                (os.POSIX_SPAWN_DUP2, control, CONTROL_FD),
            ],
        )
        # Not `gevent.os.fork_and_watch`: it remembers each child for a minute and walks all of them at each exit.
        watcher = self._loop.child(self.pid, ref=True)
        watcher.start(self._on_exit, watcher)

    def wait_for_bell(self) -> None:
        """Until `ring`, for one greenlet at a time. As an Event, but that costs five times as much."""
        self._waiter = Waiter()
        try:
            self._waiter.get()
        finally:
            self._waiter = None

    def ring(self) -> None:
        """In the hub: the child has exited, or there is another reason to look at it."""
        if self._waiter is not None:
            self._waiter.switch(None)

    def _on_exit(self, watcher: Any) -> None:
        self._on_child(watcher)
        watcher.close()
        self.ring()


class ScriptRun:
    """One child with its pipes."""

    def __init__(
        self,
        command: Sequence[str],
        env: Mapping[bytes, bytes],
        directory: Directory,
        limits: Limits,
        on_control: OnChunk,
        place: OutputPlace,
    ) -> None:
        read_ends, write_ends = _pipes(3)
        try:
            self.child = Child(command, env=env, directory=directory, fds=write_ends)
        except BaseException:
            _close_all(read_ends)
            raise
        finally:
            _close_all(write_ends)
        stdout, stderr, control = read_ends
        # Who says too much is not waited for.
        self._place = place
        self._stdout = Capture(limit_bytes=limits.stdout_bytes, place=place, on_overflow=self.child.ring)
        self._stderr = Capture(limit_bytes=limits.stderr_bytes, place=place, on_overflow=self.child.ring)
        self._stdout_reader = PipeReader(stdout, self._stdout.take, may_grow=True)
        self._stderr_reader = PipeReader(stderr, self._stderr.take, may_grow=True)
        self._control_reader = PipeReader(control, on_control, chunk_bytes=CONTROL_CHUNK_BYTES)
        self._stdout_reader.watch()

    def wait(self, deadline: Deadline) -> str:
        """Until the leader has exited, has said too much, or time is up. A grandchild with our pipes does not count."""
        timer = gevent.get_hub().loop.timer(min(UNWATCHED_SECS, max(0, deadline.remaining_secs())))
        timer.start(self.child.ring)
        try:
            self.child.wait_for_bell()
        finally:
            timer.close()
        while self.child.returncode is None and not self._overflow:
            self._stderr_reader.watch()
            self._control_reader.watch()
            remaining_secs = deadline.remaining_secs()
            if remaining_secs <= 0:
                return Ending.DEADLINE
            with gevent.Timeout(remaining_secs, False):
                self.child.wait_for_bell()
        return self._overflow or Ending.EXIT

    def drain(self, secs: float) -> None:
        """Read on until both streams end and all reports are heard, but not for longer than `secs`: a background job
        may hold them for hours."""
        give_up_at = time.monotonic() + secs
        pause_secs = 0.0005
        for capture, reader in ((self._stdout, self._stdout_reader), (self._stderr, self._stderr_reader)):
            capture.take_all()
            reader.wake()
        self.take_the_rest()
        while self._stdout_reader.is_open or self._stderr_reader.is_open or self._control_reader.is_resting:
            if self._overflow or time.monotonic() >= give_up_at:
                return
            gevent.sleep(pause_secs)
            pause_secs = min(pause_secs * 2, 0.02)
            self._control_reader.drain()

    def take_the_rest(self) -> None:
        if not self._overflow:
            self._stdout_reader.drain()
            self._stderr_reader.drain()
            self._control_reader.drain()

    def close(self) -> None:
        self._stdout_reader.close()
        self._stderr_reader.close()
        self._control_reader.close()

    def outcome(self, ended_by: str) -> Outcome:
        status = self.child.returncode
        exit_code = 128 - status if status is not None and status < 0 else (status or 0)
        stderr = b"".join(self._stderr.chunks())
        return Outcome(exit_code, self._stdout.chunks(), stderr, self._overflow or ended_by, self._place)

    @property
    def _overflow(self) -> str | None:
        if self._stdout.was_exceeded:
            return Ending.STDOUT_LIMIT
        return Ending.STDERR_LIMIT if self._stderr.was_exceeded else None


def _pipes(count: int) -> tuple[list[int], list[int]]:
    """The ends to read from and those to write to, all of them or none."""
    read_ends: list[int] = []
    write_ends: list[int] = []
    try:
        for _ in range(count):
            read_end, write_end = os.pipe()
            read_ends.append(read_end)
            write_ends.append(write_end)
    except OSError:
        _close_all(read_ends + write_ends)
        raise
    return read_ends, write_ends


def _close_all(fds: Iterable[int]) -> None:
    for fd in fds:
        os.close(fd)


def _spawn(args: Sequence[str], env: Mapping[bytes, bytes], file_actions: list[Any]) -> int:
    return os.posix_spawnp(
        args[0], list(args), env, file_actions=file_actions, setsid=True, setsigmask=[], setsigdef=RESET_SIGNALS
    )
