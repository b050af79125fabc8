"""Run other programs, each in its own session and with a time limit, and always stop them."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mcpgreen.running.hooks import heard_from

ASK_SECS = 10.0
MAX_ANSWER_BYTES = 65_536
READ_BYTES = 65_536


class Ended(NamedTuple):
    """How a program ended. The status is None if it was too slow, or printed too much."""

    status: int | None
    stdout: str
    stderr: str
    is_late: bool = False


def answer_of(words: Sequence[str], *, path: str) -> tuple[int | None, str]:
    """Run a program of the system. Return its exit status, None if it cannot be run, and all that it prints."""
    # Without our variables, which can make an interpreter run something (BASH_ENV, NODE_OPTIONS, PYTHONSTARTUP).
    env = {"PATH": path, "LC_ALL": "C", "PYTHONUTF8": "1"}
    try:
        ended = run(words, env=env, cwd=os.sep, stderr=subprocess.STDOUT, secs=ASK_SECS, max_bytes=MAX_ANSWER_BYTES)
    except OSError:
        return None, ""
    return ended.status, ended.stdout


def run(words: Sequence[str], *, env: Mapping[str, str], cwd: str, stderr: int, secs: float, max_bytes: int) -> Ended:
    """Run a program without stdin, and kill what is left of it. Raises OSError if it cannot be started."""
    child = start(words, env=env, cwd=cwd, stdin=subprocess.DEVNULL, stderr=stderr)
    try:
        return finish(child, until=time.monotonic() + secs, max_bytes=max_bytes)
    finally:
        end(child)


def start(
    words: Sequence[str], *, env: Mapping[str, str], cwd: str, stdin: int, stderr: int
) -> subprocess.Popen[bytes]:
    """Start a program in a session of its own, so that `end` can stop all its processes."""
    return subprocess.Popen(
        words, env=env, cwd=cwd, stdin=stdin, stdout=subprocess.PIPE, stderr=stderr, start_new_session=True, bufsize=0
    )


def finish(child: subprocess.Popen[bytes], *, until: float, max_bytes: int) -> Ended:
    """Read what a program prints until it ends, prints too much, or the time is over. It may still run then."""
    pipes = [stream.fileno() for stream in (child.stdout, child.stderr) if stream is not None]
    said, has_ended = heard_from(child, pipes, until=until, max_bytes=max_bytes)
    is_late = not has_ended and max(map(len, said)) <= max_bytes
    stdout, stderr, *_ = [*(each[:max_bytes].decode("utf-8", "replace") for each in said), ""]
    return Ended(child.poll(), stdout, stderr, is_late)


def hear(pipes: list[int], until: float) -> list[tuple[int, bytes]]:
    """Read what comes next from the pipes; nothing when the time is over. Remove closed pipes from the list."""
    ready, _, _ = select.select(pipes, [], [], max(0.0, until - time.monotonic()))
    heard = [(pipe, os.read(pipe, READ_BYTES)) for pipe in ready]
    pipes[:] = [pipe for pipe in pipes if (pipe, b"") not in heard]
    return heard


def end(child: subprocess.Popen[bytes]) -> None:
    """Kill a program and all processes of its session."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # all have ended
    except PermissionError:
        child.kill()  # macOS reports this for a group of ended processes
    child.wait()
    for stream in (child.stdin, child.stdout, child.stderr):
        if stream is not None:
            stream.close()
