"""Run one child process and say how it ended.

Knows nothing about tools or MCP: a command in, an `Outcome` out. The child gets a session of its own, no stdin, no
descriptor but its output and the control pipe. It is started by `posix_spawn`: gevent's own way forks the whole
server and runs Python in the copy, which is five times as slow and slower still the more memory the server holds.

Rule: whoever leaves `Runner.run` (end, deadline, cancel, too much output) leaves no process behind. When the leaving
greenlet is being killed, the stopping goes on in a greenlet of its own, which cannot be killed a second time.
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

from mcpgreen import journal
from mcpgreen.running import descendants
from mcpgreen.running.guardian import Guardian
from mcpgreen.running.pipes import Capture, PipeReader

CONTROL_FD = 97  # above what scripts use by hand (3 to 9) and what shells take by themselves (10 and up, 63 and down)
RESET_SIGNALS = [signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
KILL_PATIENCE_SECS = 5.0


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
    stdout: bytes
    stderr: bytes
    took_secs: float
    ended_by: str


class Deadline:
    """When a call has to be over. With `extends`, each sign of progress starts the time anew, up to a hard cap."""

    __slots__ = ("_at", "_cap_at", "_secs", "extends")

    def __init__(self, secs: float, *, extends: bool = False, cap_secs: float = 0) -> None:
        now = time.monotonic()
        self._secs = secs
        self._at = now + secs
        self._cap_at = now + cap_secs if extends and cap_secs else None
        self.extends = extends
        self._bound()

    def progressed(self) -> None:
        if self.extends:
            self._at = time.monotonic() + self._secs
            self._bound()

    def remaining_secs(self) -> float:
        return self._at - time.monotonic()

    @property
    def is_at_cap(self) -> bool:
        return self._cap_at is not None and self._at >= self._cap_at

    def _bound(self) -> None:
        if self._cap_at is not None:
            self._at = min(self._at, self._cap_at)


class Child(subprocess.Popen):  # type: ignore[misc]  # gevent has no type information
    """A gevent Popen whose process is created by posix_spawn."""

    def __init__(self, command: Sequence[str], *, env: Mapping[str, str], directory_fd: int, fds: Sequence[int]) -> None:
        self._directory_fd = directory_fd
        self._stdout_fd, self._stderr_fd, self._control_fd = fds
        self.over = Event()
        super().__init__(command, env=env)

    def _execute_child(self, args: Sequence[str], executable: Any, *rest: Any) -> None:
        env = rest[4]
        self._loop.install_sigchld()
        self.pid = _spawn_in(
            self._directory_fd,
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


class _Leader(NamedTuple):
    """A child that we started: how its descendants can be told from others."""

    pid: int
    mark: str
    since_ticks: int


class Runner:
    """Starts children and knows all that are alive, so that the server can stop them together."""

    def __init__(self, *, directory: str, state_dir: str, mark: str, limits: Limits) -> None:
        self._directory_fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        self._state_dir = state_dir
        self._mark = mark
        self._limits = limits
        self._guardian: Guardian | None = None
        self._adopts_orphans = False
        self._leaders: dict[int, _Leader] = {}
        self._stoppers: set[Any] = set()
        self._count = 0

    def run(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str],
        deadline: Deadline,
        on_control: Callable[[bytes], None],
    ) -> Outcome:
        """Run to the end. Raises OSError when the command cannot be started."""
        self._prepare()
        self._count += 1
        mark = f"{self._mark}.{self._count}"
        started_at = time.monotonic()
        since_ticks = descendants.ticks_since_boot() if self._adopts_orphans else 0
        run = _Run(command, {**env, descendants.CALL_MARK: mark}, self._directory_fd, self._limits, on_control)
        leader = self._leaders[run.child.pid] = _Leader(run.child.pid, mark, since_ticks)
        try:
            ended_by = run.wait(deadline)
            if ended_by == Ending.EXIT:
                run.drain(self._limits.drain_secs)
            self._stop(run.child, leader)
            run.take_the_rest()
        except BaseException:
            run.close()
            self._stop_later(run.child, leader)
            raise
        run.close()
        return run.outcome(ended_by, time.monotonic() - started_at)

    def stop_all(self, *, grace_secs: float) -> None:
        """Stop every child and wait until all are gone."""
        self._signal_all(signal.SIGTERM)
        give_up_at = time.monotonic() + grace_secs
        while not self.is_idle and time.monotonic() < give_up_at:
            gevent.sleep(0.005)
        while not self.is_idle and time.monotonic() < give_up_at + KILL_PATIENCE_SECS:
            self._signal_all(signal.SIGKILL)
            gevent.sleep(0.005)

    def after_stopping(self, action: Callable[[], None]) -> None:
        """Do this when the children that are being stopped now are gone."""
        waiting_for = list(self._stoppers)

        def wait_and_act() -> None:
            gevent.joinall(waiting_for)
            action()

        self._in_background(wait_and_act)

    def close(self) -> None:
        """After `stop_all`: let go of the guardian and the directory."""
        if self._guardian is not None:
            self._guardian.dismiss()
            self._guardian = None
        os.close(self._directory_fd)

    @property
    def is_idle(self) -> bool:
        return not self._leaders and not self._stoppers

    def _prepare(self) -> None:
        if self._guardian is None:
            gevent.get_hub().loop.install_sigchld()
            self._adopts_orphans = descendants.adopt_orphans()
            self._guardian = Guardian(f"{descendants.CALL_MARK}={self._mark}.", self._state_dir)

    def _stop_later(self, child: Child, leader: _Leader) -> None:
        # The first signal goes out now: a cancelled tool should not live until the next turn of the hub.
        self._signal(leader, signal.SIGTERM)
        self._in_background(self._stop, child, leader)

    def _in_background(self, function: Callable[..., None], *values: Any) -> None:
        stopper = gevent.spawn(function, *values)
        self._stoppers.add(stopper)
        stopper.rawlink(self._stoppers.discard)

    def _stop(self, child: Child, leader: _Leader) -> None:
        """TERM, grace, KILL: to the group and to whoever left it. Nothing to do when all have ended by themselves."""
        if self._is_anything_left(child, leader):
            self._signal(leader, signal.SIGTERM)
            if not self._wait_until_gone(child, leader, self._limits.kill_grace_secs):
                self._kill(child, leader)
        self._leaders.pop(leader.pid, None)

    def _kill(self, child: Child, leader: _Leader) -> None:
        give_up_at = time.monotonic() + KILL_PATIENCE_SECS
        while time.monotonic() < give_up_at:
            self._signal(leader, signal.SIGKILL)
            if self._wait_until_gone(child, leader, 0.1):
                return
        journal.error("process group %d does not die", leader.pid)

    def _wait_until_gone(self, child: Child, leader: _Leader, secs: float) -> bool:
        give_up_at = time.monotonic() + secs
        pause_secs = 0.0002
        while self._is_anything_left(child, leader):
            if time.monotonic() >= give_up_at:
                return False
            gevent.sleep(pause_secs)
            pause_secs = min(pause_secs * 2, 0.02)
        return True

    def _is_anything_left(self, child: Child, leader: _Leader) -> bool:
        return child.returncode is None or _signal_group(leader.pid, 0) or bool(self._strays(leader))

    def _signal_all(self, number: int) -> None:
        for leader in list(self._leaders.values()):
            self._signal(leader, number)

    def _signal(self, leader: _Leader, number: int) -> None:
        # Those who left the group first: once the group is dead, the tree that leads to them is gone.
        if self._adopts_orphans:
            for pid in [*descendants.with_descendants([leader.pid])[1:], *self._strays(leader)]:
                _signal_process(pid, number)
        _signal_group(leader.pid, number)

    def _strays(self, leader: _Leader) -> list[int]:
        """Adopted processes of this call, with everything below them."""
        if not self._adopts_orphans:
            return []
        guardian = self._guardian.pid if self._guardian else 0
        mine = []
        for pid in descendants.children_of("self"):
            if pid in self._leaders or pid == guardian:
                continue
            verdict = descendants.belongs_to(
                pid, leader=leader.pid, mark=leader.mark, since_ticks=leader.since_ticks
            )
            # Who hides can only be this call's when no other call runs.
            if verdict or (verdict is None and len(self._leaders) <= 1):
                mine.append(pid)
        return descendants.with_descendants(mine) if mine else mine


class _Run:
    """One child with its pipes."""

    def __init__(
        self,
        command: Sequence[str],
        env: Mapping[str, str],
        directory_fd: int,
        limits: Limits,
        on_control: Callable[[bytes], None],
    ) -> None:
        self._overflow: str | None = None
        pipes = [os.pipe() for _ in range(3)]
        try:
            self.child = Child(command, env=env, directory_fd=directory_fd, fds=[write for _, write in pipes])
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

    def wait(self, deadline: Deadline) -> str:
        """Until the leader has exited, has said too much, or time is up. A grandchild with our pipes does not count."""
        over = self.child.over
        while not over.is_set():
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
        for reader in (self._stdout.reader, self._stderr.reader, self._control):
            if not self._overflow:
                reader.drain()

    def close(self) -> None:
        for reader in (self._stdout.reader, self._stderr.reader, self._control):
            reader.close()

    def outcome(self, ended_by: str, took_secs: float) -> Outcome:
        status = self.child.returncode
        return Outcome(
            exit_code=128 - status if status is not None and status < 0 else (status or 0),
            stdout=self._stdout.content(),
            stderr=self._stderr.content(),
            took_secs=took_secs,
            ended_by=self._overflow or ended_by,
        )

    def _too_much(self, ending: str) -> None:
        if self._overflow is None:
            self._overflow = ending
            self.child.over.set()


def _spawn_in(directory_fd: int, args: Sequence[str], env: Mapping[str, str], file_actions: list[Any]) -> int:
    """posix_spawn in another directory. No greenlet can switch between the two changes of directory."""
    back_fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fchdir(directory_fd)
        return os.posix_spawn(
            args[0], args, env, file_actions=file_actions, setsid=True, setsigmask=[], setsigdef=RESET_SIGNALS
        )
    finally:
        os.fchdir(back_fd)
        os.close(back_fd)


def _signal_group(leader: int, number: int) -> bool:
    """Whether there was anybody to signal."""
    try:
        os.killpg(leader, number)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # somebody there has changed its user; it is out of our reach but alive
    return True


def _signal_process(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return
