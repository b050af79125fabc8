"""A process that does nothing but sleep, and notes when it was woken late: then the machine was, and not the server.

It has the priority of the server. While both want a processor the scheduler prefers who has slept, so it is late for
less than the server is; but a machine that stands still as a whole, as virtual ones do, shows here alone.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import deque

from tests.abuse.notes import Note, Reader, Writer

PAUSE_SECS = 0.004
WORTH_NS = 1_000_000
KEPT = 1000


class Control:
    """Such a process, which ends with us at the latest."""

    def __init__(self) -> None:
        self._reader = Reader()
        self._noted: deque[Note] = deque(maxlen=KEPT)
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, str(self._reader.fd), str(os.getpid())],
            pass_fds=[self._reader.fd],
            cwd=os.path.dirname(os.path.dirname(os.path.dirname(__file__))),
            stdin=subprocess.DEVNULL,
        )

    def late_secs(self, began_at: float, ended_at: float) -> float:
        """The longest that it was late between these moments."""
        self._noted.extend(self._reader.fresh())
        began_ns, ended_ns = int(began_at * 1e9), int(ended_at * 1e9)
        meanwhile = [
            min(note.ended_ns, ended_ns) - max(note.ended_ns - note.late_ns, began_ns)
            for note in self._noted
            if note.ended_ns >= began_ns and note.ended_ns - note.late_ns <= ended_ns
        ]
        return max(meanwhile, default=0) / 1e9

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.close()


def main(fd: int, owner: int) -> None:
    writer = Writer(fd)
    while os.getppid() == owner:
        due_ns = time.monotonic_ns() + int(PAUSE_SECS * 1e9)
        time.sleep(PAUSE_SECS)
        now_ns = time.monotonic_ns()
        if now_ns - due_ns >= WORTH_NS:
            writer.note(Note(now_ns, 0, now_ns - due_ns, 0))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
