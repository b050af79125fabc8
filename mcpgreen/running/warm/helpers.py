"""A helper, which is a process of one interpreter, and the spares that are forked from it.

The program is in `sdk/warm`; this is the server's end of it. A helper that is slow, or gone, costs a call no more than
a fresh start.

Rule: what belongs to a call goes to a spare alone. A spare has no job before the runner knows it as a child; until then
its tag, which is the helper's, tells it from the processes that scripts have left.
"""

from __future__ import annotations

import _socket  # `socket` takes long to import
import errno
import os
import time
from collections.abc import Callable, Mapping, Sequence
from struct import pack
from typing import TYPE_CHECKING, Any

import gevent
from gevent.queue import Empty, Queue

from mcpgreen.running.processes.pipes import READ_EVENT
from mcpgreen.running.processes.spawning import CONTROL_FD, NO_INPUT
from mcpgreen.running.scripts.jq import SDK_DIR

if TYPE_CHECKING:
    from mcpgreen.running.processes.run import ScriptRun
    from mcpgreen.running.runner import Runner

PROGRAM = os.path.join(SDK_DIR, "warm", "start.py")
SOCKET_FD = 3
MAX_JOB_BYTES = 60_000
KEPT_SPARES = 8
FEW_SPARES = 2  # when so few are left, more are forked: several at a time take less than one after the other
MAX_SPARES = 16  # that are there or on their way
MAX_FAILURES = 16
MAX_FORKS = 10_000  # of one helper, because all its forks have the same seed of hashes
PATIENCE_SECS = 0.25  # a fresh start takes less than that on a busy machine
STUCK_SECS = 3.0  # a helper that forks nothing for so long is given up
MAX_REPORT_BYTES = 2000


class Spare:
    """A process that was forked ahead of a call, and waits for its script: a `Spawner` for one."""

    way = "warm"

    def __init__(self, runner: Runner, pid: int, socket: Any, on_used: Callable[[], None]) -> None:
        """`on_used` is called when it was taken, and is over."""
        self._runner = runner
        self._pid = pid
        self._socket = socket
        self._on_used = on_used

    def spawn(self, run: ScriptRun, *, outputs: Sequence[int], tag: int) -> int:
        """Raises OSError when it has died, or when the job is too long for a packet; then it is no spare any more."""
        path, words = os.fsencode(run.script.path), b"\0".join(map(os.fsencode, run.script.command))
        variables = b"\0".join([name + b"=" + value for name, value in run.env.items()])
        job = b"\0\0".join((b"%d %d" % (tag, CONTROL_FD), path, words, variables))
        try:
            if not self._runner.knows(self._pid):  # others that were just forked may hold its socket open
                raise ProcessLookupError(errno.ESRCH, os.strerror(errno.ESRCH))
            if len(job) > MAX_JOB_BYTES:
                raise OSError(errno.EMSGSIZE, os.strerror(errno.EMSGSIZE))
            _send(self._socket, job, outputs)
        except OSError:
            self.dismiss()
            self._on_used()
            raise
        return self._pid

    def has_begun(self) -> bool:
        try:
            return bool(self._socket.recv(1, _socket.MSG_PEEK))
        except OSError:
            return False

    def let_go(self) -> None:
        self._socket.close()
        self._on_used()

    def dismiss(self) -> None:
        """End it: it is not needed."""
        self._socket.close()
        self._runner.end_known(self._pid)


class Helper:
    """One process that forks, from its start to its end."""

    def __init__(
        self, runner: Runner, words: Sequence[str], modules: Sequence[str], env: Mapping[bytes, bytes]
    ) -> None:
        """Raises OSError when it cannot be started."""
        self._runner = runner
        self._tag = runner.tags.of(runner.next_serial())
        self._is_ready = False
        self.is_over = False
        self.refusal: str | None = None  # why another one would be no better for some time
        self.used_at = time.monotonic()
        self._forks = 0
        self._failures = 0  # forks in a row that have failed
        self._waiting = 0  # calls
        self._ready: Any = Queue()  # of spares
        self._coming: dict[Any, tuple[Any, float]] = {}  # sockets of spares to come: their watchers, and since when
        self._processors = os.sched_getaffinity(0)
        self._socket, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
        self._printed_fd, printed_fd = os.pipe()
        os.set_blocking(self._printed_fd, False)
        try:
            actions = [NO_INPUT, *((os.POSIX_SPAWN_DUP2, printed_fd, number) for number in (1, 2))]
            actions.append((os.POSIX_SPAWN_DUP2, theirs.fileno(), SOCKET_FD))
            self._pid = runner.spawner.start([*words, PROGRAM, *modules], env, actions, tag=self._tag)
        except OSError:
            self._socket.close()
            os.close(self._printed_fd)
            raise
        finally:
            theirs.close()
            os.close(printed_fd)
        self._socket.setblocking(False)
        runner.know(self._pid)
        self._watcher: Any = gevent.get_hub().loop.io(self._socket.fileno(), READ_EVENT, ref=False)
        self._watcher.start(self._on_report)

    def take(self) -> Spare | None:
        """Take a spare; None if there is none in time. May wait."""
        self.used_at = time.monotonic()
        if not self._is_ready or self.is_over:
            return None
        if self.is_stuck:
            self.end("their helper does not fork in time")
            return None
        if self._forks >= MAX_FORKS or self._processors != os.sched_getaffinity(0):
            self.end()  # what is forked may run on the processors of its helper
            return None
        self._waiting += 1
        if not self._ready.qsize():
            self._fork()
        try:
            spare: Spare | None = self._ready.get(timeout=PATIENCE_SECS)
            return spare
        except Empty:
            return None
        finally:
            self._waiting -= 1

    @property
    def is_stuck(self) -> bool:
        """Tell whether spares do not come: the helper has no processor to run on, or they have been stopped. As long as
        they may come, their tag protects them, and any other process that carries it."""
        oldest = next(iter(self._coming.values()), None)
        return oldest is not None and time.monotonic() - oldest[1] > STUCK_SECS

    def end(self, refusal: str | None = None) -> None:
        """End the process and its spares. Calls that wait for a spare wait no longer."""
        if self.is_over:
            return
        self.is_over = True
        self.refusal = refusal
        self._watcher.close()
        self._socket.close()
        os.close(self._printed_fd)
        for socket in list(self._coming):
            self._stop_expecting(socket).close()
        while self._ready.qsize():
            self._ready.get_nowait().dismiss()
        for _ in range(self._waiting):
            self._ready.put(None)
        self._runner.end_known(self._pid)

    def _on_report(self) -> None:
        """In the hub: the helper is ready, refuses, or has ended."""
        try:
            report = self._socket.recv(MAX_REPORT_BYTES)
        except OSError:
            report = b""
        if report != b"ready":
            self.end(None if self._is_ready else report.decode("utf-8", "replace").partition(" ")[2])
            return
        try:
            os.read(self._printed_fd, 1)  # what a start prints belongs to the output of the script
            self.end("its start prints something")
        except BlockingIOError:
            self._is_ready = True
            self._fork()

    def _on_used(self) -> None:
        """One of our spares is over. Others are forked when its answer has gone: they would take its processor."""
        gevent.get_hub().loop.run_callback(self._refill)

    def _refill(self) -> None:
        if self._ready.qsize() + len(self._coming) - self._waiting <= FEW_SPARES:
            self._fork()

    def _fork(self) -> None:
        wanted = min(MAX_SPARES, KEPT_SPARES + self._waiting) - self._ready.qsize() - len(self._coming)
        if wanted <= 0 or not self._is_ready or self.is_over:
            return
        sockets, theirs = [], []
        try:
            for _ in range(wanted):
                ours, other = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
                sockets.append(ours)
                theirs.append(other)
            _send(self._socket, b"fork", [each.fileno() for each in theirs])
        except OSError:  # there are too many descriptors; or it is gone, which the hub will tell, or has much to do
            for each in sockets:
                each.close()
            return
        finally:
            for each in theirs:
                each.close()
        self._forks += wanted
        self._runner.expected_tags.add(self._tag)
        for socket in sockets:
            socket.setblocking(False)
            watcher = gevent.get_hub().loop.io(socket.fileno(), READ_EVENT, ref=False)
            watcher.start(self._on_spare, socket)
            self._coming[socket] = watcher, time.monotonic()

    def _on_spare(self, socket: Any) -> None:
        """In the hub: a spare tells its number. If it could not be forked, or has died, its socket is closed."""
        try:
            pid = int(socket.recv(MAX_REPORT_BYTES).partition(b"ready ")[2])
        except (OSError, ValueError):
            pid = -1
        is_ours = pid > 0 and is_child(pid)
        self._failures = 0 if is_ours else self._failures + 1
        if is_ours:
            self._runner.know(pid)
            self._ready.put(Spare(self._runner, pid, socket, self._on_used))
        self._stop_expecting(socket)
        if not is_ours:
            socket.close()
        if self._failures >= MAX_FAILURES:
            self.end("nothing can be forked")

    def _stop_expecting(self, socket: Any) -> Any:
        self._coming.pop(socket)[0].close()
        if not self._coming:
            self._runner.stop_expecting(self._tag)
        return socket


def is_child(pid: int) -> bool:
    """Tell whether this is a child of ours that is alive: by now, its number may belong to another process."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
    except ChildProcessError:
        return False


def _send(socket: Any, packet: bytes, descriptors: Sequence[int]) -> None:
    rights = pack(f"{len(descriptors)}i", *descriptors)
    socket.sendmsg([packet], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, rights)], _socket.MSG_NOSIGNAL)
