"""Servers and commands from a process that has imported everything already.

Until it answers, a server takes 150 ms of a processor; 130 of them start Python and import. Tests start servers by the
thousand. So one process imports the modules once and forks for each server: what runs then is `mcpgreen.__main__.main`
as in a fresh process, with pipes or a terminal, environment, directory and session of its own. For the commands of
shell scripts there is a program (`Nursery.program`) that asks that process for a fork, and ends as the fork does.

What differs is what comes before `main`: the command line in /proc, the parent, and variables that Python itself reads.
A test about these asks for a fresh process (`Wire(..., is_fresh=True)`); with MCPGREEN_FRESH_SERVERS set, all are.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import gc
import importlib
import marshal
import os
import pkgutil
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import threading
import traceback
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any, NoReturn

from tests.support import constants

LENGTH_BYTES = 4
REPORT = 3  # in a request, after stdin, stdout and stderr: where the number and the end of the process are told
NUMBER_BYTES = 16  # so that the end of a process that was over at once is not taken for more of its number
MOST_FDS = 4096
READ_BY_PYTHON = ("PYTHON", "LANG", "LC_", "TZ")
NOT_IMPORTED = ("mcpgreen.sdk", "mcpgreen.default_project")
ALSO_IMPORTED = (
    "gevent.libev.corecext",
    "gevent.pool",
    "docopt",
    "yaml",
    "encodings.idna",
    "prometheus_client",
    "pprint",
)


# Imports nothing but what is in Python itself: it is to start quickly.
PROGRAM = """#!{python} -ISE
import _signal, _socket, marshal, posix, sys
environment = {{name.decode("utf-8", "surrogateescape"): value.decode("utf-8", "surrogateescape")
               for name, value in posix.environ.items()}}
environment["MCPGREEN_LAUNCHER"] = sys.argv[0]
request = marshal.dumps({{"argv": sys.argv[1:] or ["serve"], "env": environment, "cwd": posix.getcwd()}})
ours, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_STREAM, 0)
fds = b"".join(fd.to_bytes(4, sys.byteorder) for fd in (0, 1, 2, theirs.fileno()))
server = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
server.connect({address!r})
server.sendmsg([len(request).to_bytes({length}, "big")], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, fds)])
server.sendall(request)
theirs.close()
pid = int(ours.recv({number}, _socket.MSG_WAITALL))
def forward(number, frame):
    try:
        posix.kill(pid, number)
    except ProcessLookupError:
        pass
for number in (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP):
    _signal.signal(number, forward)
code = posix.waitstatus_to_exitcode(int(ours.recv({number}, _socket.MSG_WAITALL)))
if code < 0:
    _signal.signal(-code, _signal.SIG_DFL)
    posix.kill(posix.getpid(), -code)
posix._exit(code)
"""


class Forked:
    """One such process, with as much of `subprocess.Popen` as tests use. At a terminal it has no streams of ours."""

    def __init__(
        self,
        pid: int,
        report: socket.socket,
        stdin: IO[bytes] | None = None,
        stdout: IO[bytes] | None = None,
        stderr: IO[bytes] | None = None,
    ) -> None:
        self.pid = pid
        self.stdin, self.stdout, self.stderr = stdin, stdout, stderr
        self.returncode: int | None = None
        self._report = report

    def poll(self) -> int | None:
        return self.returncode if self.returncode is not None else self._end_within(0)

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None and self._end_within(timeout) is None:
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0.0)
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):  # its end may be about to be reported
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _end_within(self, timeout: float | None) -> int | None:
        if select.select([self._report], [], [], timeout)[0]:
            told = self._report.recv(NUMBER_BYTES, socket.MSG_WAITALL)
            self._report.close()
            assert told, "the process that forks servers has ended"
            self.returncode = os.waitstatus_to_exitcode(int(told))
        return self.returncode


class Nursery:
    """The process that forks, seen from the tests. It ends with them."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._control, theirs = socket.socketpair()
        self._lock = threading.Lock()  # a test may start servers in several threads
        self._place = Path(tempfile.mkdtemp(prefix="nursery-"))
        self.program = self._place / "mcpgreen"
        with theirs, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            address = str(self._place / "socket")
            listener.bind(address)
            listener.listen(100)
            code = f"from tests.support.forking import look_after; look_after({theirs.fileno()}, {listener.fileno()})"
            self._process = subprocess.Popen(
                [sys.executable, "-c", code],
                env=dict(environment),
                pass_fds=(theirs.fileno(), listener.fileno()),
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )
        text = PROGRAM.format(python=sys.executable, address=address, length=LENGTH_BYTES, number=NUMBER_BYTES)
        self.program.write_text(text, encoding="utf-8")
        self.program.chmod(0o755)
        atexit.register(self._close)

    def fork(
        self,
        arguments: Sequence[str],
        env: Mapping[str, str],
        cwd: str | None = None,
        *,
        new_session: bool = False,
        is_stderr_read: bool = True,
    ) -> Forked:
        (stdin, to_stdin), (from_stdout, stdout) = os.pipe(), os.pipe()
        from_stderr, stderr = os.pipe() if is_stderr_read else (None, os.open(os.devnull, os.O_WRONLY))
        request = {"argv": list(arguments), "env": dict(env), "cwd": cwd or os.getcwd(), "new_session": new_session}
        pid, report = self._ask(request, [stdin, stdout, stderr])
        stdin_of, stdout_of = open(to_stdin, "wb"), open(from_stdout, "rb")  # noqa: SIM115 (Forked has them)
        stderr_of = None if from_stderr is None else open(from_stderr, "rb")  # noqa: SIM115
        return Forked(pid, report, stdin_of, stdout_of, stderr_of)

    def fork_at_terminal(self, terminal_fd: int, arguments: Sequence[str], env: Mapping[str, str], cwd: str) -> Forked:
        """One that a person has started at this terminal. The descriptor is closed here."""
        request = {"argv": list(arguments), "env": dict(env), "cwd": cwd, "has_terminal": True}
        return Forked(*self._ask(request, [terminal_fd, os.dup(terminal_fd), os.dup(terminal_fd)]))

    def _ask(self, request: dict[str, Any], fds: list[int]) -> tuple[int, socket.socket]:
        """The number of a new process, and where its end is told. The descriptors are given away."""
        message = marshal.dumps(request)
        ours, theirs = socket.socketpair()
        with theirs:
            with self._lock:
                socket.send_fds(self._control, [len(message).to_bytes(LENGTH_BYTES, "big")], [*fds, theirs.fileno()])
                self._control.sendall(message)
            for fd in fds:
                os.close(fd)
        pid = ours.recv(NUMBER_BYTES, socket.MSG_WAITALL)
        assert pid, "no process could be forked for a server"
        return int(pid), ours

    def run(
        self, arguments: Sequence[str], env: Mapping[str, str], cwd: str | None = None, *, timeout: float
    ) -> subprocess.CompletedProcess[str]:
        """As `subprocess.run`, with nothing on stdin."""
        process = self.fork(arguments, env, cwd)
        assert process.stdin and process.stdout and process.stderr
        process.stdin.close()
        with process.stdout, process.stderr, ThreadPoolExecutor(2) as readers:
            printed = [readers.submit(stream.read) for stream in (process.stdout, process.stderr)]
            try:
                status = process.wait(timeout)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                raise
            stdout, stderr = (each.result().decode() for each in printed)
        return subprocess.CompletedProcess(list(arguments), status, stdout, stderr)

    def _close(self) -> None:
        self._control.close()
        self._process.wait()
        shutil.rmtree(self._place, ignore_errors=True)


def can_fork(env: Mapping[str, str]) -> bool:
    """Whether a fork sees all of this environment that a fresh process would see."""
    if os.environ.get("MCPGREEN_FRESH_SERVERS") or not hasattr(socket, "send_fds"):
        return False
    return not any(name.startswith(READ_BY_PYTHON) and name != "PYTHONPATH" for name in env)


# What follows runs in the process that forks.


def look_after(control_fd: int, listener_fd: int) -> None:
    """Fork on demand, and tell the ends of the processes, until there is nobody left to tell."""
    control = socket.socket(fileno=control_fd)
    listener = socket.socket(fileno=listener_fd)
    _import_all()
    gc.freeze()
    reports: dict[int, socket.socket] = {}
    wake_reader, wake_writer = socket.socketpair()
    wake_writer.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake_writer.fileno())
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        ready = select.select([control, listener, wake_reader], [], [])[0]
        if wake_reader in ready:
            wake_reader.recv(4096)
            _tell_ends(reports)
        if listener in ready:
            with listener.accept()[0] as connection, contextlib.suppress(EOFError, OSError):
                _fork_for(connection, reports)
        if control in ready and not _fork_for(control, reports):
            return


def _fork_for(asking: socket.socket, reports: dict[int, socket.socket]) -> bool:
    """Whether there was somebody who asked."""
    length, fds, _, _ = socket.recv_fds(asking, LENGTH_BYTES, REPORT + 1)
    if not length:
        return False
    request = marshal.loads(_exactly(asking, int.from_bytes(length, "big")))
    try:
        pid = os.fork()
    except OSError:  # too many processes, which may be what a test is about: the others go on
        for fd in fds:
            os.close(fd)
        return True
    if pid == 0:
        _become(request, fds)
    report = socket.socket(fileno=fds.pop())
    report.send(b"%*d" % (NUMBER_BYTES, pid))
    reports[pid] = report
    for fd in fds:
        os.close(fd)
    return True


def _import_all() -> None:
    import mcpgreen

    for module in pkgutil.walk_packages(mcpgreen.__path__, "mcpgreen."):
        if not module.name.startswith(NOT_IMPORTED):
            importlib.import_module(module.name)
    for name in ALSO_IMPORTED:
        importlib.import_module(name)
    mcpgreen.text.jsontext.digest([])  # which looks for the module that digests


def _exactly(control: socket.socket, size: int) -> bytes:
    content = b""
    while len(content) < size:
        part = control.recv(size - len(content))
        if not part:
            raise EOFError("whoever asked for a process was gone before all was said")
        content += part
    return content


def _tell_ends(reports: dict[int, socket.socket]) -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        report = reports.pop(pid, None)
        if report is not None:
            with report, contextlib.suppress(OSError):  # nobody may want to know
                report.send(b"%*d" % (NUMBER_BYTES, status))


def _become(request: dict[str, Any], fds: list[int]) -> NoReturn:
    status = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if request.get("new_session") or request.get("has_terminal"):
            os.setsid()
        for target, fd in enumerate(fds[:REPORT]):
            os.dup2(fd, target)
        os.closerange(REPORT, MOST_FDS)
        if request.get("has_terminal"):
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        if os.isatty(1):
            sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
        os.chdir(request["cwd"])
        os.environ.clear()
        os.environ.update(request["env"])
        constants.apply()
        sys.argv[:] = ["mcpgreen", *request["argv"]]
        sys.path[0] = request["cwd"]
        from mcpgreen.__main__ import main

        status = main()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    try:
        atexit._run_exitfuncs()
        sys.stdout.flush()
    finally:
        os._exit(status)
