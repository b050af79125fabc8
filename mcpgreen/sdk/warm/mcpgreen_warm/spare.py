"""A fork of the helper that waits, and becomes one script.

It says its number on its socket when it is ready, and gets one packet: the job, with stdout, stderr and control pipe.
"""

from __future__ import annotations

import _socket
import os
import resource
import signal
import sys
from contextlib import suppress

from mcpgreen_warm import preloading
from mcpgreen_warm.jobs import Job
from mcpgreen_warm.packets import received
from mcpgreen_warm.script import Script, libc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType
    from typing import NoReturn

    from mcpgreen_warm.helper import Helper

NOT_FOUND = 127
AUTHKEY_BYTES = 32  # as multiprocessing has it
PR_SET_DUMPABLE = 4


class Spare:
    """From the fork to the end of the script."""

    def __init__(self, helper: Helper, descriptor: int, *, is_rehearsal: bool = False) -> None:
        self._helper = helper
        self._is_rehearsal = is_rehearsal  # then we are the helper itself, and go on afterwards
        self._socket = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET, 0, descriptor)

    def script(self) -> Script:
        """What it is told to become. Waits for that."""
        if not self._is_rehearsal:
            os.setsid()
        script = self._helper.script
        self._make_ready()
        job = self._job()
        for index, number in enumerate((1, 2, job.control)):
            os.dup2(job.descriptors[index], number)
            os.close(job.descriptors[index])
        resource.setrlimit(resource.RLIMIT_RTTIME, (job.tag, self._helper.hard_limit))
        try:
            code, directory, imports_sdk = self._code_of(job)
        except preloading.UNFIT:
            if self._is_rehearsal:
                raise
            self._execute(job)
        self._say_goodbye()
        self._become(job, directory, imports_sdk=imports_sdk)
        script.become(code, job)
        return script

    def _job(self) -> Job:
        try:
            self._socket.send(b"%d" % os.getpid())
            packet, descriptors = received(self._socket)
        except OSError:
            packet = b""
        if not packet:
            os._exit(0)  # it is not needed any more
        return Job(packet, descriptors)

    def _say_goodbye(self) -> None:
        """From now on the script is to blame for how this process ends."""
        with suppress(OSError):
            self._socket.send(b".")
        self._socket.close()

    def _make_ready(self) -> None:
        """What can be done before the job is known."""
        threading = sys.modules.get("threading")
        if threading is not None and hasattr(threading, "_main_thread"):
            threading._main_thread._set_native_id()  # some versions forget that at a fork
        if "numpy.random" in sys.modules:
            sys.modules["numpy.random"].seed()  # others hear of the fork and start anew by themselves
        if "multiprocessing.process" in sys.modules:
            sys.modules["multiprocessing.process"].current_process().authkey = os.urandom(AUTHKEY_BYTES)

    def _code_of(self, job: Job) -> tuple[CodeType, str, bool]:
        """Where it really lies, and whether it begins with the SDK. Raises what says that this is for a fresh start."""
        if self._helper.surroundings.have_changed():
            raise ValueError("another interpreter, or another module")
        kept = self._helper.kept.get(job.path)
        if kept is not None and kept.code is not None and kept.signature == job.signature:
            if not kept.is_shadowed and not kept.place.has_changed():
                return kept.code, kept.place.directory, kept.imports_sdk
        source, signature = preloading.contents(job.path)
        if signature != job.signature:
            raise ValueError("its first line may be another by now")
        place = preloading.Place(job.path)
        if place.has_any_of(self._helper.known):
            raise ValueError("a file beside it has the name of a module that is loaded already")
        if kept is not None and kept.code is not None and kept.signature == signature:
            return kept.code, place.directory, kept.imports_sdk
        return compile(source, job.path, "exec", dont_inherit=True), place.directory, False

    def _become(self, job: Job, directory: str, *, imports_sdk: bool) -> None:
        self._helper.environment.become(job)
        if not imports_sdk and self._helper.of_sdk:
            self._hide_sdk()
        if not self._is_rehearsal:
            libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
        sys.argv[:] = [job.path]
        if sys.version_info >= (3, 10):
            sys.orig_argv[:] = [sys.orig_argv[0], job.path]
        sys.path[0] = directory

    def _hide_sdk(self) -> None:
        """A script that does not begin with it finds nothing of it."""
        self._helper.hidden.update({name: sys.modules.pop(name) for name in self._helper.of_sdk})
        path = self._helper.surroundings.environment.get(b"PYTHONPATH")
        if path is not None:
            os.environb[b"PYTHONPATH"] = path

    def _execute(self, job: Job) -> NoReturn:
        """Become a fresh start."""
        for name in ("SIGPIPE", "SIGXFZ", "SIGXFSZ"):
            if hasattr(signal, name):
                signal.signal(getattr(signal, name), signal.SIG_DFL)  # Python ignores them, and a program would, too
        helper = self._helper
        environment = job.applied_to({**helper.surroundings.environment, **helper.environment.usual})
        self._say_goodbye()
        try:
            os.execvpe(job.command[0], job.command, environment)
        except OSError as error:
            os.write(2, os.fsencode(f"{job.command[0]}: {error.strerror}\n"))
        os._exit(NOT_FOUND)
