"""The programs that commands ask something, as functions."""

from __future__ import annotations

import os
import subprocess
import time

from mcpgreen.cli import children
from tests.support.waiting import eventually, is_alive


def test_processes_that_a_program_leaves_behind_end_with_it() -> None:
    """Where nobody adopts orphans there is no other way to find them."""
    words = ["sh", "-c", "sleep 60 & echo $!"]
    child = children.start(words, env=os.environ, cwd=os.sep, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert child.stdout is not None
    ((_, pid),) = children.hear([child.stdout.fileno()], time.monotonic() + 60)
    child.wait()

    children.end(child)

    eventually(lambda: not is_alive(pid.decode()))


def test_a_pipe_at_its_end_is_not_listened_to_any_more() -> None:
    reading, writing = os.pipe()
    os.close(writing)
    pipes = [reading]

    assert children.hear(pipes, time.monotonic() + 60) == [(reading, b"")]
    assert pipes == []
    os.close(reading)
