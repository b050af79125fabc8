"""A helper process of one interpreter, and the spares that it has forked.

The program is `sdk/warm`; this is our end of it. What is asked of it waits for nothing: a helper that is slow, or gone,
costs a call no more than a fresh start.

Rule: a spare is known to the runner before it gets its job; until then its tag, which is the helper's, says who it is.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Mapping, Sequence
from struct import pack
from typing import TYPE_CHECKING, Any

import gevent
from gevent.queue import Empty, Queue

from mcpgreen.running.processes.pipes import READ_EVENT
from mcpgreen.running.processes.spawning import NO_INPUT
from mcpgreen.running.scripts.jq import SDK_DIR
from mcpgreen.running.warm.spares import MAX_JOB_BYTES, Spare

if TYPE_CHECKING:
    from mcpgreen.running.processes.runner import Runner

PROGRAM = os.path.join(SDK_DIR, "warm", "start.py")
SOCKET_FD = 3
KEPT_SPARES = 8
FEW_SPARES = 2  # so many, and more are forked: several at a time take less than one after the other
MAX_SPARES = 16  # that are there or on their way
MAX_FORKS = 10_000  # of one helper: what all of them share, as the seed of hashes, is not shared for ever
MAX_PREPARED = 1000
PATIENCE_SECS = 0.25  # a fresh start takes less than that on a busy machine
REST_SECS = 0.003  # between two calls: a rehearsal takes less
MAX_MISSES = 4
MAX_WORD_BYTES = 2000
FORK, FORK_AND_REHEARSE = b"F", b"R"


class State:
    """Of a helper."""

    STARTING = "starting"
    READY = "ready"
    OVER = "over"
    UNFIT = "unfit"  # over, and another one would be no better for some time


class Helper:
    """One process that forks, from its start to its end."""

    def __init__(
        self,
        runner: Runner,
        words: Sequence[str],
        modules: Sequence[str],
        env: Mapping[bytes, bytes],
        usual: Mapping[bytes, bytes],
    ) -> None:
        """`usual` are the variables of a call; jobs need only tell what is different. Raises OSError when it cannot be
        started."""
        from _socket import AF_UNIX, SOCK_SEQPACKET, socketpair  # `socket` would cost milliseconds

        self._runner = runner
        self._tag = runner.tags.of(runner.next_serial())
        self.state = State.STARTING
        self.refusal = ""  # why it is unfit
        self.used_at = time.monotonic()
        self._forks = 0
        self._misses = 0  # times in a row that a call waited in vain
        self._missed_at = 0.0
        self._waiting = 0
        self._in_use = 0  # spares that are scripts now
        self._let_go_at = 0.0  # when the last one was over
        self._is_rested = True  # whether calls leave us some time
        self._is_refilling = False
        self._ready: Any = Queue()  # of spares
        self._coming: deque[Any] = deque()  # their sockets, in the order in which they are forked
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
        self._processors = processors()
        self._socket.setblocking(False)
        told = b"E" + b"\0".join(name + b"=" + value for name, value in usual.items())
        self._usual = usual if usual and len(told) < MAX_JOB_BYTES and self._tell(told) else {}
        runner.know(self._pid)
        self._watcher: Any = gevent.get_hub().loop.io(self._socket.fileno(), READ_EVENT, ref=False)
        self._watcher.start(self._on_word)

    def take(self, path: str, signature: bytes) -> Spare | None:
        """A spare for this script; None if there is none in time. May wait."""
        now = time.monotonic()
        self._is_rested = now - max(self.used_at, self._let_go_at) > REST_SECS
        self.used_at = now
        if self.state != State.READY:
            return None
        if self._processors != processors():
            self.end()  # what is forked may run where the helper may
            return None
        is_new = self._prepared.get(path) != signature
        if is_new and self._tell(b"P" + os.fsencode(path)):
            if len(self._prepared) >= MAX_PREPARED:
                self._prepared.clear()
            self._prepared[path] = signature
        spare = self._next()
        if spare is None:
            return None
        self._misses = 0
        self._in_use += 1
        if is_new:
            self._dismiss_spares()  # they were forked before the script was at hand
        if self._forks >= MAX_FORKS:
            self.end()
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
        while self._coming:
            self._arrived().close()
        self._dismiss_spares()
        for _ in range(self._waiting):
            self._ready.put(None)
        self._runner.end_known(self._pid)

    def _next(self) -> Spare | None:
        spare: Spare | None
        if self._ready.qsize():
            spare = self._ready.get_nowait()
            return spare
        self._waiting += 1
        self._fork()
        try:
            spare = self._ready.get(timeout=PATIENCE_SECS)
            return spare
        except Empty:
            self._note_miss()
            return None
        finally:
            self._waiting -= 1

    def _note_miss(self) -> None:
        """It may have been stopped, or has no processor to run on: then it does more harm than good."""
        now = time.monotonic()
        if now - self._missed_at < PATIENCE_SECS:
            return  # many have waited at the same time
        self._missed_at = now
        self._misses += 1
        if self._misses >= MAX_MISSES:
            self.end(State.UNFIT, "their helper does not fork in time")

    def _on_word(self) -> None:
        """In the hub."""
        while not self.is_over:
            try:
                word = self._heard()
            except BlockingIOError:
                return
            except OSError:
                word = b""
            if self._coming and word.lstrip(b"-").isdigit():
                self._on_spare(int(word))
            elif word != b"ready":
                refusal = word.decode("utf-8", "replace").partition(" ")[2]
                self.end(State.OVER if self.state == State.READY else State.UNFIT, refusal)
            elif self._has_said_something():
                self.end(State.UNFIT, "its start prints something")
            else:
                self.state = State.READY
                self._fork()

    def _heard(self) -> bytes:
        """The next word of the helper. Raises OSError."""
        try:
            word: bytes = self._socket.recv(MAX_WORD_BYTES)
        except ConnectionResetError:  # it has ended, and has not read all that it was told; what it said comes after
            word = self._socket.recv(MAX_WORD_BYTES)
        return word

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

    def _on_used(self) -> None:
        """One of our spares is over. Others are forked when its answer has gone: they would take its processor."""
        self._in_use -= 1
        self._let_go_at = time.monotonic()
        if not self._is_refilling:
            self._is_refilling = True
            gevent.get_hub().loop.run_callback(self._refill)

    def _refill(self) -> None:
        self._is_refilling = False
        if self._ready.qsize() + len(self._coming) - self._waiting <= FEW_SPARES:
            self._fork()

    def _fork(self) -> None:
        wanted = min(MAX_SPARES, KEPT_SPARES + self._waiting) - self._ready.qsize() - len(self._coming)
        if wanted <= 0 or self.state != State.READY:
            return
        pairs = _pairs(wanted)
        # While others run, or one call follows the other, a rehearsal would only take their time.
        word = FORK_AND_REHEARSE if self._is_rested and not self._in_use and not self._waiting else FORK
        is_told = bool(pairs) and self._tell(word, *(theirs.fileno() for _, theirs in pairs))
        for ours, theirs in pairs:
            theirs.close()
            if is_told:
                self._expect(ours)
            else:
                ours.close()

    def _expect(self, socket: Any) -> None:
        self._forks += 1
        socket.setblocking(False)
        self._coming.append(socket)
        self._runner.expected_tags.add(self._tag)

    def _on_spare(self, pid: int) -> None:
        """In the hub: one has been forked, or could not be."""
        socket = self._arrived()
        if pid < 0 or not is_child(pid):
            socket.close()
            return
        self._runner.know(pid, is_spare=True)
        self._ready.put(Spare(self._runner, pid, socket, self._usual, self._on_used))

    def _arrived(self) -> Any:
        """The socket of the next one that is forked."""
        socket = self._coming.popleft()
        if not self._coming:
            self._runner.expected_tags.discard(self._tag)
        return socket

    def _tell(self, word: bytes, *descriptors: int) -> bool:
        from _socket import MSG_NOSIGNAL, SCM_RIGHTS, SOL_SOCKET

        passed = [(SOL_SOCKET, SCM_RIGHTS, pack(f"{len(descriptors)}i", *descriptors))] if descriptors else []
        try:
            self._socket.sendmsg([word], passed, MSG_NOSIGNAL)
        except OSError:
            return False  # it is gone, which the hub will tell, or has much to do
        return True


def is_child(pid: int) -> bool:
    """Whether it is a child of ours that is not gone: its number may be somebody else's by now."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
    except ChildProcessError:
        return False


def processors() -> set[int]:
    """Those that we may use, and whoever we start."""
    return os.sched_getaffinity(0)


def _pairs(count: int) -> list[tuple[Any, Any]]:
    """Of sockets; fewer, if there are too many descriptors."""
    from _socket import AF_UNIX, SOCK_SEQPACKET, socketpair

    pairs = []
    try:
        for _ in range(count):
            pairs.append(socketpair(AF_UNIX, SOCK_SEQPACKET))
    except OSError:
        pass
    return pairs
