"""A process that was forked ahead of a call, and waits to become its script: a `Spawner` for one."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping, Sequence
from struct import pack
from typing import TYPE_CHECKING, Any

from mcpgreen.running.processes.last_word import new_word
from mcpgreen.running.processes.spawning import CONTROL_FD
from mcpgreen.running.warm.interpreters import OF_A_CALL

if TYPE_CHECKING:
    from mcpgreen.running.processes.runner import Runner
    from mcpgreen.running.scripts.launch import ScriptRun

MAX_JOB_BYTES = 60_000


class Spare:
    """One of a helper."""

    is_warm = True

    def __init__(
        self, runner: Runner, pid: int, socket: Any, usual: Mapping[bytes, bytes], on_used: Callable[[], None]
    ) -> None:
        """`usual` are the variables that it has already; `on_used` is called when it is over, if it was taken."""
        self._runner = runner
        self._on_used = on_used
        self._usual = usual
        self._pid = pid
        self._socket = socket
        self.signature = b""  # of the script that it is taken for
        self.last_word = new_word()

    def spawn(self, run: ScriptRun, *, outputs: Sequence[int], tag: int) -> int:
        """Raises OSError when it has died, or when the job is too much for it; then it is no spare any more."""
        from _socket import MSG_NOSIGNAL, SCM_RIGHTS, SOL_SOCKET

        head = b"%d %d %s %s" % (tag, CONTROL_FD, self.last_word, self.signature)
        job = _job(run, head, self._usual)
        try:
            if not self._runner.knows(self._pid):  # its socket may still be open: in others that were just forked
                raise OSError(errno.ESRCH, os.strerror(errno.ESRCH))
            if len(job) > MAX_JOB_BYTES:
                raise OSError(errno.EMSGSIZE, os.strerror(errno.EMSGSIZE))
            self._socket.sendmsg([job], [(SOL_SOCKET, SCM_RIGHTS, pack("3i", *outputs))], MSG_NOSIGNAL)
        except OSError:
            self.dismiss()
            self._on_used()
            raise
        return self._pid

    def has_begun(self) -> bool:
        try:
            return bool(self._socket.recv(1))
        except OSError:
            return False

    def let_go(self) -> None:
        self._socket.close()
        self._on_used()

    def dismiss(self) -> None:
        """It is not needed."""
        self._socket.close()
        self._runner.end_known(self._pid)


def _job(run: ScriptRun, head: bytes, usual: Mapping[bytes, bytes]) -> bytes:
    """What a spare is told to become. No variable has a NUL in it."""
    env = run.env
    variables = [
        name + b"=" + value for name, value in env.items() if usual.get(name) != value and name.startswith(OF_A_CALL)
    ]
    variables += usual.keys() - env.keys()
    return b"\0\0".join(
        (
            head,
            os.fsencode(run.script.path),
            b"\0".join(map(os.fsencode, run.script.command)),
            b"\0".join(variables),
        )
    )
