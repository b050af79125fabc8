"""Start one child process, collect what it says, and tell how it ended.

Knows nothing about tools or MCP: a `ScriptRun` in, an `Outcome` out. How the process comes into being is for a
`Spawner`, and its end is noticed by the `reaper`.

Rule: ending the child, and whoever it started, is not done here but by `runner`, whatever happens.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from resource import struct_rusage
from typing import TYPE_CHECKING, Any, NamedTuple

import gevent
from gevent import subprocess
from gevent.event import AsyncResult
from gevent.hub import Waiter

from mcpgreen.running.processes.deadline import Deadline
from mcpgreen.running.processes.last_word import LastWord
from mcpgreen.running.processes.output_places import OutputPlace
from mcpgreen.running.processes.pipes import Capture, PipeReader
from mcpgreen.running.processes.reaper import reaper
from mcpgreen.running.processes.spawning import Spawner

if TYPE_CHECKING:
    from mcpgreen.running.scripts.launch import ScriptRun

CONTROL_CHUNK_BYTES = 8192  # each line costs more than its bytes
# Most scripts are over by then, and what they left in these two pipes is read at once; watching costs them more.
UNWATCHED_SECS = 0.05
# Until then a forked script is usually over, and has told so; what it printed is read then, and it wakes us once.
UNREAD_SECS = 0.002


class Ending:
    """Why a child is over."""

    EXIT = "exit"
    TOLD = "told"  # it says that it is over; its process has to go yet
    DEADLINE = "deadline"
    STDOUT_LIMIT = "stdout limit"
    STDERR_LIMIT = "stderr limit"


class Child(subprocess.Popen):  # type: ignore[misc]  # gevent has no type information
    """A gevent Popen whose process a `Spawner` has made and whose end is seen by the `reaper`, and a bell for whoever
    waits for it. Times are those of the monotonic clock; `usage` is what it has used, with those of its children that
    it waited for, and None until its end has been seen. `is_warm`: it was forked, with its interpreter. `on_gone` is
    called in the hub when its end is seen."""

    def __init__(self, pid: int, command: Sequence[str], tag: int, *, is_warm: bool) -> None:
        self.pid = pid
        self.args = command
        self.tag = tag
        self.is_warm = is_warm
        self.stdin = self.stdout = self.stderr = None
        self.returncode: int | None = None
        self.told_code: int | None = None  # that it will end with, as it says
        self.on_gone: Callable[[], None] | None = None
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

    def tell_end(self, code: int) -> None:
        """In the hub: it says that it is over."""
        if self.returncode is None:
            self.told_code = code
            self.ended_at = time.monotonic()
            self.ring()

    @property
    def exit_code(self) -> int:
        """128 + n after signal n, as a shell would say it."""
        code = self.returncode if self.returncode is not None else self.told_code or 0
        return code if code >= 0 else 128 - code

    def _on_change(self, status: int, usage: struct_rusage) -> None:
        if not os.WIFSTOPPED(status):
            self.returncode = os.waitstatus_to_exitcode(status)
            self.usage = usage
            if self.told_code is None:
                self.ended_at = time.monotonic()
            self.result.set(self.returncode)
            self.ring()
            if self.on_gone is not None:
                self.on_gone()


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
        word = spawner.last_word
        self._last_word = LastWord(word, run.on_control, self.child.tell_end) if word else None
        on_control = self._last_word.take if self._last_word is not None else run.on_control
        self._control_reader = PipeReader(control, on_control, chunk_bytes=CONTROL_CHUNK_BYTES)
        self._readers = (self._stdout_reader, self._stderr_reader, self._control_reader)
        (self._control_reader if word else self._stdout_reader).watch()

    def wait(self, deadline: Deadline) -> str:
        """Until the leader has exited or tells so, has said too much, or time is up. A grandchild with our pipes does
        not count."""
        if self._last_word is not None:
            self._wait_for_bell(UNREAD_SECS, deadline)
            if self._is_waited_for:
                self._stdout_reader.watch()
        if self._is_waited_for:
            self._wait_for_bell(UNWATCHED_SECS, deadline)
        while self._is_waited_for:
            self._stderr_reader.watch()
            self._control_reader.watch()
            remaining_secs = deadline.remaining_secs()
            if remaining_secs <= 0:
                return Ending.DEADLINE
            with gevent.Timeout(remaining_secs, False):
                self.child.wait_for_bell()
        if self.child.returncode is None and not self._overflow:
            return Ending.TOLD
        return self._overflow or Ending.EXIT

    def wait_until_gone(self, deadline: Deadline) -> str:
        """After it has told that it is over."""
        self.child.told_code = None
        return self.wait(deadline)

    def _wait_for_bell(self, secs: float, deadline: Deadline) -> None:
        timer = gevent.get_hub().loop.timer(min(secs, max(0, deadline.remaining_secs())))
        timer.start(self.child.ring)
        try:
            self.child.wait_for_bell()
        finally:
            timer.close()

    @property
    def _is_waited_for(self) -> bool:
        return self.child.returncode is None and self.child.told_code is None and not self._overflow

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
            if self._last_word is not None:
                self._last_word.give_back()

    @property
    def never_began(self) -> bool:
        """Whether it was killed before it was the script."""
        return (self.child.returncode or 0) < 0 and not self._spawner.has_begun()

    def close(self) -> None:
        self._spawner.let_go()
        for reader in self._readers:
            reader.close()

    def outcome(self, ended_by: str) -> Outcome:
        child, ended_by = self.child, self._overflow or ended_by
        stderr = b"".join(self._stderr.chunks())
        return Outcome(child.exit_code, self._stdout.chunks(), stderr, ended_by, self._place, child)

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
