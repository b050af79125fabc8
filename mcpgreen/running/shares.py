"""Fair shares of what many callers use together: slots, watches, connections, bytes in memory.

A caller may hold three times as much as is left for others: three quarters of a pool if no other caller uses it, and
less the more others hold. So one caller, whatever it asks for, leaves something for the next. The first thing that a
caller asks for it gets if there is any left.

An `owner` tells callers apart. None is the client of a server that has only one, as on stdio: it may hold everything.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import Any

import gevent
from gevent.hub import Waiter

TIMES_WHAT_IS_LEFT = 3
NO_OWNER = object()  # None is an owner


class Shares:
    """How much of a pool each owner holds. The caller of `take` has asked before whether there is room."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.held = 0
        self._held_by: dict[Hashable, int] = {}

    def held_by(self, owner: Hashable) -> int:
        return self._held_by.get(owner, 0)

    def has_room(self, owner: Hashable, amount: int = 1, *, spare: int = 0) -> bool:
        """Tell whether the owner may hold so much more. `spare` is what it can have elsewhere."""
        left = self.size + spare - self.held - amount
        if left < 0:
            return False
        held = self.held_by(owner)
        return owner is None or not held or held + amount <= spare + TIMES_WHAT_IS_LEFT * left

    def take(self, owner: Hashable, amount: int = 1) -> None:
        self.held += amount
        self._held_by[owner] = self.held_by(owner) + amount
        if not self._held_by[owner]:
            del self._held_by[owner]

    def give_back(self, owner: Hashable, amount: int = 1) -> None:
        self.take(owner, -amount)

    @property
    def greediest(self) -> Hashable:
        """The owner that holds most."""
        return max(self._held_by, key=self.held_by)


class Places:
    """A pool of places. Owners that wait take turns, each of their calls in its order. How many there are may change
    while some are taken. Thousands may wait here, and be killed together: in a Semaphore, each that leaves would be
    looked for among all the others."""

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
