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
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import gevent
from gevent import subprocess
from gevent.event import Event

from mcpgreen.running.deadline import Deadline
from mcpgreen.running.pipes import Capture, PipeReader

CONTROL_FD = 97  # above what scripts use by hand (3 to 9) and what shells take by themselves (10 and up, 63 and down)
# Most scripts are over by then, and what they left in these two pipes is read at once; watching costs them more.
UNWATCHED_SECS = 0.05
RESET_SIGNALS = [signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


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


class Directory:
    """Where children are started: posix_spawn itself knows no working directory."""

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        self._home_fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
        self._is_home = os.path.samestat(os.fstat(self._fd), os.fstat(self._home_fd))

    def spawn(self, args: Sequence[str], env: Mapping[str, str], file_actions: list[Any]) -> int:
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
    """A gevent Popen whose process is created by posix_spawn."""

    def __init__(
        self, command: Sequence[str], *, env: Mapping[str, str], directory: Directory, fds: Sequence[int]
    ) -> None:
        self._directory = directory
        self._stdout_fd, self._stderr_fd, self._control_fd = fds
        self.over = Event()
        super().__init__(command, env=env)

    def _execute_child(self, args: Sequence[str], executable: Any, *rest: Any) -> None:
        env = rest[4]
        self._loop.install_sigchld()
        self.pid = self._directory.spawn(
            args,
            env,
            [
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_DUP2, self._stdout_fd, 1),
                (os.POSIX_SPAWN_DUP2, self._stderr_fd, 2),
                (os.POSIX_SPAWN_DUP2, self._control_fd, CONTROL_FD),
            ],
        )
        # Not `gevent.os.fork_and_watch`: it remembers each child for a minute and walks all of them at each exit.
        watcher = self._loop.child(self.pid, ref=True)
        watcher.start(self._on_exit, watcher)

    def _on_exit(self, watcher: Any) -> None:
        self._on_child(watcher)
        watcher.close()
        self.over.set()


class ScriptRun:
    """One child with its pipes."""

    def __init__(
        self,
        command: Sequence[str],
        env: Mapping[str, str],
        directory: Directory,
        limits: Limits,
        on_control: Callable[[bytes], None],
    ) -> None:
        self._overflow: str | None = None
        pipes = _pipes(3)
        try:
            self.child = Child(command, env=env, directory=directory, fds=[write for _, write in pipes])
        except BaseException:
            for read, _ in pipes:
                os.close(read)
            raise
        finally:
            for _, write in pipes:
                os.close(write)
        (stdout, _), (stderr, _), (control, _) = pipes
        self._stdout = Capture(
            stdout, limit_bytes=limits.stdout_bytes, on_overflow=lambda: self._too_much(Ending.STDOUT_LIMIT)
        )
        self._stderr = Capture(
            stderr, limit_bytes=limits.stderr_bytes, on_overflow=lambda: self._too_much(Ending.STDERR_LIMIT)
        )
        self._control = PipeReader(control, on_control)
        self._stdout.reader.watch()

    def wait(self, deadline: Deadline) -> str:
        """Until the leader has exited, has said too much, or time is up. A grandchild with our pipes does not count."""
        over = self.child.over
        with gevent.Timeout(min(UNWATCHED_SECS, deadline.remaining_secs()), False):
            over.wait()
        while not over.is_set():
            self._stderr.reader.watch()
            self._control.watch()
            remaining_secs = deadline.remaining_secs()
            if remaining_secs <= 0:
                return Ending.DEADLINE
            with gevent.Timeout(remaining_secs, False):
                over.wait()
        return self._overflow or Ending.EXIT

    def drain(self, secs: float) -> None:
        """Read on until both streams end, but not for longer than `secs`: a background job may hold them for hours."""
        give_up_at = time.monotonic() + secs
        pause_secs = 0.0005
        self.take_the_rest()
        while self._stdout.reader.is_open or self._stderr.reader.is_open:
            if self._overflow or time.monotonic() >= give_up_at:
                return
            gevent.sleep(pause_secs)
            pause_secs = min(pause_secs * 2, 0.02)

    def take_the_rest(self) -> None:
        if self._overflow:
            return
        for reader in (self._stdout.reader, self._stderr.reader, self._control):
            if reader.is_open:
                reader.drain()

    def close(self) -> None:
        for reader in (self._stdout.reader, self._stderr.reader, self._control):
            reader.close()

    def outcome(self, ended_by: str) -> Outcome:
        status = self.child.returncode
        return Outcome(
            exit_code=128 - status if status is not None and status < 0 else (status or 0),
            stdout=self._stdout.chunks(),
            stderr=b"".join(self._stderr.chunks()),
            ended_by=self._overflow or ended_by,
        )

    def _too_much(self, ending: str) -> None:
        if self._overflow is None:
            self._overflow = ending
            self.child.over.set()


def _pipes(count: int) -> list[tuple[int, int]]:
    """All of them or none."""
    pipes: list[tuple[int, int]] = []
    try:
        for _ in range(count):
            pipes.append(os.pipe())
    except OSError:
        for fd in (fd for pipe in pipes for fd in pipe):
            os.close(fd)
        raise
    return pipes


def _spawn(args: Sequence[str], env: Mapping[str, str], file_actions: list[Any]) -> int:
    return os.posix_spawnp(
        args[0], list(args), env, file_actions=file_actions, setsid=True, setsigmask=[], setsigdef=RESET_SIGNALS
    )
