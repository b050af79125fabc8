"""Forks spares when it is told to.

On descriptor 3 come packets: `F` with a socket (fork a spare that has this socket), and `P` with the path of a script
(have its code at hand, and what it uses of the standard library).
"""

from __future__ import annotations

import _socket
import ctypes
import gc
import os
import signal
import sys

from mcpgreen_warm import preloading, surroundings
from mcpgreen_warm.packets import received
from mcpgreen_warm.spare import Spare

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    from mcpgreen_warm.script import Script

CONTROL = 3
KEPT_SCRIPTS = 64
MAX_REASON_BYTES = 1000
CLONE_PARENT, CLONE_CHILD_CLEARTID, CLONE_CHILD_SETTID = 0x8000, 0x200000, 0x1000000
PR_SET_DUMPABLE, PR_GET_TID_ADDRESS = 4, 40
# The number of the system call, and which argument says where the thread's number is: as glibc's fork has it.
CLONE_OF = {"x86_64": (56, 3), "aarch64": (220, 4)}

libc = ctypes.PyDLL(None, use_errno=True)


class Helper:
    """What all spares have in common."""

    def __init__(self, modules: list[str]) -> None:
        self.socket = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET, 0, CONTROL)
        self.modules = modules
        self.kept: dict[str, preloading.Kept] = {}
        self.descriptors = surroundings.descriptors()  # a script has as many: a control pipe where we have the socket
        self.surroundings = surroundings.Surroundings()
        self.tid_address: int | None = None
        self.hidden: list[ModuleType] = []  # modules that a script does not see: they must not go, which takes time

    def serve(self) -> Script | None:
        """What is to be run here, in a spare; None in the helper itself, at its end."""
        os.set_inheritable(CONTROL, False)
        libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)  # else a script could change what others are forked from
        problem = self._problem()
        if problem:
            self.socket.send(b"no " + problem.encode("utf-8", "replace")[:MAX_REASON_BYTES])
            return None
        self._find_thread()
        self._settle()
        self.socket.send(b"ready")
        while True:
            packet, descriptors = received(self.socket)
            if packet == b"F" and not self.surroundings.have_changed():
                if self._fork():
                    self.socket.close()
                    return Spare(self, descriptors[0]).script()
                os.close(descriptors[0])
            elif packet[:1] == b"P":
                self._prepare(os.fsdecode(packet[1:]))
            else:
                return None

    def _problem(self) -> str:
        """Why nothing can be forked from here; empty if all is well."""
        if sys.implementation.name != "cpython" or sys.version_info < (3, 8):
            return "it is no CPython since 3.8"
        if surroundings.threads() > 1:
            return "its start begins threads"
        with preloading.quietly():
            for name in self.modules:
                try:
                    __import__(name)
                except Exception as error:
                    return f"it cannot import {name}: {type(error).__name__}: {error}"
        return ""

    def _find_thread(self) -> None:
        """Where glibc keeps the number of this thread. Others keep something else there: then we fork twice, and also
        if somebody may have asked to be told of forks, which `clone` does not do."""
        address = ctypes.c_void_p()
        if os.uname().machine not in CLONE_OF or self.modules or surroundings.threads() > 1:
            return
        if libc.prctl(PR_GET_TID_ADDRESS, ctypes.byref(address), 0, 0, 0) != 0 or not address.value:
            return
        if ctypes.c_int.from_address(address.value).value == os.getpid():
            self.tid_address = address.value

    def _settle(self) -> None:
        """What is there by now stays: the collectors of children need not look at it."""
        gc.collect()
        gc.freeze()
        self.known = frozenset(sys.modules)
        self.own = [name for name in sys.modules if name.startswith(("mcpgreen_warm", "mcp_tool"))]

    def _prepare(self, path: str) -> None:
        """Have the script at hand for spares from now on."""
        self.kept.pop(path, None)
        kept = preloading.kept(path)
        if kept is not None:
            while len(self.kept) >= KEPT_SCRIPTS:
                del self.kept[next(iter(self.kept))]
            self.kept[path] = kept
            if kept.imports_sdk:
                self.surroundings.watch(sys.modules["mcp_tool"].__file__ or "")
        self._settle()

    def _fork(self) -> bool:
        """Whether we are the spare."""
        return _fork_twice() if self.tid_address is None else self._clone(self.tid_address)

    def _clone(self, tid_address: int) -> bool:
        """Fork, but as a child of our parent."""
        number, place = CLONE_OF[os.uname().machine]
        flags = CLONE_PARENT | CLONE_CHILD_CLEARTID | CLONE_CHILD_SETTID | signal.SIGCHLD
        arguments = [ctypes.c_long(value) for value in (number, flags, 0, 0, 0, 0)]
        arguments[1 + place] = ctypes.c_long(tid_address)
        ctypes.pythonapi.PyOS_BeforeFork()
        pid = libc.syscall(*arguments)
        if pid == 0:
            ctypes.pythonapi.PyOS_AfterFork_Child()
            return True
        ctypes.pythonapi.PyOS_AfterFork_Parent()
        if pid < 0:  # a sandbox does not allow it
            self.tid_address = None
            return _fork_twice()
        return False


def _fork_twice() -> bool:
    """The server adopts whoever loses its parent."""
    with preloading.quietly():  # about threads, which the modules that have them can handle at a fork
        pid = os.fork()
        if pid:
            os.waitpid(pid, 0)
            return False
        if os.fork():
            os._exit(0)
    return True
