"""Start a script as a shell would, and say in words why one could not be started."""

from __future__ import annotations

import errno
from collections.abc import Sequence

import gevent

from mcpgreen import journal
from mcpgreen.errors import InternalError
from mcpgreen.running import shebang
from mcpgreen.running.deadline import Deadline
from mcpgreen.running.pipes import OnChunk
from mcpgreen.running.process import Outcome
from mcpgreen.running.runner import Runner

BUSY_FILE_TRIES = 20
BUSY_FILE_PAUSE_SECS = 0.01


class Script:
    """What is to be run: the command, and how people call it ("Tool 'greet'")."""

    __slots__ = ("command", "label", "path")

    def __init__(self, label: str, path: str, command: Sequence[str]) -> None:
        self.label = label
        self.path = path
        self.command = command


def run_script(
    runner: Runner,
    script: Script,
    *,
    env: dict[bytes, bytes],
    deadline: Deadline,
    on_control: OnChunk,
    stdout_bytes: int | None = None,
) -> Outcome:
    """Run to the end. Raises InternalError when it cannot be started."""
    try:
        return _run(runner, script.command, env, deadline, on_control, stdout_bytes)
    except OSError as error:
        if error.errno != errno.ENOEXEC:
            raise _not_started(script, error) from error
    try:
        # An executable text without a shebang: what a shell would do.
        return _run(runner, ["/bin/sh", script.path, *script.command[1:]], env, deadline, on_control, stdout_bytes)
    except OSError as error:
        raise _not_started(script, error) from error


def _run(
    runner: Runner,
    command: Sequence[str],
    env: dict[bytes, bytes],
    deadline: Deadline,
    on_control: OnChunk,
    stdout_bytes: int | None,
) -> Outcome:
    for _ in range(BUSY_FILE_TRIES):
        try:
            return runner.run(command, env=env, deadline=deadline, on_control=on_control, stdout_bytes=stdout_bytes)
        except OSError as error:
            if error.errno != errno.ETXTBSY:
                raise
            gevent.sleep(BUSY_FILE_PAUSE_SECS)  # an editor or compiler is still writing the file
    return runner.run(command, env=env, deadline=deadline, on_control=on_control, stdout_bytes=stdout_bytes)


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
