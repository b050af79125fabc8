"""Forks that are children of our parent, the server.

`clone` can say so. Where it cannot be used we fork twice: the server adopts whoever loses its parent.

Rule: who wants to be told of forks is told. Of those in the standard library it is known that they only look after
other threads, which are not here; they would take longer than the fork itself.
"""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import sys
from _thread import LockType

from mcpgreen_warm import preloading, surroundings
from mcpgreen_warm.system import PR_GET_TID_ADDRESS, prctl, syscall

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CLONE_PARENT, CLONE_CHILD_CLEARTID, CLONE_CHILD_SETTID = 0x8000, 0x200000, 0x1000000
# The number of the system call, and which argument says where the thread's number is: as glibc's fork has it.
CLONE_OF = {"x86_64": (56, 3), "aarch64": (220, 4)}
ABOUT_THREADS = ("threading", "logging", "concurrent.futures.thread", "asyncio.events")

before_fork, after_fork_in_parent, after_fork_in_child = (
    getattr(ctypes.pythonapi, f"PyOS_{name}") for name in ("BeforeFork", "AfterFork_Parent", "AfterFork_Child")
)


class Forks:
    """How to fork here."""

    def __init__(self, *, may_clone: bool) -> None:
        """`may_clone`: nobody but Python itself may have asked to be told of forks."""
        self._told = _who_is_told()
        self._clone_arguments = _clone_arguments() if may_clone else None
        self.look_again()

    def look_again(self) -> None:
        """At who wants to be told of forks; those who need it, and are told by the spare, are not meant."""
        self._tells = not all(_needs_no_word(each) for told in self._told for each in told)

    def fork(self) -> int:
        """The number of the spare, and 0 in the spare. Raises OSError."""
        if self._clone_arguments is None:
            return _fork_twice()
        if not self._tells:
            pid = int(syscall(*self._clone_arguments))
        else:
            before_fork()
            pid = int(syscall(*self._clone_arguments))
            if pid == 0:
                after_fork_in_child()
            else:
                after_fork_in_parent()
        if pid >= 0:
            return pid
        self._clone_arguments = None  # a sandbox does not allow it
        return _fork_twice()


def _clone_arguments() -> list[ctypes.c_long] | None:
    """None where glibc does not keep the number of this thread as we expect it: others keep something else there."""
    address = ctypes.c_void_p()
    if os.uname().machine not in CLONE_OF or surroundings.threads() > 1:
        return None
    if prctl(PR_GET_TID_ADDRESS, ctypes.byref(address), 0, 0, 0) != 0 or not address.value:
        return None
    if ctypes.c_int.from_address(address.value).value != os.getpid():
        return None
    number, place = CLONE_OF[os.uname().machine]
    flags = CLONE_PARENT | CLONE_CHILD_CLEARTID | CLONE_CHILD_SETTID | signal.SIGCHLD
    arguments = [ctypes.c_long(value) for value in (number, flags, 0, 0, 0, 0)]
    arguments[1 + place] = ctypes.c_long(address.value)
    before_fork()
    after_fork_in_child()  # nobody else is here, as in a fork; the linker finds for all what this calls
    return arguments


def _who_is_told() -> list[list[Any]]:
    """Of forks. The interpreter has lists of them that it does not show; those that have us in them can be found."""
    os.register_at_fork(before=_ignore, after_in_parent=_ignore, after_in_child=_ignore)
    return [each for each in gc.get_referrers(_ignore) if type(each) is list]


def _ignore() -> None:
    """Of a fork."""


def _needs_no_word(told: Any) -> bool:
    if told is _ignore or getattr(told, "__module__", None) in ABOUT_THREADS:
        return True
    owner = getattr(told, "__self__", None)
    return type(owner) is LockType or owner is getattr(sys.modules.get("random"), "_inst", told)


def _fork_twice() -> int:
    ours, theirs = os.pipe()
    with preloading.quietly():  # about threads, which the modules that have them can handle at a fork
        pid = os.fork()
        if pid == 0:
            pid = os.fork()
            if pid:
                os.write(theirs, b"%d" % pid)
                os._exit(0)
            os.close(ours)
            os.close(theirs)
            return 0
    os.close(theirs)
    os.waitpid(pid, 0)
    number = os.read(ours, 20)
    os.close(ours)
    if not number:
        raise BlockingIOError("there are too many processes")
    return int(number)
