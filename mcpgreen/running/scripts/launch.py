"""All that decides about one run of a script, and how it is started: checked, as a shell would, with words if it fails.

Tools, prompts, providers and completions differ in who they are, what they see and who hears them; hooks run in a shell
of their own (`hooks`). From there on all go the same way.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import gevent

from mcpgreen import journal
from mcpgreen.errors import Denied, InternalError
from mcpgreen.running.policy.trust import Ground
from mcpgreen.running.processes.deadline import Deadline
from mcpgreen.running.processes.pipes import OnChunk
from mcpgreen.running.processes.process import Outcome
from mcpgreen.running.scripts import shebang
from mcpgreen.settings.settings import Settings

if TYPE_CHECKING:
    from mcpgreen.running.processes.runner import Runner

BUSY_FILE_TRIES = 20
BUSY_FILE_PAUSE_SECS = 0.01


class Script(NamedTuple):
    """What is to be run: how people call it ("Tool 'greet'"), its file and its command, and where such files lie. Of
    what belongs to us, or has been looked at in another way, nobody asks where it lies. `warm` are modules that it
    wants to be loaded ahead, if it is Python; None if it wants a fresh start. A script in shell can read a table of its
    arguments (`text.argument_table`)."""

    label: str
    path: str
    command: Sequence[str]
    ground: Ground | None = None
    warm: tuple[str, ...] | None = ()
    wants_table: bool = False

    def require_safe(self) -> None:
        """Raises Denied if it lies where no such script may lie, or if somebody else could have put it there or changed
        it: whoever can do that could run code as us."""
        try:
            problem = self.ground.problem_with(self.path) if self.ground is not None else None
        except FileNotFoundError:
            raise Denied(f"{self.label} executable missing") from None
        if problem:
            raise Denied(f"{self.label} path rejected by policy: {problem}")


class Limits(NamedTuple):
    """How much a run may say, and how long it may take to leave."""

    stdout_bytes: int
    stderr_bytes: int
    kill_grace_secs: float
    drain_secs: float

    @classmethod
    def of(cls, settings: Settings, *, stdout_bytes: int | None = None) -> Limits:
        """As for tools, but perhaps for what it prints."""
        return cls(
            stdout_bytes=settings.max_tool_output_size if stdout_bytes is None else stdout_bytes,
            stderr_bytes=settings.max_tool_stderr_size or settings.max_tool_output_size,
            kill_grace_secs=settings.kill_grace_secs,
            drain_secs=settings.drain_secs,
        )


class ScriptRun(NamedTuple):
    """One run of a script. `serial` is the number of the call that it is for: its files have it in their names, its
    processes as their tag."""

    script: Script
    env: dict[bytes, bytes]
    deadline: Deadline
    limits: Limits
    serial: int
    on_control: OnChunk


def unheard(chunk: bytes) -> None:
    """For the control pipe of a script that is run for nobody in particular."""


def run_script(runner: Runner, run: ScriptRun) -> Outcome:
    """Run to the end. Raises Denied when it may not run, InternalError when it cannot be started."""
    script = run.script
    script.require_safe()
    tries = 0
    while True:
        try:
            return runner.run(run)
        except OSError as error:
            if error.errno == errno.ENOEXEC and run.script is script:
                # An executable text without a first line that says whom it is for.
                command = [*shebang.runner_of(script.path), script.path, *script.command[1:]]
                run = run._replace(script=script._replace(command=command))
                continue
            tries += 1
            if error.errno != errno.ETXTBSY or tries > BUSY_FILE_TRIES:
                raise _not_started(script, error) from error
        gevent.sleep(BUSY_FILE_PAUSE_SECS)  # an editor or compiler is still writing the file


def _not_started(script: Script, error: OSError) -> InternalError:
    if error.errno == errno.E2BIG:
        reason = "its environment is too large"
    elif error.errno == errno.ENOENT:
        fault = shebang.fault_of(script.path)
        reason = f"its script {fault}" if fault else "the file or its interpreter does not exist"
    else:
        reason = error.strerror or str(error)
    journal.error("%s cannot be started: %s (%s)", script.label, reason, script.path)
    return InternalError(f"{script.label} could not be started: {reason}.")
