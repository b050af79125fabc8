"""Run Python scripts without starting an interpreter: decide which scripts, and manage the helpers that fork them.

A helper is started soon after the first script that could use it, which is started afresh. So no call ever waits for
the start of one, and a server without Python scripts has none.

Only a first line that names a Python, directly or by `env`, and nothing else, is spared its start. Options, other
programs in between (`uv run`) and variables that make a start differ are left to a fresh start.

A `Helper` is a process of one interpreter, whose program is in `sdk/warm`; a `Spare` is forked from it. One that is
slow, or gone, costs a call no more than a fresh start.

Rule: what belongs to a call goes to a spare alone. A spare has no job before the runner knows it as a child; until then
its tag, which is the helper's, distinguishes it from processes that scripts have left.
"""

from __future__ import annotations

import _socket  # `socket` takes long to import
import errno
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from struct import pack
from typing import TYPE_CHECKING, Any

import gevent
from gevent.queue import Empty, Queue

from mcpgreen import journal
from mcpgreen.running.processes.pipes import READ_EVENT
from mcpgreen.running.processes.spawning import CONTROL_FD, NO_INPUT
from mcpgreen.running.scripts.jq import SDK_DIR
from mcpgreen.running.scripts.shebang import MARK, head_of

if TYPE_CHECKING:
    from mcpgreen.running.processes.run import Script, ScriptRun
    from mcpgreen.running.runner import Runner

MAX_HELPERS = 4
DELAY_SECS = 0.05  # the first script should not have to share its processor with the start of a helper
IDLE_SECS = 300.0
LOOK_SECS = 15.0
RETRY_SECS = 60.0  # after a helper that could not be used
SETTLED_SECS = 5.0  # a helper that was used this recently is not given up for another
PROGRAM = os.path.join(SDK_DIR, "warm", "start.py")
SOCKET_FD = 3
MAX_JOB_BYTES = 60_000
KEPT_SPARES = 4
FEW_SPARES = 1  # when so few are left, more are forked: several at a time take less than one after the other
MAX_SPARES = 16  # that are there or on their way
MAX_FAILURES = 16
MAX_FORKS = 10_000  # of one helper, because all its forks have the same seed of hashes
PATIENCE_SECS = 0.25  # a fresh start takes less than that on a busy machine
STUCK_SECS = 3.0  # a helper that forks nothing for longer is given up
MAX_REPORT_BYTES = 2000

# The variables that a helper is started with: what the start of an interpreter, its libraries and usual packages depend
# on. Every script that it forks has them in memory, so none of these may hold a secret or belong to a call.
LASTING = frozenset(
    b"PATH HOME USER LOGNAME SHELL LANG LANGUAGE LOCPATH TZ TZDIR TMPDIR TMP TEMP VIRTUAL_ENV CONDA_PREFIX "
    b"CONDA_DEFAULT_ENV PYENV_ROOT PYENV_VERSION GLIBC_TUNABLES OPENSSL_CONF OPENSSL_MODULES COVERAGE_PROCESS_START "
    b"OMP_NUM_THREADS OPENBLAS_NUM_THREADS MKL_NUM_THREADS MPLBACKEND MPLCONFIGDIR".split()
)
LASTING_PREFIXES = (b"PYTHON", b"LC_", b"LD_", b"MALLOC_", b"XDG_")
# Variables that a helper obeys in the same way at its own start.
OBEYED = frozenset(
    b"PYTHONPATH PYTHONHOME PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE PYTHONIOENCODING PYTHONUTF8 PYTHONHASHSEED "
    b"PYTHONWARNINGS PYTHONNOUSERSITE PYTHONOPTIMIZE PYTHONCOERCECLOCALE PYTHONPYCACHEPREFIX "
    b"PYTHONINTMAXSTRDIGITS PYTHONUSERBASE PYTHONPLATLIBDIR".split()
)
_PYTHON = re.compile(r"python(3(\.\d+)?)?")

Words = tuple[str, ...]
Key = tuple[Words, tuple[str, ...], frozenset[tuple[bytes, bytes]]]


class WarmPython:
    """All helpers of a runner."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._helpers: dict[Key, Helper] = {}
        self._not_before: dict[Key, float] = {}  # when to try again what has failed
        self._starting: set[Key] = set()
        self._looker: Any = None  # the greenlet that ends idle helpers
        self._is_over = False

    def why_not(self, run: ScriptRun) -> str:
        """Say why there was no spare for this script; empty if it is not a Python script."""
        reason = why_fresh(run.script, run.env)
        return "no fork was ready for it" if reason == "" else reason or ""

    def spawner_for(self, run: ScriptRun) -> Spare | None:
        """Return a process to become this script; None if it has to be started afresh. May wait for a moment."""
        script = run.script
        words = interpreter_of(script.path, script.command) if script.warm is not None else None
        if words is None or script.warm is None:
            return None
        env = lasting(run.env)
        key = words, script.warm, frozenset(env.items())
        helper = self._helpers.get(key)
        if helper is not None and not helper.is_over:
            return helper.take()
        if key not in self._starting and not self._is_over and not unusual_variables(env) and self._make_room_for(key):
            self._starting.add(key)
            gevent.spawn_later(DELAY_SECS, self._start, key, env)
        return None

    def end(self) -> None:
        """End all helpers: the server ends."""
        self._is_over = True
        if self._looker is not None:
            self._looker.kill(block=False)
        for helper in self._helpers.values():
            helper.end()
        self._helpers.clear()

    def _make_room_for(self, key: Key) -> bool:
        """End what has to end before another helper may start. Return False if none may start now."""
        self._drop(key)
        now = time.monotonic()
        if self._not_before.get(key, 0.0) > now:
            return False
        if len(self._helpers) + len(self._starting) >= MAX_HELPERS:
            oldest = min(self._helpers, key=lambda each: self._helpers[each].used_at, default=None)
            if oldest is None or now - self._helpers[oldest].used_at < SETTLED_SECS:
                return False
            self._drop(oldest)
        return True

    def _drop(self, key: Key) -> None:
        helper = self._helpers.pop(key, None)
        if helper is None:
            return
        helper.end()
        if helper.refusal is not None:
            self._note_failure(key, helper.refusal)

    def _note_failure(self, key: Key, reason: str) -> None:
        journal.info("Python scripts for %s are not forked: %s", " ".join(key[0]), reason or "their helper ended")
        now = time.monotonic()
        self._not_before = {each: until for each, until in self._not_before.items() if until > now}
        self._not_before[key] = now + RETRY_SECS

    def _start(self, key: Key, env: dict[bytes, bytes]) -> None:
        words, modules, _ = key
        try:
            with self._runner.starts:
                if not self._is_over:
                    self._helpers[key] = Helper(self._runner, words, modules, env)
        except OSError as error:
            self._note_failure(key, error.strerror or str(error))
        finally:
            self._starting.discard(key)
        if not self._looker and not self._is_over:
            self._looker = gevent.spawn_later(LOOK_SECS, self._end_idle)

    def _end_idle(self) -> None:
        """End helpers that are of no use, from time to time as long as there are any."""
        while self._helpers:
            now = time.monotonic()
            for key, helper in list(self._helpers.items()):
                if helper.is_over or helper.is_stuck or now - helper.used_at > IDLE_SECS:
                    self._drop(key)
            gevent.sleep(LOOK_SECS)


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
        """Hand it the job. Raises OSError if it has died, or the job is too long for a packet; then it is used up."""
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
            self.end("their helper did not fork in time")
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
            self.end("it prints something when it starts")
        except BlockingIOError:
            self._is_ready = True
            self._fork()

    def _on_used(self) -> None:
        """Note that a spare has ended. Others are forked after its answer is sent: they would take its processor."""
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
        """In the hub: receive the number of a spare. If it could not be forked, or has died, its socket is closed."""
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
            self.end("forking keeps failing")

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


def interpreter_of(path: str, command: Sequence[str]) -> Words | None:
    """Return the words that start the interpreter of a script with this command; None if it needs a fresh start."""
    has_arguments = command[-1] != path
    return None if has_arguments else plain_python(_first_words(path, command))


def plain_python(words: Sequence[str]) -> Words | None:
    """Return the words, if they are a Python, or `env` and a Python, and nothing else."""
    names = [os.path.basename(word) for word in words]
    if len(words) == 2 and names[0] == "env" and names[1] == words[1]:
        names = names[1:]
    return tuple(words) if len(names) == 1 and _PYTHON.fullmatch(names[0]) else None


def lasting(env: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
    """Return the variables of an environment that a helper is started with."""
    return {name: value for name, value in env.items() if name in LASTING or name.startswith(LASTING_PREFIXES)}


def unusual_variables(env: Mapping[bytes, bytes]) -> list[str]:
    """Names of variables that ask for a start that a helper could not make in the same way."""
    return [os.fsdecode(name) for name in env if name.startswith(b"PYTHON") and name not in OBEYED]


def why_fresh(script: Script, env: Mapping[bytes, bytes]) -> str | None:
    """Say why each run of a Python script starts its interpreter; empty if it need not, None for other scripts."""
    words = _first_words(script.path, script.command)
    if not any(os.path.basename(word).startswith("python") for word in words):
        return None
    if script.warm is None:
        return "its description says so"
    if plain_python(words) is None or script.command[-1] != script.path:
        return "its shebang does more than start Python"
    names = unusual_variables(env)
    return f"{names[0]} is set" if names else ""


def _first_words(path: str, command: Sequence[str]) -> Sequence[str]:
    """Return the words that start the interpreter: before the path, or in the first line; none without one."""
    if len(command) > 1:
        return command[:-1]
    line, newline, _ = head_of(path).partition(b"\n")
    if not line.startswith(MARK) or not newline or line.endswith(b"\r"):
        return ()
    return [os.fsdecode(word) for word in line[len(MARK) :].split()]
