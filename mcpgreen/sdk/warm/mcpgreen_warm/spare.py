"""A fork of the helper that waits, and becomes one script.

It gets one packet on its socket: the job, with stdout, stderr and control pipe.

Rule: whatever is used here for the first time after a fork is on a page that has to be copied, and those copies are
most of what a call takes. So the way from the fork to the script is one function, without steps in between, and what
it needs has been looked up before the fork.
"""

from __future__ import annotations

import _socket
import os
import sys
from os import _exit, close, dup2, getpid, setsid
from resource import RLIMIT_RTTIME, setrlimit
from struct import Struct
from time import monotonic, time, time_ns

from mcpgreen_warm.jobs import Job
from mcpgreen_warm.packets import ANCILLARY_BYTES, PACKET_BYTES
from mcpgreen_warm.preparing.preloading import Place
from mcpgreen_warm.preparing.reading import UNFIT, contents
from mcpgreen_warm.system import PR_SET_DUMPABLE, prctl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType
    from typing import Any, NoReturn

    from mcpgreen_warm.helper import Helper
    from mcpgreen_warm.script import Script

NOT_FOUND = 127
AUTHKEY_BYTES = 32  # as multiprocessing has it
LOOK_SECS = 0.1  # what a start depends on is not looked at more often
CLOSED_AT_EXEC = _socket.MSG_CMSG_CLOEXEC
# What has to be told of a fork, if it is there; as few scripts have it.
WITH_CARE = ("logging", "numpy.random", "multiprocessing.process")
unpack_outputs = Struct("3i").unpack


class Spare:
    """From the fork to the first line of the script. It is made in the helper, once for many forks."""

    def __init__(self, helper: Helper, socket: _socket.socket, *, is_rehearsal: bool = False) -> None:
        """`socket` is where its own will be."""
        self._helper = helper
        self._is_rehearsal = is_rehearsal  # then we are the helper itself, and go on afterwards
        self._receive, self._send, self._let_go = socket.recvmsg, socket.send, socket.detach
        self._let_go_of_helper = helper.socket.detach
        self._words, self._original_words, self._path = sys.argv, getattr(sys, "orig_argv", [""]), sys.path
        self._main_thread = getattr(sys.modules.get("threading"), "_main_thread", None)
        chance: Any = sys.modules.get("random")
        self._seed_chance: Any = super(chance.Random, chance._inst).seed if chance is not None else None  # type: ignore[misc]
        self._needs_care = not sys.modules.keys().isdisjoint(WITH_CARE)

    def script(self, others: list[int], rehearsal: Callable[[Helper], None] | None = None) -> Script:
        """What it is told to become. Waits for that. `others` are descriptors that are none of its business; a
        `rehearsal` is held if there is time for it."""
        helper = self._helper
        for other in others:
            close(other)
        if not self._is_rehearsal:
            close(self._let_go_of_helper())
            setsid()
        if self._main_thread is not None:
            self._main_thread._native_id = getpid()
        if self._seed_chance is not None:
            self._seed_chance()
        if self._needs_care:
            _take_care()
        if rehearsal is not None:
            rehearsal(helper)
        try:
            packet, parts, _, _ = self._receive(PACKET_BYTES, ANCILLARY_BYTES, CLOSED_AT_EXEC)
        except OSError:
            packet = b""
        if not packet:
            _exit(0)  # it is not needed any more
        head, path, words, changes = packet.split(b"\0\0", 3)
        tag, control, last_word, signature = head.split(b" ", 3)
        stdout, stderr, reports = unpack_outputs(parts[0][2])
        dup2(stdout, 1)
        dup2(stderr, 2)
        reports_at = int(control)
        dup2(reports, reports_at)
        close(stdout)
        close(stderr)
        close(reports)
        setrlimit(RLIMIT_RTTIME, (int(tag), helper.hard_limit))
        variables = changes.split(b"\0") if changes else []
        kept = helper.kept.get(path)
        code = kept.code if kept is not None and kept.is_fit and kept.signature == signature else None
        if kept is not None and code is not None and monotonic() < helper.look_at:
            name, directory, imports_sdk = kept.path, kept.place.directory, kept.imports_sdk
        else:
            name = os.fsdecode(path)
            try:
                code, directory, imports_sdk = self._code_of(path, signature)
            except UNFIT:
                if self._is_rehearsal:
                    raise
                self._execute(Job(words, variables))
        # From now on the script is to blame for how this process ends.
        self._say_goodbye()
        helper.environment.become(variables)
        if helper.of_sdk and not imports_sdk:
            self._hide_sdk()
        prctl(PR_SET_DUMPABLE, 0 if self._is_rehearsal else 1, 0, 0, 0)
        self._words[:] = self._original_words[1:] = [name]
        self._path[0] = directory
        script = helper.script
        script.become(code, name, reports_at, last_word)
        return script

    def _say_goodbye(self) -> None:
        try:
            self._send(b".")
        except OSError:
            pass  # nobody is there to hear it
        close(self._let_go())

    def _code_of(self, path: bytes, signature: bytes) -> tuple[CodeType, str, bool]:
        """Of a script that has to be looked at; where it really lies, and whether it begins with the SDK. Raises what
        says that this is for a fresh start."""
        helper = self._helper
        if helper.surroundings.have_changed():
            raise ValueError("another interpreter, or another module")
        kept = helper.kept.get(path)
        if kept is not None and kept.is_fit and kept.code is not None and kept.signature == signature:
            if not kept.place.has_changed():
                return kept.code, kept.place.directory, kept.imports_sdk
        name = os.fsdecode(path)
        source, its_signature = contents(name)
        if its_signature != signature:
            raise ValueError("its first line may be another by now")
        place = Place(name)
        if place.has_any_of(helper.known):
            raise ValueError("a file beside it has the name of a module that is loaded already")
        if kept is not None and kept.code is not None and kept.signature == signature:
            return kept.code, place.directory, kept.imports_sdk
        return compile(source, name, "exec", dont_inherit=True), place.directory, False

    def _hide_sdk(self) -> None:
        """A script that does not begin with it finds nothing of it."""
        self._helper.hidden.update({name: sys.modules.pop(name) for name in self._helper.of_sdk})
        path = self._helper.surroundings.environment.get(b"PYTHONPATH")
        if path is not None:
            os.environb[b"PYTHONPATH"] = path

    def _execute(self, job: Job) -> NoReturn:
        """Become a fresh start."""
        import signal  # which no other spare needs

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
        _exit(NOT_FOUND)


def _take_care() -> None:
    """Of modules that do not notice every fork by themselves."""
    logging: Any = sys.modules.get("logging")
    if logging is not None:
        logging._startTime = time_ns() if type(logging._startTime) is int else time()
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()
    if "multiprocessing.process" in sys.modules:
        sys.modules["multiprocessing.process"].current_process().authkey = os.urandom(AUTHKEY_BYTES)
