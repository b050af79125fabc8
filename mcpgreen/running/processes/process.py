"""The life of one script: its process, its pipes, and how it ended.

Knows nothing about tools or MCP: a `ScriptRun` in, an `Outcome` out. A `Spawner` makes the process, the `reaper` sees
its end, and `runner` stops it with everything that it has started.

Rule: `TRANSITIONS` is all that can happen to a run. However a script ends, its run is settled, stopped and closed.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable, Sequence
from resource import struct_rusage

import gevent
from gevent import subprocess
from gevent.event import Event

from mcpgreen.running.processes.pipes import CHUNK_BYTES, Capture, OutputPlace, PipeReader
from mcpgreen.running.processes.run import DRAIN_SECS, MAX_DRAINS, Deadline, Ending, Outcome, ScriptRun
from mcpgreen.running.processes.spawning import Spawner, reaper

CONTROL_CHUNK_BYTES = 8192  # each line costs more than its bytes
# Most scripts are over by then. What they left in stderr and control pipe is read at once; to watch them costs more.
UNWATCHED_SECS = 0.05


class State:
    """The states of a run."""

    STARTED = "started"
    RUNNING = "running"  # a greenlet waits for it
    EXITED = "exited"  # its leading process has ended
    OVERFLOWED = "overflowed"  # it has printed more than it may
    OVERDUE = "overdue"
    CANCELLED = "cancelled"
    SETTLED = "settled"  # what it has written is read, and nothing keeps it from writing
    STOPPED = "stopped"  # no process is left of it
    CLOSED = "closed"


# What can come after each state. The greenlet of a call may be killed wherever it waits.
TRANSITIONS = {
    State.STARTED: (State.RUNNING, State.CANCELLED),
    State.RUNNING: (State.EXITED, State.OVERFLOWED, State.OVERDUE, State.CANCELLED),
    State.EXITED: (State.SETTLED, State.CANCELLED),
    State.OVERFLOWED: (State.SETTLED, State.CANCELLED),
    State.OVERDUE: (State.SETTLED, State.CANCELLED),
    State.CANCELLED: (State.SETTLED,),
    State.SETTLED: (State.STOPPED, State.CANCELLED),
    State.STOPPED: (State.CLOSED,),
    State.CLOSED: (),
}


class IllegalTransition(Exception):
    """A fault in this program."""


class Child(subprocess.Popen):  # type: ignore[misc]  # gevent has no type information
    """A gevent Popen: its process has been made by a `Spawner`, and its end is seen by the `reaper`. The `bell` is set
    when it has exited or printed too much. Times are those of the monotonic clock; `usage` is what it has used, with
    those of its children that it waited for, and None until its end has been seen. `way` says how it was started, if
    not afresh."""

    def __init__(self, pid: int, command: Sequence[str], tag: int, spawner: Spawner, began_at: float) -> None:
        self.pid = pid
        self.args = command
        self.tag = tag
        self.way = spawner.way
        self.stays = False
        self._spawner = spawner
        self.stdin = self.stdout = self.stderr = None
        self.returncode: int | None = None
        self.bell = Event()
        self.began_at = self.ended_at = began_at
        self.usage: struct_rusage | None = None
        reaper().watch(pid, self._on_change)

    @property
    def exit_code(self) -> int:
        """128 + n after signal n, as a shell says it."""
        code = self.returncode or 0
        return code if code >= 0 else 128 - code

    def _on_change(self, status: int, usage: struct_rusage) -> None:
        """In the hub: it has ended, or was stopped."""
        if os.WIFSTOPPED(status):
            if not self._spawner.has_begun():  # it still waits for its script: nothing would continue it
                os.kill(self.pid, signal.SIGKILL)
            return
        self.returncode = os.waitstatus_to_exitcode(status)
        self.usage = usage
        self.ended_at = time.monotonic()
        self.bell.set()


class RunningScript:
    """One run: a child with its pipes, and its state."""

    def __init__(self, run: ScriptRun, *, spawner: Spawner, tag: int, place: OutputPlace) -> None:
        """Raises OSError when it cannot be started."""
        self._spawner = spawner
        self._is_overdue = False
        self.state = State.STARTED
        read_ends, write_ends = _pipes(3)
        began_at = time.monotonic()  # a short script may be over when `spawn` returns
        try:
            pid = spawner.spawn(run, outputs=write_ends, tag=tag)
            self.child = Child(pid, run.script.command, tag, spawner, began_at)
        except BaseException:
            _close_all(read_ends)
            raise
        finally:
            _close_all(write_ends)
        stdout, stderr, control = read_ends
        self._place = place
        chunk_bytes = CONTROL_CHUNK_BYTES
        if run.tail is None:
            # A script that prints too much is stopped at once.
            limits, on_overflow = run.limits, self.child.bell.set
            self._stdout = Capture(limit_bytes=limits.stdout_bytes, place=place, on_overflow=on_overflow)
            self._stderr = Capture(limit_bytes=limits.stderr_bytes, place=place, on_overflow=on_overflow)
        else:
            self._stdout = self._stderr = run.tail
            self.child.stays, chunk_bytes = True, CHUNK_BYTES
        run.on_start(self._stderr)
        self._stdout_reader = PipeReader(stdout, self._stdout.take)
        self._stderr_reader = PipeReader(stderr, self._stderr.take)
        self._control_reader = PipeReader(control, run.on_control, chunk_bytes=chunk_bytes)
        self._readers = (self._stdout_reader, self._stderr_reader, self._control_reader)
        self._stdout_reader.watch()
        if run.tail is not None:
            run.tail.readers, self._control_reader.on_end = self._readers[:2], run.on_closed
            self._control_reader.watch()

    def become(self, state: str) -> None:
        """Enter another state. Raises IllegalTransition for one that cannot come after this one."""
        if state not in TRANSITIONS[self.state]:
            raise IllegalTransition(f"{state} after {self.state}")
        self.state = state

    def wait(self, deadline: Deadline) -> None:
        """Wait until the leading process has exited or printed too much, or time is up. Others may hold its pipes."""
        self.become(State.RUNNING)
        self.child.bell.wait(min(UNWATCHED_SECS, max(0, deadline.remaining_secs())))
        while self.child.returncode is None and not self._overflow:
            self._stderr_reader.watch()
            self._control_reader.watch()
            remaining_secs = deadline.remaining_secs()
            if remaining_secs <= 0:
                self._is_overdue = True
                self.become(State.OVERDUE)
                return
            self.child.bell.wait(remaining_secs)
        self.become(State.OVERFLOWED if self._overflow else State.EXITED)

    def cancel(self) -> None:
        """Drop its output: no greenlet waits for its outcome any more."""
        self.become(State.CANCELLED)
        for capture in (self._stdout, self._stderr):
            capture.discard()
        self._place.release()

    def settle(self, within_secs: float = 0) -> bool:
        """Lift back-pressure, read all that the script has written, and hear all its reports. If it has exited, wait
        until both streams end, but not for long: a background job may hold them for hours. As long as something comes,
        go on, at most for `within_secs`; return whether it still came then."""
        patience_secs = DRAIN_SECS if self.state == State.EXITED else 0
        heard_at = now = time.monotonic()
        last_at = now + max(patience_secs, min(MAX_DRAINS * patience_secs, within_secs))
        pause_secs, size = 0.0005, self._stdout.size + self._stderr.size
        for capture in (self._stdout, self._stderr):
            capture.place = None  # the rest of the output is small
        for reader in self._readers:
            reader.wake()
        while self._read_more() and not self._overflow and now < min(heard_at + patience_secs, last_at):
            if size != (size := self._stdout.size + self._stderr.size):
                heard_at, pause_secs = now, 0.0005
            gevent.sleep(pause_secs)
            pause_secs = min(pause_secs * 2, 0.02)
            now = time.monotonic()
        self.become(State.SETTLED)
        return now >= last_at and heard_at + patience_secs > last_at

    def note_stopped(self) -> None:
        """No process is left of it: read what it has written in its last moments."""
        self._read_more()
        self.become(State.STOPPED)

    def close(self) -> None:
        self.become(State.CLOSED)
        self._spawner.let_go()
        for reader in self._readers:
            reader.close()

    @property
    def never_began(self) -> bool:
        """Tell whether it was killed before it became the script."""
        return (self.child.returncode or 0) < 0 and not self._spawner.has_begun()

    def outcome(self) -> Outcome:
        stderr = b"".join(self._stderr.chunks())
        ended_by = self._overflow or (Ending.DEADLINE if self._is_overdue else Ending.EXIT)
        return Outcome(self.child.exit_code, self._stdout.chunks(), stderr, ended_by, self._place, self.child)

    def _read_more(self) -> bool:
        """Read what is in the pipes now; return whether there may be more to come."""
        has_more = [reader for reader in self._readers if reader.is_open and reader.drain()]
        is_open = self._stdout_reader.is_open or self._stderr_reader.is_open
        return bool(has_more) or is_open or self._control_reader.is_resting

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
