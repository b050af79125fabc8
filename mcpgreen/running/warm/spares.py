"""A helper process of one interpreter, and the spares that it has forked: each becomes one script.

The program is `sdk/warm`; this is our end of it. What is asked of it waits for nothing: a helper that is slow, or gone,
costs a call no more than a fresh start.

Rule: a spare is known to the runner before it gets its job; until then its tag, which is the helper's, says who it is.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Mapping, Sequence
from struct import pack
from typing import TYPE_CHECKING, Any

import gevent
from gevent.queue import Empty, Queue

from mcpgreen.running.processes.pipes import READ_EVENT
from mcpgreen.running.processes.spawning import CONTROL_FD, NO_INPUT
from mcpgreen.running.scripts.jq import SDK_DIR
from mcpgreen.running.warm.interpreters import OF_A_CALL

if TYPE_CHECKING:
    from mcpgreen.running.processes.runner import Runner
    from mcpgreen.running.scripts.launch import ScriptRun

PROGRAM = os.path.join(SDK_DIR, "warm", "start.py")
SOCKET_FD = 3
KEPT_SPARES = 2
MAX_SPARES = 16  # that are there or on their way
MAX_FORKS = 10_000  # of one helper: what all of them share, as the seed of hashes, is not shared for ever
MAX_PREPARED = 1000
MAX_JOB_BYTES = 60_000
PATIENCE_SECS = 0.25  # a fresh start takes less than that on a busy machine
MAX_MISSES = 4
MAX_WORD_BYTES = 2000


class State:
    """Of a helper."""

    STARTING = "starting"
    READY = "ready"
    OVER = "over"
    UNFIT = "unfit"  # over, and another one would be no better for some time


class Helper:
    """One process that forks, from its start to its end."""

    def __init__(
        self, runner: Runner, words: Sequence[str], modules: Sequence[str], env: Mapping[bytes, bytes]
    ) -> None:
        """Raises OSError when it cannot be started."""
        from _socket import AF_UNIX, SOCK_SEQPACKET, socketpair  # `socket` would cost milliseconds

        self._runner = runner
        self._tag = runner.tags.of(runner.next_serial())
        self.state = State.STARTING
        self.refusal = ""  # why it is unfit
        self.used_at = time.monotonic()
        self._forks = 0
        self._misses = 0  # calls in a row that waited in vain
        self._waiting = 0
        self._ready: Any = Queue()  # of spares
        self._coming: dict[Any, Any] = {}  # their sockets, and who watches those
        self._prepared: dict[str, bytes] = {}  # scripts that it has at hand, as they looked
        self._socket, theirs = socketpair(AF_UNIX, SOCK_SEQPACKET)
        self._said_fd, said_fd = os.pipe()
        try:
            actions = [NO_INPUT, *((os.POSIX_SPAWN_DUP2, said_fd, number) for number in (1, 2))]
            actions.append((os.POSIX_SPAWN_DUP2, theirs.fileno(), SOCKET_FD))
            self._pid = runner.spawner.start([*words, PROGRAM, *modules], env, actions, tag=self._tag)
        except OSError:
            self._socket.close()
            os.close(self._said_fd)
            raise
        finally:
            theirs.close()
            os.close(said_fd)
        self._socket.setblocking(False)
        runner.know(self._pid)
        self._watcher: Any = gevent.get_hub().loop.io(self._socket.fileno(), READ_EVENT, ref=False)
        self._watcher.start(self._on_word)

    def take(self, path: str, signature: bytes) -> Spare | None:
        """A spare for this script; None if there is none in time. May wait."""
        self.used_at = time.monotonic()
        if self.state != State.READY:
            return None
        is_new = self._prepared.get(path) != signature
        if is_new and self._tell(b"P" + os.fsencode(path)):
            if len(self._prepared) >= MAX_PREPARED:
                self._prepared.clear()
            self._prepared[path] = signature
        self._waiting += 1
        self._fork()
        try:
            spare: Spare | None = self._ready.get(timeout=PATIENCE_SECS)
        except Empty:
            self._note_miss()
            return None
        finally:
            self._waiting -= 1
        self._misses = 0
        if is_new:
            self._dismiss_spares()  # they were forked before the script was at hand
            self._fork()
        if self._forks >= MAX_FORKS:
            self.end()
        if spare is not None:
            spare.signature = signature
        return spare

    @property
    def is_over(self) -> bool:
        return self.state in (State.OVER, State.UNFIT)

    def end(self, state: str = State.OVER, refusal: str = "") -> None:
        """No more of it. Who waits for a spare waits no longer."""
        if self.is_over:
            return
        self.state, self.refusal = state, refusal
        self._watcher.close()
        self._socket.close()
        if self._said_fd >= 0:
            os.close(self._said_fd)
        for socket in list(self._coming):
            self._lose(socket)
        self._dismiss_spares()
        for _ in range(self._waiting):
            self._ready.put(None)
        self._runner.end_known(self._pid)

    def _note_miss(self) -> None:
        """It may have been stopped, or has no processor to run on: then it does more harm than good."""
        self._misses += 1
        if self._misses >= MAX_MISSES:
            self.end(State.UNFIT, "their helper does not fork in time")

    def _on_word(self) -> None:
        """In the hub."""
        try:
            word = self._socket.recv(MAX_WORD_BYTES)
        except BlockingIOError:
            return
        except OSError:
            word = b""
        if word != b"ready":
            refusal = word.decode("utf-8", "replace").partition(" ")[2]
            self.end(State.OVER if self.state == State.READY else State.UNFIT, refusal)
        elif self._has_said_something():
            self.end(State.UNFIT, "its start prints something")
        else:
            self.state = State.READY
            self._fork()

    def _has_said_something(self) -> bool:
        """Which a fresh start would have put into the output of the script."""
        os.set_blocking(self._said_fd, False)
        try:
            return bool(os.read(self._said_fd, 1))
        except BlockingIOError:
            return False
        finally:
            os.close(self._said_fd)
            self._said_fd = -1

    def _dismiss_spares(self) -> None:
        while self._ready.qsize():
            spare = self._ready.get_nowait()
            if spare is not None:
                spare.dismiss()

    def _fork(self) -> None:
        wanted = min(MAX_SPARES, KEPT_SPARES + self._waiting) - self._ready.qsize() - len(self._coming)
        while wanted > 0 and self.state == State.READY and self._fork_one():
            wanted -= 1

    def _fork_one(self) -> bool:
        from _socket import AF_UNIX, SOCK_SEQPACKET, socketpair

        try:
            ours, theirs = socketpair(AF_UNIX, SOCK_SEQPACKET)
        except OSError:
            return False  # too many descriptors
        is_told = self._tell(b"F", theirs.fileno())
        theirs.close()
        if not is_told:
            ours.close()
            return False
        self._forks += 1
        ours.setblocking(False)
        watcher = gevent.get_hub().loop.io(ours.fileno(), READ_EVENT, ref=False)
        self._coming[ours] = watcher
        self._runner.expected_tags.add(self._tag)
        watcher.start(self._on_spare, ours)
        return True

    def _on_spare(self, socket: Any) -> None:
        """In the hub: a spare says its number, or will never do so."""
        try:
            number = socket.recv(MAX_WORD_BYTES)
        except OSError:
            number = b""
        if not number.isdigit():
            self._lose(socket)
            return
        pid = int(number)
        self._runner.know(pid)
        self._arrived(socket)
        self._ready.put(Spare(self._runner, pid, socket))

    def _arrived(self, socket: Any) -> None:
        self._coming.pop(socket).close()
        if not self._coming:
            self._runner.expected_tags.discard(self._tag)

    def _lose(self, socket: Any) -> None:
        self._arrived(socket)
        socket.close()

    def _tell(self, word: bytes, *descriptors: int) -> bool:
        from _socket import MSG_NOSIGNAL, SCM_RIGHTS, SOL_SOCKET

        passed = [(SOL_SOCKET, SCM_RIGHTS, pack(f"{len(descriptors)}i", *descriptors))] if descriptors else []
        try:
            self._socket.sendmsg([word], passed, MSG_NOSIGNAL)
        except OSError:
            return False  # it is gone, which the hub will tell, or has much to do
        return True


class Spare:
    """A process that waits to become a script: a `Spawner` for one."""

    is_warm = True

    def __init__(self, runner: Runner, pid: int, socket: Any) -> None:
        self._runner = runner
        self._pid = pid
        self._socket = socket
        self.signature = b""  # of the script that it is taken for

    def spawn(self, run: ScriptRun, *, outputs: Sequence[int], tag: int) -> int:
        """Raises OSError when it has died, or when the job is too much for it; then it is no spare any more."""
        from _socket import MSG_NOSIGNAL, SCM_RIGHTS, SOL_SOCKET

        job = _job(run, tag, self.signature)
        try:
            if len(job) > MAX_JOB_BYTES:
                raise OSError(errno.EMSGSIZE, os.strerror(errno.EMSGSIZE))
            self._socket.sendmsg([job], [(SOL_SOCKET, SCM_RIGHTS, pack("3i", *outputs))], MSG_NOSIGNAL)
        except OSError:
            self.dismiss()
            raise
        return self._pid

    def has_begun(self) -> bool:
        try:
            return bool(self._socket.recv(1))
        except OSError:
            return False

    def let_go(self) -> None:
        self._socket.close()

    def dismiss(self) -> None:
        """It is not needed."""
        self.let_go()
        self._runner.end_known(self._pid)


def _job(run: ScriptRun, tag: int, signature: bytes) -> bytes:
    """What a spare is told to become. No variable has a NUL in it."""
    return b"\0\0".join(
        (
            b"%d %d %s" % (tag, CONTROL_FD, signature),
            os.fsencode(run.script.path),
            b"\0".join(map(os.fsencode, run.script.command)),
            b"\0".join(name + b"=" + value for name, value in run.env.items() if name.startswith(OF_A_CALL)),
        )
    )
