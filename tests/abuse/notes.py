"""Moments that one process notes and another reads, in memory that both share: nobody waits for a disk or a lock."""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Iterator
from typing import NamedTuple

COUNT = struct.Struct("q")
NOTE = struct.Struct("qqq")
PLACES = 4096
SIZE = COUNT.size + PLACES * NOTE.size


class Note(NamedTuple):
    """Where the time of a turn went: the process computed, was not let, or was in a system call. In nanoseconds."""

    cpu_ns: int
    late_ns: int
    asleep_ns: int


class Writer:
    """In the process that notes. Takes the descriptor over; raises OSError if it is none of ours."""

    def __init__(self, fd: int) -> None:
        self._memory = mmap.mmap(fd, SIZE)
        os.close(fd)
        self._count = 0

    def note(self, note: Note) -> None:
        NOTE.pack_into(self._memory, COUNT.size + self._count % PLACES * NOTE.size, *note)
        self._count += 1
        COUNT.pack_into(self._memory, 0, self._count)


class Reader:
    """In the process that reads. `fd` is for the other one to inherit."""

    def __init__(self) -> None:
        self.fd = os.memfd_create("notes")
        os.ftruncate(self.fd, SIZE)
        self._memory = mmap.mmap(self.fd, SIZE)
        self._read = 0

    def fresh(self) -> Iterator[Note]:
        """Those that nobody has read yet; what is too old is lost."""
        (count,) = COUNT.unpack_from(self._memory, 0)
        for number in range(max(self._read, count - PLACES + 1), count):
            yield Note(*NOTE.unpack_from(self._memory, COUNT.size + number % PLACES * NOTE.size))
        self._read = count

    def close(self) -> None:
        self._memory.close()
        if self.fd >= 0:
            os.close(self.fd)
        self.fd = -1
