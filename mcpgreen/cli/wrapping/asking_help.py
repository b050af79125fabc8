"""Ask a command for its help, and for nothing else.

It gets no stdin, no terminal, little time and little room, and a session of its own, which is ended with all that it
started, however it ended. On Linux, processes that have left the session are found and ended as well.

Rule: the words of the command and `--help` are all that is ever run; `-h` only if `--help` was refused, since it means
something else to many commands.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from mcpgreen.cli import children
from mcpgreen.errors import ProjectError
from mcpgreen.running.processes.strays import Strays, adopted_strays

HELP_SECS = 20.0
MAX_HELP_BYTES = 1 << 20
LOOK_SECS = 0.05
STRAYS_SECS = 1.0
SHOWN_CHARS = 200

USAGE = re.compile(r"(?i)\busage\b|\bsynopsis\b|^ +--?\w", re.MULTILINE)
# One language, no colours, no pager, and lines that are not broken.
ENVIRONMENT = {
    "LC_ALL": "C.UTF-8",
    "LANGUAGE": "",
    "TERM": "dumb",
    "NO_COLOR": "1",
    "COLUMNS": "200",
    "MANWIDTH": "200",
    "PAGER": "cat",
    "MANPAGER": "cat",
    "GIT_PAGER": "cat",
}
UNWANTED = ("FORCE_COLOR", "CLICOLOR_FORCE", "PYTHONINSPECT")


class Help(NamedTuple):
    text: str
    option: str  # that asked for it


class _Ended(NamedTuple):
    status: int | None  # None: it took too long, or said too much
    stdout: str
    stderr: str
    is_late: bool

    def help_text(self) -> str:
        """What it said, if that is help."""
        if self.status == 0:
            return self.stdout if self.stdout.strip() else self.stderr.strip()
        # A command that does not know the option may tell its usage all the same.
        return next((text for text in (self.stdout, self.stderr) if USAGE.search(text)), "")


def help_of(command: Sequence[str], *, directory: str, secs: float | None = None) -> Help:
    """The help of a command. Raises ProjectError when it has none."""
    secs = secs or HELP_SECS
    shown = " ".join(command)[:SHOWN_CHARS]
    ended = None
    for option in ("--help", "-h"):
        ended = _run([*command, option], directory=directory, secs=secs)
        text = ended.help_text()
        if text:
            return Help(text, option)
        if ended.is_late:
            reason = f"it did not end within {secs:g} s, and was stopped; give it more with --timeout"
            raise ProjectError(f"{shown} {option}", reason)
        if ended.status == 0:
            break  # it knows --help, and has nothing to say
    assert ended is not None
    said = " ".join((ended.stderr or ended.stdout).split())[:SHOWN_CHARS]
    reason = "it has no help that can be read" + (f" ({said})" if said.isprintable() and said else "")
    raise ProjectError(shown, f"{reason}; write a tool by hand, as docs/tools.md shows")


def _run(words: Sequence[str], *, directory: str, secs: float) -> _Ended:
    strays = adopted_strays(set(), set())
    environ = {name: value for name, value in os.environ.items() if name not in UNWANTED}
    try:
        process = children.started(
            words, env=environ | ENVIRONMENT, cwd=directory, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
    except OSError as error:
        raise ProjectError(words[0], f"it cannot be started: {error.strerror}") from error
    try:
        stdout, stderr, is_late = _heard(process, until=time.monotonic() + secs)
        status = process.poll()
    finally:
        children.end(process)
        if strays is not None:
            _end_strays(strays)
    return _Ended(status, stdout, stderr, is_late)


def _heard(process: subprocess.Popen[bytes], *, until: float) -> tuple[str, str, bool]:
    """What it says until it has ended, or has said enough; and whether its time was over before."""
    assert process.stdout is not None and process.stderr is not None
    said = {process.stdout.fileno(): b"", process.stderr.fileno(): b""}
    pipes = list(said)
    is_late = is_enough = False
    while pipes and not is_late and not is_enough:
        # A command that has ended may have left a process that holds the pipes: what is there is read, and no more.
        has_ended = process.poll() is not None
        heard = children.hear(pipes, 0.0 if has_ended else min(until, time.monotonic() + LOOK_SECS))
        for pipe, chunk in heard:
            said[pipe] += chunk
        is_enough = max(map(len, said.values())) > MAX_HELP_BYTES or (has_ended and not heard)
        is_late = not is_enough and time.monotonic() >= until
    if not is_late and not is_enough:  # it has closed both, and is about to end
        with suppress(subprocess.TimeoutExpired):
            process.wait(max(0.0, until - time.monotonic()))
    stdout, stderr = (each[:MAX_HELP_BYTES].decode("utf-8", "replace") for each in said.values())
    return stdout, stderr, is_late


def _end_strays(strays: Strays) -> None:
    """End processes that left the session and are our children by now; again, as long as one of them may be forking."""
    until = time.monotonic() + STRAYS_SECS
    while strays.kill() and time.monotonic() < until:
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.005)
    strays.close()
