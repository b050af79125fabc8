"""The process that cleans up after a server that was killed; its program is `guardian.sh`.

A `sh` of a few hundred kilobytes in a session of its own waits on a socket whose other end only the server holds. There
it learns which directory and which socket for viewers are the server's. An orderly server says goodbye; end of file
without it means that the server was killed: every process that carries one of the server's tags is killed, and the
directory and the socket are removed. While the server lives, the guardian removes trees that scripts have left there.

It is a socket, because a process that may inspect the guardian could reopen a pipe through /proc, and say goodbye in
the server's place, or hold it open so that it never ends. A script can still kill or stop the guardian; then another
takes its place.
"""

from __future__ import annotations

import os
import signal
import time
from collections import deque
from contextlib import suppress
from resource import struct_rusage
from typing import Any

import gevent

from mcpgreen import PACKAGE_DIR, journal
from mcpgreen.running.processes.spawning import reaper, spawn_helper
from mcpgreen.running.processes.stopping import CALL_DIGITS

# Not descriptor 0: a bash whose stdin is a socket takes itself for a remote shell, and reads its owner's .bashrc.
SOCKET_FD = 3
STARTS = 5
PERIOD_SECS = 60.0
# Read now: while a server runs, another version of it may be installed.
with open(os.path.join(PACKAGE_DIR, "running", "guardian.sh"), encoding="utf-8") as _file:
    SCRIPT = _file.read()


class Guardian:
    """The guardian process. If it is killed, another one is started, a few times a minute."""

    def __init__(self, tag_prefix: str, known: set[bytes]) -> None:
        """`known` are the numbers of our children, as text; that of the guardian is always among them."""
        self._pattern = f"{tag_prefix}[0-9]{{{CALL_DIGITS}}}"
        self._known = known
        self._protected: dict[str, bytes] = {}
        self._pid = 0  # while there is none
        self._socket_fd = -1
        self._starter: Any = None  # the greenlet that starts another one
        self._started_at: deque[float] = deque(maxlen=STARTS)

    def start(self) -> None:
        """Raises OSError when it cannot be started."""
        command = ["mcpgreen-guardian", "-c", SCRIPT, "mcpgreen-guardian", self._pattern, str(os.getsid(0))]
        env = {"PATH": os.environ.get("PATH", os.defpath)}
        self._pid, self._socket_fd = spawn_helper("/bin/sh", command, env, as_fd=SOCKET_FD)
        self._started_at.append(time.monotonic())
        self._known.add(b"%d" % self._pid)
        reaper().watch(self._pid, self._on_change)
        for line in self._protected.values():
            self._tell(line)

    def protect(self, what: str, path: str) -> None:
        """Name what is to be removed, instead of an earlier one: the `state` directory, or the `socket` for viewers."""
        self._protected[what] = os.fsencode(f"{what} {path}")
        self._tell(self._protected[what])

    def clear_trees(self) -> None:
        """Have the trees removed that were put aside in the directory."""
        self._tell(b"clear")

    def dismiss(self, *, is_clean: bool) -> None:
        """Let the guardian go: the server ends by itself. If the server has not cleaned up, the guardian does."""
        if self._starter is not None:
            self._starter.kill(block=False)
        if is_clean:
            self._tell(b"goodbye")
        self._forget()

    def _tell(self, line: bytes) -> None:
        if self._pid:
            with suppress(OSError):  # it has been killed; its successor gets the line
                os.write(self._socket_fd, line + b"\n")

    def _on_change(self, status: int, usage: struct_rusage) -> None:
        """In the hub: the guardian has ended, or was stopped."""
        if os.WIFSTOPPED(status):
            os.kill(self._pid, signal.SIGKILL)  # a stopped guardian guards nothing
            return
        self._forget()
        pause_secs = 0.0
        if len(self._started_at) == STARTS:
            pause_secs = max(0.0, self._started_at[0] + PERIOD_SECS - time.monotonic())
        journal.warning(
            "the guardian, which cleans up after a killed server, was killed itself; %s",
            f"a new one starts in {pause_secs:.0f} s" if pause_secs else "a new one takes its place",
        )
        self._starter = gevent.spawn(self._start_again, pause_secs)

    def _start_again(self, pause_secs: float) -> None:
        while not self._pid:
            gevent.sleep(pause_secs)
            try:
                self.start()
            except OSError as error:
                problem = "nothing would clean up after this server if it were killed: %s; trying again in a minute"
                journal.warning(problem, error.strerror)
                pause_secs = PERIOD_SECS

    def _forget(self) -> None:
        """Stop watching it."""
        if self._pid:
            reaper().forget(self._pid)
            os.close(self._socket_fd)
            self._known.discard(b"%d" % self._pid)
            self._pid = 0
