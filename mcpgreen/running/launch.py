"""Run a script of a project: check that it may run, start it as a shell would, and say why it cannot be started.

Tools, prompts, providers and completions are all run by this. Hooks run in a shell of their own (`hooks`).
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import gevent

from mcpgreen import journal
from mcpgreen.errors import InternalError
from mcpgreen.running.processes.run import Outcome, Script, ScriptRun
from mcpgreen.running.scripts import shebang

if TYPE_CHECKING:
    from mcpgreen.running.runner import Runner

BUSY_FILE_TRIES = 20
BUSY_FILE_PAUSE_SECS = 0.01


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
                # An executable text without a first line that names its interpreter.
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
        fault = shebang.fault_of(script.path, shows_directory=False)
        reason = f"its script {fault}" if fault else "the file or its interpreter does not exist"
    else:
        reason = error.strerror or str(error)
    journal.error("%s cannot be started: %s (%s)", script.label, reason, script.path)
    return InternalError(f"{script.label} could not be started: {reason}.")
