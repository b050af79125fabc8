"""Functions of the system that Python does not have, looked up once: that takes longer than to call them."""

from __future__ import annotations

import ctypes

PR_SET_DUMPABLE, PR_GET_TID_ADDRESS = 4, 40

libc = ctypes.PyDLL(None)
syscall, prctl, fflush = libc.syscall, libc.prctl, libc.fflush
# As in `os`, but the linker has found it already.
leave = libc._exit
# As in `os`, but it gives -1 where that raises ChildProcessError, which takes much longer.
waitid = libc.waitid
