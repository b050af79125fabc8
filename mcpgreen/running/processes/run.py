"""What to run, until when, and how it ended: the values that all code for running scripts shares.

Rule: the catalog imports it, so nothing here imports gevent.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from mcpgreen.errors import Denied
from mcpgreen.running.trust import Ground
from mcpgreen.settings.settings import Settings

if TYPE_CHECKING:
    from mcpgreen.running.processes.pipes import Capture, OnChunk, OutputPlace, Tail
    from mcpgreen.running.processes.process import Child
    from mcpgreen.running.resident.process import Exchange

MIN_LEFT_SECS = 0.1
KILL_GRACE_SECS = 1.0  # after SIGTERM comes SIGKILL
DRAIN_SECS = 0.2  # for the rest of the output of a script that has ended
MAX_DRAINS = 10  # so many times as long, while something comes


class Script(NamedTuple):
    """What is to be run: how people call it ("Tool 'greet'"), its file and its command, and the directory for such
    files; no directory for what belongs to us, or has been checked in another way. `warm` are modules that it wants to
    be loaded ahead, if it is Python; None if it wants a fresh start. A shell script gets a table of its arguments."""

    label: str
    path: str
    command: Sequence[str]
    ground: Ground | None = None
    warm: tuple[str, ...] | None = ()
    wants_table: bool = False

    def require_safe(self) -> None:
        """Raises Denied if it lies where no such script may lie, or if another user could have changed it."""
        try:
            problem = self.ground.problem_with(self.path) if self.ground is not None else None
        except FileNotFoundError:
            raise Denied(f"{self.label} executable missing") from None
        if problem:
            raise Denied(f"{self.label} path rejected by policy: {problem}")


class Limits(NamedTuple):
    """How much a run may print."""

    stdout_bytes: int
    stderr_bytes: int

    @classmethod
    def of(cls, settings: Settings, *, stdout_bytes: int | None = None) -> Limits:
        """The limits of tools, if need be with another one for what it prints."""
        most_bytes: int = settings.max_tool_output_size
        return cls(most_bytes if stdout_bytes is None else stdout_bytes, most_bytes)


class Deadline:
    """When a call has to be over. With `extends`, each sign of progress starts the time anew, up to a hard cap."""

    def __init__(self, secs: float, *, extends: bool = False, cap_secs: float = 0) -> None:
        now = time.monotonic()
        self.secs = secs
        self._cap_at = now + cap_secs if extends and cap_secs else math.inf
        self._at = min(now + secs, self._cap_at)
        self.extends = extends
        self.has_seen_progress = False
        self._paused_at: float | None = None  # while time stands still
        self._pauses = 0

    def lengthen(self, secs: float) -> None:
        """Allow this many seconds in all, if that is more."""
        if secs > self.secs:
            self._at += secs - self.secs
            self._cap_at += secs - self.secs
            self.secs = secs

    def pause(self) -> None:
        """Stop the clock: a person is being asked. It goes on after as many calls of `resume`."""
        self._pauses += 1
        if self._paused_at is None:
            self._paused_at = time.monotonic()
            self._at = max(self._at, self._paused_at + MIN_LEFT_SECS)

    def resume(self) -> None:
        self._pauses -= 1
        if self._paused_at is not None and not self._pauses:
            stood_still_secs = time.monotonic() - self._paused_at
            self._paused_at = None
            self._at += stood_still_secs
            self._cap_at += stood_still_secs

    def progressed(self) -> None:
        self.has_seen_progress = True
        if self.extends:
            self._at = min(self._now() + self.secs, self._cap_at)

    def remaining_secs(self) -> float:
        return self._at - self._now()

    @property
    def is_at_cap(self) -> bool:
        return self._at >= self._cap_at

    def _now(self) -> float:
        return time.monotonic() if self._paused_at is None else self._paused_at


class Stays(NamedTuple):
    """How a process is kept between calls: for the `server`, or for each `session`. A limit of 0 is none."""

    scope: str
    workers: int = 1  # processes
    concurrency: int = 1  # calls that each of them serves at a time
    idle_secs: float = 300.0
    max_calls: int = 0
    max_memory_mb: int = 0
    start_secs: float = 20.0


class ScriptRun(NamedTuple):
    """One run of a script. `serial` is the number of the call that it is for: its files have it in their names, its
    processes as their tag. What it prints counts for the share of the `owner`.

    A resident process has a `tail` for the end of what it prints. It reads calls from `calls_fd`, and its control
    pipe carries the answers; `on_closed` is called when it has closed that. `on_start` gets its stderr."""

    script: Script
    env: dict[bytes, bytes]
    deadline: Deadline
    limits: Limits
    serial: int
    on_control: OnChunk
    owner: Hashable = None
    tail: Tail | None = None
    calls_fd: int = -1
    on_closed: Callable[[], None] = lambda: None
    on_start: Callable[[Capture], object] = id


def unheard(chunk: bytes) -> None:
    """Ignore what comes from a control pipe."""


class Ending:
    """Why a run has ended."""

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
    child: Child | Exchange
    fault: str = ""  # of a resident process, as the beginning of a sentence
