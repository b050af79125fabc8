"""Forks that are children of our parent, the server.

`clone` can say so. Where it cannot be used we fork twice: the server adopts whoever loses its parent.

Rule: who wants to be told of forks is told. Of those in the standard library it is known that they only look after
other threads, which are not here; they would take longer than the fork itself.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from _thread import LockType
from functools import partial

from mcpgreen_warm import surroundings
from mcpgreen_warm.preparing.quiet import quietly
from mcpgreen_warm.system import PR_GET_TID_ADDRESS, prctl, syscall

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

CLONE_PARENT, CLONE_CHILD_CLEARTID, CLONE_CHILD_SETTID, SIGCHLD = 0x8000, 0x200000, 0x1000000, 17
# The number of the system call, and which argument says where the thread's number is: as glibc's fork has it.
CLONE_OF = {"x86_64": (56, 3), "aarch64": (220, 4)}
MAX_NUMBER_BYTES = 20
MAX_LIBRARY_BYTES = 100_000_000  # they are read through
UNKNOWN = (3, 14)  # from this version on we have not tried what happens if nobody is told of a fork
ABOUT_THREADS = ("threading", "logging", "concurrent.futures.thread", "asyncio.events")

before_fork, after_fork_in_parent, after_fork_in_child = (
    getattr(ctypes.pythonapi, f"PyOS_{name}") for name in ("BeforeFork", "AfterFork_Parent", "AfterFork_Child")
)


class Forks:
    """How to fork here."""

    def __init__(self, foreign: set[str]) -> None:
        """`foreign` are libraries that do not belong to Python, and are loaded ahead."""
        self._told = _who_is_told()
        self._clone: Callable[[], int] | None = None if _know_of_forks(foreign) else _clone()
        self.look_again()

    def look_again(self) -> None:
        """At who wants to be told of forks."""
        needs_no_word = sys.version_info < UNKNOWN and all(_needs_no_word(each) for told in self._told for each in told)
        # The number of the spare, and 0 in the spare; negative if it has to be `fork_in_another_way`.
        self.fork: Callable[[], int] = self._clone if self._clone and needs_no_word else self.fork_in_another_way

    def fork_in_another_way(self) -> int:
        """As `fork`. Negative if there can be no spare now."""
        if self._clone is None or self.fork is self._clone:
            return _fork_twice()  # a sandbox does not allow the other
        before_fork()
        pid = self._clone()
        if pid == 0:
            after_fork_in_child()
        else:
            after_fork_in_parent()
        return pid if pid >= 0 else _fork_twice()


def _know_of_forks(libraries: set[str]) -> bool:
    """Whether one of them may have asked the system to be told, which `clone` does not do."""
    try:
        if sum(map(os.path.getsize, libraries)) > MAX_LIBRARY_BYTES:
            return True
        for library in libraries:
            with open(library, "rb") as file:
                if b"atfork" in file.read():
                    return True
    except OSError:
        return True
    return False


def _clone() -> Callable[[], int] | None:
    """None where glibc does not keep the number of this thread as we expect it (others keep something else there), and
    in interpreters without a global lock."""
    address = ctypes.c_void_p()
    if os.uname().machine not in CLONE_OF or surroundings.threads() > 1 or "t" in sys.abiflags:
        return None
    if prctl(PR_GET_TID_ADDRESS, ctypes.byref(address), 0, 0, 0) != 0 or not address.value:
        return None
    if ctypes.c_int.from_address(address.value).value != os.getpid():
        return None
    number, place = CLONE_OF[os.uname().machine]
    flags = CLONE_PARENT | CLONE_CHILD_CLEARTID | CLONE_CHILD_SETTID | SIGCHLD
    arguments = [ctypes.c_long(value) for value in (number, flags, 0, 0, 0, 0)]
    arguments[1 + place] = ctypes.c_long(address.value)
    before_fork()
    after_fork_in_child()  # nobody else is here, as in a fork; the linker finds for all what this calls
    return partial(syscall, *arguments)


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
    """The first fork tells the number of the second, and goes."""
    ours, theirs = os.pipe()
    try:
        with quietly():  # about threads, which the modules that have them can handle at a fork
            first = os.fork()
            if first == 0:
                try:
                    second = os.fork()
                except OSError:
                    os._exit(1)
                if second == 0:
                    return 0
                os.write(theirs, b"%d" % second)
                os._exit(0)
        os.waitpid(first, 0)
        os.set_blocking(ours, False)
        return int(os.read(ours, MAX_NUMBER_BYTES))
    except OSError:
        return -1  # there are too many processes
    finally:
        os.close(ours)
        os.close(theirs)
