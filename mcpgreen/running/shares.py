"""Fair shares of what all callers use: slots, watches, connections, bytes in memory, and the hub's time.

A caller may hold three times as much as is left for others: three quarters of a pool if no other caller uses it, and
less the more others hold. So one caller, whatever it asks for, leaves something for the next. A caller that holds
nothing yet gets the first thing it asks for, if there is any left.

An `owner` tells callers apart. None is the client of a server that has only one, as on stdio: it may hold everything.

The hub serves all greenlets in turn, so long work is split into short turns: to read, decode or encode ten megabytes
takes up to a second, and so does a look at thousands of things. Only code that may wait can be split: not code that
runs in the hub, and nothing between a check and its effect.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import gevent
from gevent.hub import Waiter

TIMES_WHAT_IS_LEFT = 3
NO_OWNER = object()  # None is an owner
TURN_SECS = 0.005
# Not 0: fifty such sleeps may follow each other before the hub looks whether a client has written to us.
A_MOMENT_SECS = 1e-6
STRETCH_BYTES = 131_072  # at worst, when each byte has to be replaced and escaped, it takes 10 ms


class Shares:
    """How much of a pool each owner holds. The caller of `take` has asked before whether there is room."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.held = 0
        self._held_by: dict[Hashable, int] = {}

    def held_by(self, owner: Hashable) -> int:
        return self._held_by.get(owner, 0)

    def has_room(self, owner: Hashable, amount: int = 1, *, spare: int = 0) -> bool:
        """Tell whether the owner may hold this much more. `spare` is what it can have elsewhere."""
        left = self.size + spare - self.held - amount
        if left < 0:
            return False
        held = self.held_by(owner)
        return owner is None or not held or held + amount <= spare + TIMES_WHAT_IS_LEFT * left

    def take(self, owner: Hashable, amount: int = 1) -> None:
        self.held += amount
        held = self._held_by[owner] = self._held_by.get(owner, 0) + amount
        if not held:
            del self._held_by[owner]

    def give_back(self, owner: Hashable, amount: int = 1) -> None:
        self.take(owner, -amount)

    @property
    def greediest(self) -> Hashable:
        """The owner that holds most."""
        return max(self._held_by, key=self.held_by)


class Places:
    """A pool of places. Waiting owners take turns, and the calls of one owner are served in order. The size of the pool
    may change while places are taken. A Semaphore would be too slow: when thousands of waiting greenlets are killed
    together, it searches its whole queue for each of them."""

    def __init__(self, limit: int) -> None:
        self._shares = Shares(limit)
        self._waiting: OrderedDict[Hashable, OrderedDict[Any, None]] = OrderedDict()  # the next owner first

    @property
    def free(self) -> int:
        return max(0, self._shares.size - self._shares.held)

    @property
    def taken(self) -> int:
        return self._shares.held

    def acquire(self, owner: Hashable = None) -> None:
        """Take a place for this owner. May wait."""
        if owner not in self._waiting and self._shares.has_room(owner):
            self._shares.take(owner)
            return
        waiter = Waiter()
        line = self._waiting.setdefault(owner, OrderedDict())
        line[waiter] = None
        try:
            waiter.get()
        except BaseException:
            if waiter in line:
                del line[waiter]
                if not line:
                    del self._waiting[owner]
            else:
                self.release(owner)  # it was our turn already
            raise

    def release(self, owner: Hashable = None) -> None:
        self._shares.give_back(owner)
        self._hand_on()

    def __enter__(self) -> None:
        """Take a place for the only owner, until the end of `with`."""
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()

    @contextmanager
    def held_by(self, owner: Hashable) -> Iterator[None]:
        self.acquire(owner)
        try:
            yield
        finally:
            self.release(owner)

    def resize(self, limit: int) -> None:
        self._shares.size = limit
        self._hand_on()

    def _hand_on(self) -> None:
        while self.free and (owner := next(filter(self._shares.has_room, self._waiting), NO_OWNER)) is not NO_OWNER:
            line = self._waiting.pop(owner)
            waiter, _ = line.popitem(last=False)
            if line:
                self._waiting[owner] = line  # at the end
            self._shares.take(owner)
            gevent.get_hub().loop.run_callback(waiter.switch, None)


class WaitingLine(dict[gevent.Greenlet, None]):
    """Greenlets that wait for the same places. Only the first one is started: the stack of a greenlet that waits takes
    eight KiB."""

    def append(self, greenlet: gevent.Greenlet) -> None:
        greenlet.rawlink(self.remove)  # if it is killed
        self[greenlet] = None
        if len(self) == 1:
            greenlet.start()

    def remove(self, greenlet: gevent.Greenlet) -> None:
        """It has its place, or has ended."""
        is_first = next(iter(self), None) is greenlet
        self.pop(greenlet, None)
        if is_first and self:
            next(iter(self)).start()


def let_others() -> None:
    """Go on when all greenlets that are ready have had their turn."""
    gevent.sleep(A_MOMENT_SECS)


def in_turns(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the same bytes, in stretches with a turn for others between them."""
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
    """Splits the work of one greenlet into turns: call `pause` wherever the work may be interrupted."""

    def __init__(self) -> None:
        self._since = time.monotonic()

    def pause(self) -> None:
        """Let others have their turn, if this one has been long."""
        if time.monotonic() - self._since > TURN_SECS:
            let_others()
            self._since = time.monotonic()


class OneAtATime(Places, Turns):
    """Lets many greenlets work one at a time, each inside of `with`, with a turn for others now and then. If each of
    them worked in turns of its own, everything else would have to wait for all of those turns."""

    def __init__(self) -> None:
        Places.__init__(self, 1)
        Turns.__init__(self)

    def __exit__(self, *_: object) -> None:
        try:
            self.pause()
        finally:
            self.release()


class Starts(Places):
    """Lets processes be started one at a time, each inside of `with`. A start holds the hub for a millisecond, and for
    fifty when all processors are busy. After some milliseconds of starting, others have a turn; a start that took long
    is followed by an equally long pause."""

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


# Held while a large output is parsed or encoded: sixteen greenlets that do so in turns would make everything else wait
# for sixteen turns. There is one for the process, as there is one hub. Never taken in the reader, which must not wait.
LANE = Places(1)
