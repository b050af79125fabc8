"""Ask a command for its help, and for nothing else.

The command gets no stdin, no terminal, little time and limited output. It runs in a session of its own, which is killed
at the end; on Linux, so are processes that have left the session.

Rule: only the words of the command with `--help` are run; `-h` only if `--help` is refused, because it means something
else to many commands.
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
from mcpgreen.cli.children import Ended
from mcpgreen.errors import ProjectError
from mcpgreen.running.processes.stopping import Strays, adopted_strays

HELP_SECS = 20.0
MAX_HELP_BYTES = 1 << 20
STRAYS_SECS = 1.0
SHOWN_CHARS = 200

USAGE = re.compile(r"(?i)\busage\b|\bsynopsis\b|^ +--?\w", re.MULTILINE)
# English, no colours, no pager, and long lines.
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
    option: str  # --help or -h


def ask_help(command: Sequence[str], *, directory: str, secs: float | None = None) -> Help:
    """Run a command with --help. Raises ProjectError if it has no help."""
    secs = secs or HELP_SECS
    shown = " ".join(command)[:SHOWN_CHARS]
    ended = None
    for option in ("--help", "-h"):
        ended = _run([*command, option], directory=directory, secs=secs)
        if text := _help_in(ended):
            return Help(text, option)
        if ended.is_late:
            reason = f"it did not end within {secs:g} s, and was stopped; give it more with --timeout"
            raise ProjectError(f"{shown} {option}", reason)
        if ended.status == 0:
            break  # it knows --help, and prints nothing
    assert ended is not None
    said = " ".join((ended.stderr or ended.stdout).split())[:SHOWN_CHARS]
    reason = "it has no help that can be read" + (f" ({said})" if said.isprintable() and said else "")
    raise ProjectError(shown, f"{reason}; write a tool by hand, as docs/tools.md shows")


def _help_in(ended: Ended) -> str:
    """The output, if it is a help text."""
    if ended.status == 0:
        return ended.stdout if ended.stdout.strip() else ended.stderr.strip()
    # A command that does not know the option may print its usage all the same.
    return next((text for text in (ended.stdout, ended.stderr) if USAGE.search(text)), "")


def _run(words: Sequence[str], *, directory: str, secs: float) -> Ended:
    strays = adopted_strays(set(), set())
    environ = {name: value for name, value in os.environ.items() if name not in UNWANTED}
    try:
        process = children.start(
            words, env=environ | ENVIRONMENT, cwd=directory, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
    except OSError as error:
        raise ProjectError(words[0], f"it cannot be started: {error.strerror}") from error
    try:
        return children.finish(process, until=time.monotonic() + secs, max_bytes=MAX_HELP_BYTES)
    finally:
        children.end(process)
        if strays is not None:
            _end_strays(strays)


def _end_strays(strays: Strays) -> None:
    """Kill processes that left the session and became our children; repeatedly, because they may be forking."""
    until = time.monotonic() + STRAYS_SECS
    while strays.kill() and time.monotonic() < until:
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.005)
    strays.close()
