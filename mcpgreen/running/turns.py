"""Long work in short turns, so that the hub serves other greenlets meanwhile.

To read, decode or encode ten megabytes takes up to a second, and so does a look at thousands of things. Only for
greenlets that may wait: not in the hub, and not between a check and its effect.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

import gevent

from mcpgreen.running.shares import Places

TURN_SECS = 0.005
# Not 0: fifty such sleeps may follow each other before the hub looks whether a client has written to us.
A_MOMENT_SECS = 1e-6
STRETCH_BYTES = 131_072  # at worst, when each byte has to be replaced and escaped, it takes 10 ms


def let_others() -> None:
    """Go on when all greenlets that are ready have had their turn."""
    gevent.sleep(A_MOMENT_SECS)


def in_turns(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes, in stretches with a turn for others between them."""
    done_bytes = 0
    for chunk in chunks:
        for start in range(0, len(chunk), STRETCH_BYTES):
            if done_bytes >= STRETCH_BYTES:
                let_others()
                done_bytes = 0
            piece = chunk if len(chunk) <= STRETCH_BYTES else chunk[start : start + STRETCH_BYTES]
            done_bytes += len(piece)
            yield piece


class Turns:
    """For the work of one greenlet: call `pause` wherever it may be interrupted."""

    def __init__(self) -> None:
        self._since = time.monotonic()

    def pause(self) -> None:
        """Let others have their turn, if this one has been long."""
        if time.monotonic() - self._since > TURN_SECS:
            let_others()
            self._since = time.monotonic()


class OneAtATime(Places, Turns):
    """For the work of many greenlets, `with` this: many short turns would make the others wait for all of them."""

    def __init__(self) -> None:
        Places.__init__(self, 1)
        Turns.__init__(self)

    def __exit__(self, *_: object) -> None:
        try:
            self.pause()
        finally:
            self.release()


class Starts(Places):
    """For what holds the hub, and how long is not ours to say, one at a time, `with` this: to start a process takes a
    millisecond, and fifty when all processors are busy. After some milliseconds others have their turn first, and one
    that took long is followed by as long a rest."""

    def __init__(self) -> None:
        super().__init__(1)
        self._began_at = 0.0
        self._held_secs = 0.0  # since others had their turn

    def __enter__(self) -> None:
        self.acquire()
        self._began_at = time.monotonic()

    def __exit__(self, *_: object) -> None:
        held_secs = time.monotonic() - self._began_at
        self._held_secs += held_secs
        if self._held_secs < TURN_SECS:
            self.release()
        else:
            self._held_secs = 0.0
            gevent.spawn_later(held_secs if held_secs >= TURN_SECS else A_MOMENT_SECS, self.release)


# To parse and encode large outputs, `with` this: sixteen greenlets that give each other turns would make all others
# wait for sixteen turns. One for the process, as the hub is. Never in the reader, which must not wait.
LANE = Places(1)
