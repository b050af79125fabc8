"""Start one child process, collect what it says, and tell how it ended.

Knows nothing about tools or MCP: a `ScriptRun` in, an `Outcome` out. How the process comes into being is for a
`Spawner`, and its end is noticed by the `reaper`.

Rule: ending the child, and whoever it started, is not done here but by `runner`, whatever happens.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from resource import struct_rusage
from typing import TYPE_CHECKING, Any, NamedTuple

import gevent
from gevent import subprocess
from gevent.event import AsyncResult
from gevent.hub import Waiter

from mcpgreen.running.processes.deadline import Deadline
from mcpgreen.running.processes.output_places import OutputPlace
from mcpgreen.running.processes.pipes import Capture, PipeReader
from mcpgreen.running.processes.reaper import reaper
from mcpgreen.running.processes.spawning import Spawner

if TYPE_CHECKING:
    from mcpgreen.running.scripts.launch import ScriptRun

CONTROL_CHUNK_BYTES = 8192  # each line costs more than its bytes
# Most scripts are over by then, and what they left in these two pipes is read at once; watching costs them more.
UNWATCHED_SECS = 0.05


class Ending:
    """Why a child is over."""

    EXIT = "exit"
    DEADLINE = "deadline"
    STDOUT_LIMIT = "stdout limit"
    STDERR_LIMIT = "stderr limit"


class Child(subprocess.Popen):  # type: ignore[misc]  # gevent has no type information
    """A gevent Popen whose process a `Spawner` has made and whose end is seen by the `reaper`, and a bell for whoever
    waits for it. Times are those of the monotonic clock; `usage` is what it has used, with those of its children that
    it waited for, and None until its end has been seen. `is_warm`: it was forked, with its interpreter."""

    def __init__(self, pid: int, command: Sequence[str], tag: int, *, is_warm: bool) -> None:
        self.pid = pid
        self.args = command
        self.tag = tag
        self.is_warm = is_warm
        self.stdin = self.stdout = self.stderr = None
        self.returncode: int | None = None
        self.result = AsyncResult()
        self.began_at = self.ended_at = time.monotonic()
        self.usage: struct_rusage | None = None
        self._waiter: Any = None
        reaper().watch(pid, self._on_change)

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

    def _on_change(self, status: int, usage: struct_rusage) -> None:
        if not os.WIFSTOPPED(status):
            self.returncode = os.waitstatus_to_exitcode(status)
            self.usage = usage
            self.ended_at = time.monotonic()
            self.result.set(self.returncode)
            self.ring()


class Outcome(NamedTuple):
    exit_code: int  # 128 + n after signal n, as a shell would say it
    stdout: list[bytes]  # in chunks: see `jsontext.LargeText`
    stderr: bytes
    ended_by: str
    place: OutputPlace  # in memory, until it is given back
    child: Child


class RunningScript:
    """One child with its pipes."""

    def __init__(self, run: ScriptRun, *, spawner: Spawner, tag: int, place: OutputPlace) -> None:
        self._spawner = spawner
        read_ends, write_ends = _pipes(3)
        try:
            pid = spawner.spawn(run, outputs=write_ends, tag=tag)
            self.child = Child(pid, run.script.command, tag, is_warm=spawner.is_warm)
        except BaseException:
            _close_all(read_ends)
            raise
        finally:
            _close_all(write_ends)
        stdout, stderr, control = read_ends
        # Who says too much is not waited for.
        self._place = place
        self._stdout = Capture(limit_bytes=run.limits.stdout_bytes, place=place, on_overflow=self.child.ring)
        self._stderr = Capture(limit_bytes=run.limits.stderr_bytes, place=place, on_overflow=self.child.ring)
        self._stdout_reader = PipeReader(stdout, self._stdout.take, may_grow=True)
        self._stderr_reader = PipeReader(stderr, self._stderr.take, may_grow=True)
        self._control_reader = PipeReader(control, run.on_control, chunk_bytes=CONTROL_CHUNK_BYTES)
        self._readers = (self._stdout_reader, self._stderr_reader, self._control_reader)
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
            for reader in self._readers:
                reader.drain()

    @property
    def never_began(self) -> bool:
        """Whether it was killed before it was the script."""
        return (self.child.returncode or 0) < 0 and not self._spawner.has_begun()

    def close(self) -> None:
        self._spawner.let_go()
        for reader in self._readers:
            reader.close()

    def outcome(self, ended_by: str) -> Outcome:
        code = self.child.returncode or 0
        code = code if code >= 0 else 128 - code
        stderr = b"".join(self._stderr.chunks())
        return Outcome(code, self._stdout.chunks(), stderr, self._overflow or ended_by, self._place, self.child)

    @property
    def _overflow(self) -> str | None:
        if self._stdout.was_exceeded:
            return Ending.STDOUT_LIMIT
        return Ending.STDERR_LIMIT if self._stderr.was_exceeded else None


def _pipes(count: int) -> tuple[list[int], list[int]]:
    """The ends to read from and those to write to, all of them or none."""
    ends: list[int] = []
    try:
        for _ in range(count):
            ends += os.pipe()
    except OSError:
        _close_all(ends)
        raise
    return ends[::2], ends[1::2]


def _close_all(fds: Iterable[int]) -> None:
    for fd in fds:
        os.close(fd)
