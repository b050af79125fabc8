"""Run another program to ask it something: in a session of its own, with a time limit, and ended whatever happens.

`outputs_of` is for programs of the system, which get no stdin and say no more than is of use.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice

ASK_SECS = 10.0
MAX_OUTPUT_BYTES = 65_536
AT_ONCE = 4
READ_BYTES = 65_536


def outputs_of(commands: Sequence[Sequence[str]], *, path: str) -> Iterator[tuple[int | None, str]]:
    """Of each command, in order, the exit status, None if it could not be started or had to be stopped, and what it
    said on stdout and stderr. Several run at the same time."""
    # Nothing of ours: variables can make an interpreter run something (BASH_ENV, NODE_OPTIONS, PYTHONSTARTUP).
    env = {"PATH": path, "LC_ALL": "C", "PYTHONUTF8": "1"}
    running: deque[subprocess.Popen[bytes] | None] = deque()
    waiting = iter(commands)
    try:
        while True:
            for words in islice(waiting, AT_ONCE - len(running)):
                running.append(_asked(words, env))
            if not running:
                return
            yield _answer(running[0])
            running.popleft()
    finally:
        for child in running:
            if child is not None:
                end(child)


def _asked(words: Sequence[str], env: Mapping[str, str]) -> subprocess.Popen[bytes] | None:
    try:
        return started(words, env=env, cwd=os.sep, stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT)
    except OSError:
        return None


def _answer(child: subprocess.Popen[bytes] | None) -> tuple[int | None, str]:
    if child is None:
        return None, ""
    assert child.stdout is not None
    said, pipes = b"", [child.stdout.fileno()]
    give_up_at = time.monotonic() + ASK_SECS
    try:
        while pipes and len(said) < MAX_OUTPUT_BYTES and (heard := hear(pipes, give_up_at)):
            said += heard[0][1]
        if len(said) < MAX_OUTPUT_BYTES:
            with suppress(subprocess.TimeoutExpired):
                child.wait(max(0.0, give_up_at - time.monotonic()))
        return child.poll(), said.decode("utf-8", "replace")
    finally:
        end(child)


def started(
    words: Sequence[str], *, env: Mapping[str, str], cwd: str, stdin: int, stderr: int
) -> subprocess.Popen[bytes]:
    """In a session of its own, so that `end` leaves nobody behind."""
    return subprocess.Popen(
        words, env=env, cwd=cwd, stdin=stdin, stdout=subprocess.PIPE, stderr=stderr, start_new_session=True, bufsize=0
    )


def hear(pipes: list[int], until: float) -> list[tuple[int, bytes]]:
    """What comes next, and where; nothing when the time is over. A pipe that is at its end is taken from the list."""
    ready, _, _ = select.select(pipes, [], [], max(0.0, until - time.monotonic()))
    heard = [(pipe, os.read(pipe, READ_BYTES)) for pipe in ready]
    pipes[:] = [pipe for pipe in pipes if (pipe, b"") not in heard]
    return heard


def end(child: subprocess.Popen[bytes]) -> None:
    """End it, and all processes that are left of its session."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # none is
    except PermissionError:
        child.kill()  # macOS says so of a group of the dead
    child.wait()
    for stream in (child.stdin, child.stdout, child.stderr):
        if stream is not None:
            stream.close()
