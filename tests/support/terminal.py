"""A command at a pseudo-terminal: what a person sees, and answers to what it asks."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.support.forking import Forked, can_fork
from tests.support.wire import nursery

PATIENCE_SECS = 60.0
OURS = (sys.executable, "-c", "import sys; from mcpgreen.__main__ import main; sys.exit(main())")
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07")


class Seen(NamedTuple):
    """`raw` is all that came, colours included; `text` what is left without them."""

    status: int
    raw: str

    @property
    def text(self) -> str:
        return ESCAPES.sub("", self.raw).replace("\r\n", "\n")


def at_terminal(
    arguments: Sequence[str],
    *,
    cwd: Path,
    width: int = 80,
    env: Mapping[str, str] | None = None,
    answers: Sequence[tuple[str, str]] = (),
    program: Sequence[str] = OURS,
) -> Seen:
    """Run `mcpgreen ARGUMENTS`, or another program, wait for its end; type each answer once its question is seen."""
    variables = {"PATH": os.environ["PATH"], "HOME": str(cwd), "TERM": "xterm-256color", **(env or {})}
    size = struct.pack("HHHH", 40, width, 0, 0)
    forked: Forked | None = None
    if program is OURS and can_fork(variables):
        fd, terminal_fd = pty.openpty()
        fcntl.ioctl(fd, termios.TIOCSWINSZ, size)
        forked = nursery().fork_at_terminal(terminal_fd, arguments, variables, str(cwd))
        pid = forked.pid
    else:
        pid, fd = pty.fork()
        if pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, size)
            os.chdir(cwd)
            os.execvpe(program[0], [*program, *arguments], variables)
    raw = ""
    waiting = list(answers)
    looked_to = 0
    give_up_at = time.monotonic() + PATIENCE_SECS
    try:
        while True:
            ready, _, _ = select.select([fd], [], [], max(0.0, give_up_at - time.monotonic()))
            assert ready, f"no end; seen so far: {raw!r}; not asked: {waiting}"
            try:
                chunk = os.read(fd, 65536)
            except OSError:  # the other side is closed
                break
            if not chunk:
                break
            raw += chunk.decode("utf-8", "replace")
            if waiting and waiting[0][0] in raw[looked_to:]:
                question, answer = waiting.pop(0)
                looked_to = raw.index(question, looked_to) + len(question)
                os.write(fd, answer.encode())
    except BaseException:
        os.kill(pid, signal.SIGKILL)
        raise
    finally:
        os.close(fd)
        status = forked.wait() if forked else os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert not waiting, f"not asked: {waiting}; seen: {raw!r}"
    return Seen(status, raw)
