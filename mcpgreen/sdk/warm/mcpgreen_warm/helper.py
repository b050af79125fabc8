"""Forks spares when it is told to.

On descriptor 3 come packets: `E` with variables (most calls have them), `P` with the path of a script (have its code at
hand, and what it uses of the standard library), `F` with sockets (fork as many spares, each of which has one of them),
and `R` with sockets (the same, and they have time to rehearse). For each spare it says a number: that of its process,
or a negative one if there is none.
"""

from __future__ import annotations

import _socket
import gc
import os
import resource
import sys
import time

from mcpgreen_warm import surroundings
from mcpgreen_warm.compacting import use_up_free_memory
from mcpgreen_warm.forking import Forks
from mcpgreen_warm.jobs import Environment
from mcpgreen_warm.packets import received
from mcpgreen_warm.preparing import preloading
from mcpgreen_warm.preparing.quiet import quietly
from mcpgreen_warm.rehearsal import rehearse, rehearse_alone
from mcpgreen_warm.script import Script, harmless_kinds
from mcpgreen_warm.spare import LOOK_SECS, Spare
from mcpgreen_warm.system import PR_SET_DUMPABLE, prctl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType


CONTROL = 3
KEPT_SCRIPTS = 64
MAX_REASON_BYTES = 1000


class Helper:
    """What all spares have in common."""

    def __init__(self, modules: list[str]) -> None:
        self.look_at = 0.0  # until then, what a start depends on is taken to be as it was
        self.tag, self.hard_limit = resource.getrlimit(resource.RLIMIT_RTTIME)
        self.descriptors = surroundings.descriptors()  # a script has as many: a control pipe where we have the socket
        self.socket = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET, 0, CONTROL)
        self._place = os.dup(CONTROL)  # where each spare has its socket
        self._socket_of_spare = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET, 0, self._place)
        self.modules = modules
        self.kept: dict[bytes, preloading.Kept] = {}
        self.surroundings = surroundings.Surroundings()
        self.environment = Environment({})
        self.hidden: dict[str, ModuleType] = {}  # what a script does not see

    def serve(self) -> Script | None:
        """What is to be run here, in a spare; None in the helper itself, at its end."""
        os.set_inheritable(CONTROL, False)
        try:
            os.setsid()
        except PermissionError:
            pass  # we have a session of our own; but the linker has found for all forks what this calls
        prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)  # else a script could change what others are forked from
        libraries = surroundings.libraries()
        problem = self._problem()
        if problem:
            self.socket.send(b"no " + problem.encode("utf-8", "replace")[:MAX_REASON_BYTES])
            return None
        self._forks = Forks(foreign=surroundings.libraries() - libraries)
        self._settle()
        self._rehearse()
        self.socket.send(b"ready")
        place, dup2, send = self._place, os.dup2, self.socket.send
        while True:
            packet, descriptors = received(self.socket)
            kind = packet[:1]
            if kind in b"FR" and descriptors and not self._has_aged():
                # Looked up here, and not by each fork, or after each.
                fork, become = self._forks.fork, self.spare.script
                rehearsal = rehearse_alone if kind == b"R" else None
                for descriptor in descriptors:
                    dup2(descriptor, place, False)
                    number = fork()
                    if number < 0:
                        number = self._forks.fork_in_another_way()
                    if number == 0:
                        return become(descriptors, rehearsal)
                    try:
                        send(b"%d" % number)
                    except OSError:
                        return None  # the server has gone
                dup2(CONTROL, place, False)
                for descriptor in descriptors:
                    os.close(descriptor)
            elif kind == b"P":
                self._prepare(packet[1:])
            elif kind == b"E":
                self._expect(dict([entry.split(b"=", 1) for entry in packet[1:].split(b"\0")]))
            else:
                return None

    def _has_aged(self) -> bool:
        """Whether another helper should take our place. A spare looks once more, before it becomes a script."""
        now = time.monotonic()
        if now < self.look_at:
            return False
        self.look_at = now + LOOK_SECS
        self._look_again()
        return self.surroundings.have_changed()

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
        with quietly():
            for name in self.modules:
                try:
                    __import__(name)
                except Exception as error:
                    return f"it cannot import {name}: {type(error).__name__}: {error}"
        return ""

    def _settle(self) -> None:
        """What is there by now stays: the collectors of children need not look at it. What is ours is hidden."""
        self.known = frozenset(sys.modules)
        sdk = sys.modules.get("mcp_tool")
        sdk = sdk if hasattr(sdk, "_leave_path") else None  # else another module of that name
        own = "mcpgreen_warm" if sdk is not None else ("mcpgreen_warm", "mcp_tool")
        self.hidden = {name: sys.modules.pop(name) for name in list(sys.modules) if name.startswith(own)}
        self.of_sdk = [name for name in sys.modules if name.startswith("mcp_tool")]
        self.environment.put_on(sdk=sdk)
        self.harmless = harmless_kinds()
        self.script = Script(self.harmless, descriptors=self.descriptors)
        self.spare = Spare(self, self._socket_of_spare)
        self.used = {name for kept in self.kept.values() for name in kept.used if name in sys.modules}
        self._look_again()
        self._forks.look_again()
        gc.collect()
        use_up_free_memory()
        gc.freeze()

    def _look_again(self) -> None:
        """At what lies beside our scripts."""
        for kept in self.kept.values():
            kept.look_again(self.known)

    def _rehearse(self) -> None:
        rehearse(self)
        gc.collect()
        use_up_free_memory()
        gc.freeze()

    def _prepare(self, path: bytes) -> None:
        """Have the script at hand for spares from now on."""
        self.kept.pop(path, None)
        had_sdk = bool(self.of_sdk)
        self.environment.take_off()
        sys.modules.update(self.hidden)
        kept = preloading.kept(os.fsdecode(path))
        if kept is not None:
            while len(self.kept) >= KEPT_SCRIPTS:
                del self.kept[next(iter(self.kept))]
            self.kept[path] = kept
            if kept.imports_sdk:
                self.surroundings.watch(sys.modules["mcp_tool"].__file__ or "")
        self._settle()
        if self.of_sdk and not had_sdk:
            self._rehearse()
