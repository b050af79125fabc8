"""Read a child's pipes without a greenlet for each.

A reader is a watcher on the hub that hands over chunks as they come. The descriptors are ours alone, so they are
non-blocking, and `drain` can take what is left once the child is gone. The function that gets the chunks may ask for a
rest: then nothing is read, the pipe fills, and the child has to wait.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import gevent

from mcpgreen.running.shares import Shares

OnChunk = Callable[[bytes], "float | None"]

READ_EVENT, WRITE_EVENT = 1, 2  # as the hub's loop counts them
CHUNK_BYTES = 65536
LARGE_PIPE_BYTES = 1 << 20
# What scripts print is held in memory until it is answered: ten megabytes each, and several times as much while it is
# put into words. So beyond a megabyte a script needs one of a few places; without one its pipe is not read for a while.
PLACES = 3
SMALL_BYTES = 1 << 20  # which need no place
SMALL_CHUNK_BYTES = 4096
PIECE_BYTES = 65536
KEPT_BYTES = 65536  # of what a resident process has printed
RETRY_SECS = 0.02
MAX_DRAIN_READS = 32  # at a time: a full large pipe in small chunks, and twice that


class PipeReader:
    """Reads one pipe to its end; calls `on_chunk` in the hub, which must therefore not switch. If that returns a
    number of seconds, reading pauses, and it is called without a chunk afterwards, until it returns no number.

    Reads by itself after `watch`; before and after that, also whenever `drain` is called.
    """

    def __init__(self, fd: int, on_chunk: OnChunk, *, chunk_bytes: int = CHUNK_BYTES) -> None:
        os.set_blocking(fd, False)
        self.on_end: Callable[[], None] = lambda: None
        self.fd = fd
        self.is_open = True
        self._on_chunk = on_chunk
        self._chunk_bytes = chunk_bytes
        self._watcher: Any = None
        self._timer: Any = None  # while it rests

    @property
    def is_resting(self) -> bool:
        return self._timer is not None

    def watch(self) -> None:
        if self.is_open and self._watcher is None:
            self._watcher = gevent.get_hub().loop.io(self.fd, READ_EVENT)
            if not self.is_resting:
                self._watcher.start(self._read, 1)

    def drain(self) -> bool:
        """Take what is in the pipe now, up to a limit: it may be filled as fast. Return whether there may be more."""
        return self.is_open and not self.is_resting and self._read(MAX_DRAIN_READS)

    def wake(self) -> None:
        """Read again, unless the function that gets the chunks asks for a longer rest."""
        if not self.is_open or not self.is_resting:
            return
        rest_secs = self._on_chunk(b"")
        if not self.is_open:
            return
        if rest_secs:
            self._rest(rest_secs)
            return
        self._stop_timer()
        if self._watcher is not None:
            self._watcher.start(self._read, 1)

    def close(self) -> None:
        if self.is_open:
            self.is_open = False
            if self._watcher is not None:
                self._watcher.close()
                self._watcher = None  # it knows us, and would be garbage for the collector
            self._stop_timer()
            os.close(self.fd)

    def _read(self, times: int) -> bool:
        """Read at most this many times; return whether there may be more."""
        for _ in range(times):
            try:
                chunk = os.read(self.fd, self._chunk_bytes)
            except BlockingIOError:
                return False
            if not chunk:
                self.close()
                self.on_end()
                return False
            if len(chunk) == CHUNK_BYTES == self._chunk_bytes:
                self._grow()
            rest_secs = self._on_chunk(chunk)
            if rest_secs:
                self._rest(rest_secs)
                return False
        return True

    def _rest(self, secs: float) -> None:
        self._stop_timer()
        if self._watcher is not None:
            self._watcher.stop()
        self._timer = gevent.get_hub().loop.timer(secs)
        self._timer.start(self.wake)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.close()
            self._timer = None

    def _grow(self) -> None:
        """Make the pipe larger: a script that fills it is about to write a lot."""
        self._chunk_bytes = LARGE_PIPE_BYTES
        try:
            fcntl.fcntl(self.fd, fcntl.F_SETPIPE_SZ, LARGE_PIPE_BYTES)
        except (OSError, AttributeError):
            return  # not Linux, or over the user's quota: the pipe stays as it is


class OutputPlace:
    """The place of one run, if it needs one. It is given back when the output of the script has left memory."""

    def __init__(self, places: Shares, owner: Hashable = None) -> None:
        self._places = places
        self._owner = owner
        self.is_held = False

    def take(self) -> bool:
        """Take a place if there is one; return whether it is held."""
        if not self.is_held and self._places.has_room(self._owner):
            self._places.take(self._owner)
            self.is_held = True
        return self.is_held

    def release(self) -> None:
        if self.is_held:
            self.is_held = False
            self._places.give_back(self._owner)

    __del__ = release


class Capture:
    """What a stream has printed, up to a limit; beyond it memory stays constant and `on_overflow` is called once. A
    stream that prints a lot needs a place, and is not read without one."""

    def __init__(
        self, *, limit_bytes: int, place: OutputPlace | None = None, on_overflow: Callable[[], None] = lambda: None
    ) -> None:
        self._pieces = Pieces()
        self.size = 0
        self.was_exceeded = False
        self._limit_bytes = limit_bytes
        self.place = place
        self._on_overflow = on_overflow

    def take(self, chunk: bytes) -> float | None:
        """Keep a chunk; return for how many seconds no more should be read."""
        self.size += len(chunk)
        if self.size <= self._limit_bytes:
            self._pieces.add(chunk)
        elif not self.was_exceeded:
            self.was_exceeded = True
            self._on_overflow()
        if self.size > SMALL_BYTES and self.place is not None and not self.place.take():
            return RETRY_SECS
        return None

    def discard(self) -> None:
        """Keep nothing, from now on: no answer needs it."""
        self._pieces.take()
        self._limit_bytes = -1
        self.was_exceeded = True
        self.place = None

    def end(self) -> bytes:
        """Return the end of what was printed so far."""
        return self._pieces.end()

    def chunks(self) -> list[bytes]:
        """Hand over what was printed; nothing is left here."""
        return self._pieces.take()


class Tail(Capture):
    """The end of what a resident process has printed. Its pipes are never full, however much that is."""

    def __init__(self) -> None:
        super().__init__(limit_bytes=0)
        self._kept = bytearray()
        self.readers: Sequence[PipeReader] = ()

    def take(self, chunk: bytes) -> None:
        self.size += len(chunk)
        self._kept += chunk
        if len(self._kept) > 2 * KEPT_BYTES:
            del self._kept[:-KEPT_BYTES]

    def since(self, size: int) -> bytes:
        """Return what was printed since the size was this, as far as it is kept."""
        for reader in self.readers:
            reader.drain()
        new_bytes = min(self.size - size, KEPT_BYTES)
        return bytes(self._kept[-new_bytes:]) if new_bytes else b""


class Pieces:
    """Collects bytes that arrive in chunks of any size: large chunks are kept as they are, small ones are joined.

    The sender decides how large the chunks are, and each of them costs memory and time: three megabytes in chunks of
    two bytes would be a million and a half objects.
    """

    def __init__(self) -> None:
        self._whole: list[bytes] = []
        self._small = bytearray()

    def add(self, chunk: bytes) -> None:
        if len(chunk) < SMALL_CHUNK_BYTES:
            self._small += chunk
            if len(self._small) >= PIECE_BYTES:
                self._close_small()
        else:
            self._close_small()
            self._whole.append(chunk)

    def end(self) -> bytes:
        """Return the last bytes, but not more than a small piece has."""
        return b"".join(self._whole[-1:])[-SMALL_CHUNK_BYTES:] + bytes(self._small[-SMALL_CHUNK_BYTES:])

    def take(self) -> list[bytes]:
        """Return all pieces in order, and forget them."""
        self._close_small()
        taken, self._whole = self._whole, []
        return taken

    def _close_small(self) -> None:
        if self._small:
            self._whole.append(bytes(self._small))
            self._small.clear()
