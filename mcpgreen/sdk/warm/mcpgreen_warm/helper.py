"""Forks spares when it is told to.

On descriptor 3 come packets: `E` with variables (most calls have them), `P` with the path of a script (have its code at
hand, and what it uses of the standard library), `F` with sockets
(fork as many spares, each of which has one of them), and `R` with sockets (the same, and they have time to rehearse).
"""

from __future__ import annotations

import _socket
import ctypes
import gc
import os
import resource
import signal
import sys
import time

from mcpgreen_warm import preloading, surroundings
from mcpgreen_warm.compacting import use_up_free_memory
from mcpgreen_warm.jobs import Environment
from mcpgreen_warm.packets import received
from mcpgreen_warm.rehearsal import rehearse, rehearse_alone
from mcpgreen_warm.script import Script
from mcpgreen_warm.spare import Spare

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType


CONTROL = 3
KEPT_SCRIPTS = 64
MAX_REASON_BYTES = 1000
LOOK_SECS = 0.1
CLONE_PARENT, CLONE_CHILD_CLEARTID, CLONE_CHILD_SETTID = 0x8000, 0x200000, 0x1000000
PR_SET_DUMPABLE, PR_GET_TID_ADDRESS = 4, 40
# The number of the system call, and which argument says where the thread's number is: as glibc's fork has it.
CLONE_OF = {"x86_64": (56, 3), "aarch64": (220, 4)}


libc = ctypes.PyDLL(None, use_errno=True)
# Looked up once: each fork would do it anew.
syscall = libc.syscall
before_fork, after_fork_in_parent, after_fork_in_child = (
    getattr(ctypes.pythonapi, f"PyOS_{name}") for name in ("BeforeFork", "AfterFork_Parent", "AfterFork_Child")
)


class Helper:
    """What all spares have in common."""

    def __init__(self, modules: list[str]) -> None:
        self.looked_at = 0.0
        self.tag, self.hard_limit = resource.getrlimit(resource.RLIMIT_RTTIME)
        self.socket = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET, 0, CONTROL)
        self.modules = modules
        self.kept: dict[str, preloading.Kept] = {}
        self.descriptors = surroundings.descriptors()  # a script has as many: a control pipe where we have the socket
        self.surroundings = surroundings.Surroundings()
        self.clone_arguments: list[ctypes.c_long] | None = None
        self.environment = Environment({})
        self.hidden: dict[str, ModuleType] = {}  # what a script does not see

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
        self._rehearse()
        self.socket.send(b"ready")
        while True:
            packet, descriptors = received(self.socket)
            kind = packet[:1]
            if kind in b"FR" and descriptors and not self._has_aged():
                for descriptor in descriptors:
                    if self._fork():
                        self.socket.close()
                        return self._spare(descriptor, descriptors, rehearses=kind == b"R")
                    os.close(descriptor)
            elif kind == b"P":
                self._prepare(os.fsdecode(packet[1:]))
            elif kind == b"E":
                self._expect(dict([entry.split(b"=", 1) for entry in packet[1:].split(b"\0")]))
            else:
                return None

    def _has_aged(self) -> bool:
        """Whether another helper should take our place. A spare looks once more, before it becomes a script."""
        now = time.monotonic()
        if now - self.looked_at < LOOK_SECS:
            return False
        self.looked_at = now
        if self.unsettled:
            self._look_again()
        return self.surroundings.have_changed()

    def _spare(self, descriptor: int, others: list[int], *, rehearses: bool) -> Script:
        for other in others[others.index(descriptor) + 1 :]:
            os.close(other)
        spare = Spare(self, descriptor)
        if rehearses:
            rehearse_alone(self)
        return spare.script()

    def _expect(self, usual: dict[bytes, bytes]) -> None:
        self.environment.take_off()
        self.environment = Environment(usual)
        self._settle()

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
            number, place = CLONE_OF[os.uname().machine]
            flags = CLONE_PARENT | CLONE_CHILD_CLEARTID | CLONE_CHILD_SETTID | signal.SIGCHLD
            self.clone_arguments = [ctypes.c_long(value) for value in (number, flags, 0, 0, 0, 0)]
            self.clone_arguments[1 + place] = ctypes.c_long(address.value)
            before_fork()
            after_fork_in_child()  # nobody else is here, as in a fork; the linker finds for all what this calls

    def _settle(self) -> None:
        """What is there by now stays: the collectors of children need not look at it. What is ours is hidden."""
        self.known = frozenset(sys.modules)
        sdk = sys.modules.get("mcp_tool")
        sdk = sdk if hasattr(sdk, "_leave_path") else None  # else another module of that name
        own = "mcpgreen_warm" if sdk is not None else ("mcpgreen_warm", "mcp_tool")
        self.hidden = {name: sys.modules.pop(name) for name in list(sys.modules) if name.startswith(own)}
        self.of_sdk = [name for name in sys.modules if name.startswith("mcp_tool")]
        self.environment.put_on(sdk=sdk)
        self.script = Script(descriptors=self.descriptors)
        self._look_again()
        gc.collect()
        use_up_free_memory()
        gc.freeze()

    def _look_again(self) -> None:
        """At what lies beside our scripts."""
        for kept in self.kept.values():
            kept.look_again(self.known)
        self.unsettled = [kept for kept in self.kept.values() if not kept.place.is_settled]

    def _rehearse(self) -> None:
        rehearse(self)
        gc.collect()
        use_up_free_memory()
        gc.freeze()

    def _prepare(self, path: str) -> None:
        """Have the script at hand for spares from now on."""
        self.kept.pop(path, None)
        had_sdk = bool(self.of_sdk)
        self.environment.take_off()
        sys.modules.update(self.hidden)
        kept = preloading.kept(path)
        if kept is not None:
            while len(self.kept) >= KEPT_SCRIPTS:
                del self.kept[next(iter(self.kept))]
            self.kept[path] = kept
            if kept.imports_sdk:
                self.surroundings.watch(sys.modules["mcp_tool"].__file__ or "")
        self._settle()
        if self.of_sdk and not had_sdk:
            self._rehearse()

    def _fork(self) -> bool:
        """Whether we are the spare."""
        return _fork_twice() if self.clone_arguments is None else self._clone(self.clone_arguments)

    def _clone(self, arguments: list[ctypes.c_long]) -> bool:
        """Fork, but as a child of our parent."""
        before_fork()
        pid = syscall(*arguments)
        if pid == 0:
            after_fork_in_child()
            return True
        after_fork_in_parent()
        if pid < 0:  # a sandbox does not allow it
            self.clone_arguments = None
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
