"""A fork of the helper that waits, and becomes one script.

It says its number on its socket when it is ready, and gets one packet: the job, with stdout, stderr and control pipe.
"""

from __future__ import annotations

import _socket
import gc
import os
import resource
import signal
import sys
from contextlib import suppress

from mcpgreen_warm import preloading
from mcpgreen_warm.packets import received
from mcpgreen_warm.script import Script, libc
from mcpgreen_warm.surroundings import signature_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType
    from typing import NoReturn

    from mcpgreen_warm.helper import Helper

NOT_FOUND = 127
AUTHKEY_BYTES = 32  # as multiprocessing has it
PR_SET_DUMPABLE = 4
VARIABLES = 30  # that a call has, more or less
REHEARSAL = compile(
    "import os, sys\n"
    "if 'json' in sys.modules:\n"
    "    import json\n"
    "    json.loads(json.dumps({'name': ['value', 1.5, True, None]}, separators=(',', ':')))\n"
    "os.environ.get('MCP_TOOL_ARGS_JSON')\n"
    "sys.stdout.write('')\n"
    "sys.stdout.flush()\n",
    "<rehearsal>",
    "exec",
)


class Job:
    """What a spare is to become."""

    def __init__(self, packet: bytes, descriptors: list[int]) -> None:
        head, path, words, variables = packet.split(b"\0\0", 3)
        tag, control, self.signature = head.split(b" ", 2)
        self.tag, self.control = int(tag), int(control)
        self.path = os.fsdecode(path)
        self.directory = os.path.dirname(os.path.realpath(self.path))
        self.command = [os.fsdecode(word) for word in words.split(b"\0")]
        self.variables = [entry.partition(b"=") for entry in variables.split(b"\0")]
        self.descriptors = descriptors


class Spare:
    """From the fork to the end of the script."""

    def __init__(self, helper: Helper, descriptor: int) -> None:
        self._helper = helper
        self._socket = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET, 0, descriptor)

    def script(self) -> Script:
        """What it is told to become. Waits for that."""
        os.setsid()
        self._rehearse()
        threading = sys.modules.get("threading")
        if threading is not None and hasattr(threading, "_main_thread"):
            threading._main_thread._set_native_id()  # some versions forget that at a fork
        job = self._job()
        for index, number in enumerate((1, 2, job.control)):
            os.dup2(job.descriptors[index], number)
            os.close(job.descriptors[index])
        resource.setrlimit(resource.RLIMIT_RTTIME, (job.tag, resource.getrlimit(resource.RLIMIT_RTTIME)[1]))
        try:
            code, imports_sdk = self._code_of(job)
        except preloading.UNFIT:
            self._execute(job)
        self._say_goodbye()
        self._become(job, imports_sdk=imports_sdk)
        return Script(code, job.path, descriptors=self._helper.descriptors)

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

    def _rehearse(self) -> None:
        """What a script does first, so that the kernel has given us pages of our own for it by then."""
        exec(REHEARSAL, type(sys)("__main__").__dict__)
        names = [b"MCP_%d" % number for number in range(VARIABLES)]
        for name in names:
            os.environb[name] = b""
        for name in names:
            del os.environb[name]
        self._helper.surroundings.have_changed()
        gc.collect()

    def _code_of(self, job: Job) -> tuple[CodeType, bool]:
        """And whether it begins with the SDK. Raises what says that this is for a fresh start."""
        if self._helper.surroundings.have_changed() or self._is_shadowed(job.directory):
            raise ValueError("another interpreter, or another module")
        kept = self._helper.kept.get(job.path)
        if kept is not None and kept.code is not None:
            if kept.signature == job.signature == signature_of(os.stat(job.path)):
                return kept.code, kept.imports_sdk
        source, signature = preloading.contents(job.path)
        if signature != job.signature:
            raise ValueError("its first line may be another by now")
        return compile(source, job.path, "exec", dont_inherit=True), False

    def _is_shadowed(self, directory: str) -> bool:
        """Whether a file beside the script has the name of a module that is loaded already."""
        known = self._helper.known
        return any(name.partition(".")[0] in known for name in os.listdir(directory) if name[:2] != "__")

    def _become(self, job: Job, *, imports_sdk: bool) -> None:
        for name, _, value in job.variables:
            os.environb[name] = value
        hidden = ["mcpgreen_warm", "mcp_tool"]
        if imports_sdk:
            sys.modules["mcp_tool"]._leave_path()
            del hidden[1]
        self._helper.hidden = [sys.modules.pop(name) for name in self._helper.own if name.startswith(tuple(hidden))]
        if "numpy.random" in sys.modules:
            sys.modules["numpy.random"].seed()  # others hear of the fork and start anew by themselves
        if "multiprocessing.process" in sys.modules:
            sys.modules["multiprocessing.process"].current_process().authkey = os.urandom(AUTHKEY_BYTES)
        libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
        processors = os.sched_getaffinity(os.getppid())  # the server may have been moved since the helper started
        if processors != os.sched_getaffinity(0):
            os.sched_setaffinity(0, processors)
        sys.argv[:] = [job.path]
        if sys.version_info >= (3, 10):
            sys.orig_argv[:] = [sys.orig_argv[0], job.path]
        sys.path[0] = job.directory

    def _execute(self, job: Job) -> NoReturn:
        """Become a fresh start."""
        for name in ("SIGPIPE", "SIGXFZ", "SIGXFSZ"):
            if hasattr(signal, name):
                signal.signal(getattr(signal, name), signal.SIG_DFL)  # Python ignores them, and a program would, too
        variables = {name: value for name, _, value in job.variables}
        self._say_goodbye()
        try:
            os.execvpe(job.command[0], job.command, {**self._helper.surroundings.environment, **variables})
        except OSError as error:
            os.write(2, os.fsencode(f"{job.command[0]}: {error.strerror}\n"))
        os._exit(NOT_FOUND)
