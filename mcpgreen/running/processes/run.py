"""What is to be run, and what came of it: the values that everything about running scripts has in common."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from mcpgreen.errors import Denied
from mcpgreen.running.processes.deadline import Deadline
from mcpgreen.running.processes.pipes import OnChunk, OutputPlace
from mcpgreen.running.trust import Ground
from mcpgreen.settings.settings import Settings

if TYPE_CHECKING:
    from mcpgreen.running.processes.process import Child


KILL_GRACE_SECS = 1.0  # after SIGTERM comes SIGKILL
DRAIN_SECS = 0.2  # for the rest of the output of a script that has ended


class Script(NamedTuple):
    """What is to be run: how people call it ("Tool 'greet'"), its file and its command, and the directory for such
    files; no directory for what belongs to us, or has been checked in another way. `warm` are modules that it
    wants to be loaded ahead, if it is Python; None if it wants a fresh start. A script in shell can read a table of its
    arguments (`text.argument_table`)."""

    label: str
    path: str
    command: Sequence[str]
    ground: Ground | None = None
    warm: tuple[str, ...] | None = ()
    wants_table: bool = False

    def require_safe(self) -> None:
        """Raises Denied if it lies where no such script may lie, or if another user could have put it there or changed
        it: that user could run code as us."""
        try:
            problem = self.ground.problem_with(self.path) if self.ground is not None else None
        except FileNotFoundError:
            raise Denied(f"{self.label} executable missing") from None
        if problem:
            raise Denied(f"{self.label} path rejected by policy: {problem}")


class Limits(NamedTuple):
    """How much a run may print, and how long it may take to end."""

    stdout_bytes: int
    stderr_bytes: int
    kill_grace_secs: float
    drain_secs: float

    @classmethod
    def of(cls, settings: Settings, *, stdout_bytes: int | None = None) -> Limits:
        """The limits of tools, if need be with another one for what it prints."""
        return cls(
            stdout_bytes=settings.max_tool_output_size if stdout_bytes is None else stdout_bytes,
            stderr_bytes=settings.max_tool_output_size,
            kill_grace_secs=KILL_GRACE_SECS,
            drain_secs=DRAIN_SECS,
        )


class ScriptRun(NamedTuple):
    """One run of a script. `serial` is the number of the call that it is for: its files have it in their names, its
    processes as their tag. What it prints counts for the share of the `owner`."""

    script: Script
    env: dict[bytes, bytes]
    deadline: Deadline
    limits: Limits
    serial: int
    on_control: OnChunk
    owner: Hashable = None


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
    child: Child
