"""How long each turn of a server's hub took, from one poll to the next, and where the time went.

A server that is started with the variables of `environment` has `RecordingLoop` for its event loop: gevent lets
the environment name one, so nothing of the server is changed. The turns that took long are left in memory that the
driver shares. A turn is made of three times:

* *cpu*: the hub computed, and nobody else was served;
* *late*: it could have gone on but the machine gave the processor to somebody else;
* *asleep*: it waited within a system call, for a disk or a lock.

`STACKS` names a file to which turns of more than STACK_SECS say where they were: for a look, not for measuring.
"""

from __future__ import annotations

import atexit
import os
import signal
import time
import traceback
from typing import Any

from gevent.libev.corecext import loop as LibevLoop

from tests.abuse.notes import Note, Reader, Writer

FD = "ABUSE_TURNS_FD"
STACKS = "ABUSE_TURNS_STACKS"
WORTH_NS = 2_000_000  # shorter turns are not noted
STACK_SECS = 0.03


class RecordingLoop(LibevLoop):  # type: ignore[misc]
    """The usual loop, with a look at the clocks before and after each poll."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not self.default or FD not in os.environ:
            return
        fd = int(os.environ.pop(FD))  # for this process alone, not for those that it starts
        try:
            self._notes = Writer(fd)
        except OSError:
            return
        self._schedstat = os.open(f"/proc/self/task/{os.getpid()}/schedstat", os.O_RDONLY | os.O_CLOEXEC)
        self._began = time.monotonic_ns(), time.thread_time_ns(), delay_ns(self._schedstat)
        self._stacks = os.environ.pop(STACKS, "")
        if self._stacks:
            signal.signal(signal.SIGALRM, self._show_stack)
            atexit.register(signal.setitimer, signal.ITIMER_REAL, 0)
        # The first of all after a poll, the last of all before the next one.
        self._after_poll, self._before_poll = self.check(ref=False, priority=2), self.prepare(ref=False, priority=-2)
        self._after_poll.start(self._begin)
        self._before_poll.start(self._end)

    def _begin(self) -> None:
        if self._stacks:
            signal.setitimer(signal.ITIMER_REAL, STACK_SECS)
        self._began = time.monotonic_ns(), time.thread_time_ns(), delay_ns(self._schedstat)

    def _end(self) -> None:
        began_ns, cpu_ns, late_ns = self._began
        now_ns = time.monotonic_ns()
        took_ns = now_ns - began_ns
        if took_ns >= WORTH_NS:
            cpu_ns, late_ns = time.thread_time_ns() - cpu_ns, delay_ns(self._schedstat) - late_ns
            self._notes.note(Note(cpu_ns, late_ns, max(0, took_ns - cpu_ns - late_ns)))
        if self._stacks:
            signal.setitimer(signal.ITIMER_REAL, 0)

    def _show_stack(self, number: int, frame: Any) -> None:
        began_ns, cpu_ns, late_ns = self._began
        took = (time.monotonic_ns() - began_ns) / 1e6
        cpu = (time.thread_time_ns() - cpu_ns) / 1e6
        late = (delay_ns(self._schedstat) - late_ns) / 1e6
        with open(self._stacks, "a", encoding="utf-8") as file:
            file.write(f"--- after {took:.0f} ms: cpu {cpu:.0f} ms, late {late:.0f} ms\n")
            file.writelines(traceback.format_stack(frame)[-12:])
        signal.setitimer(signal.ITIMER_REAL, STACK_SECS)


def environment(notes: Reader, *, stacks: str = "") -> dict[str, str]:
    """For a server that has to inherit `notes.fd`."""
    loop = f"{RecordingLoop.__module__}.{RecordingLoop.__name__}"
    # Other processes of the server's may have less on their path.
    return {"GEVENT_LOOP": f"{loop},libev-cext", FD: str(notes.fd), **({STACKS: stacks} if stacks else {})}


def delay_ns(schedstat: int) -> int:
    """How long a thread could have run and was not let, since it began. 0 where the kernel does not count."""
    fields = os.pread(schedstat, 100, 0).split()
    return int(fields[1]) if len(fields) > 1 else 0
