"""How many bytes all streams of the server may hold together: frames that are unread, and events that were sent.

An answer for which there is no room waits, in the greenlet of its call. Each caller has a share of the room, so a
client that does not read holds up little but its own answers.

Rule: a client that reads, or has not had time to, loses nothing because there is too much. Only a stream of which
nothing has been read for a while makes way, and only for an answer that waits.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from time import monotonic
from typing import Protocol
from weakref import WeakValueDictionary

import gevent
from gevent.lock import Semaphore

from mcpgreen import journal
from mcpgreen.running.shares import Shares

SMALL_BYTES = 1 << 16  # of a frame that may wait in the room beyond the limit, which is as large again
RETRY_SECS = 0.02
LOOK_SECS = 0.25  # between two looks for streams that are not read


class Unread(Protocol):
    """A stream with frames that its client has not read."""

    owner: Hashable
    unread_bytes: int

    @property
    def is_over(self) -> bool: ...

    @property
    def is_lost(self) -> bool: ...

    @property
    def unread_since(self) -> float:
        """When something of it was read last, or when there was first something to read."""

    def break_off(self) -> None: ...


class Kept(Protocol):
    """A stream that keeps events which were sent, for a client that comes back."""

    owner: Hashable
    kept_bytes: int

    def forget_kept(self) -> None: ...


class Backlog:
    """Limits what is unread, to `limit_bytes` and one answer. While an answer waits, streams that have not been read
    for `patience_secs` lose their connection."""

    def __init__(self, *, limit_bytes: int, patience_secs: float) -> None:
        self._bytes = Shares(limit_bytes)
        self._patience_secs = patience_secs
        self._holders: set[Unread] = set()
        self._turns: WeakValueDictionary[Hashable, Semaphore] = WeakValueDictionary()  # of owners that wait for room
        self._looked_at = 0.0

    def __repr__(self) -> str:
        return f"<Backlog of {self._bytes.held} bytes, {len(self._holders)} readers>"

    @property
    def has_answers(self) -> bool:
        """Whether connections are still sending answers."""
        return any(holder.is_over and not holder.is_lost for holder in self._holders)

    def has_room(self, owner: Hashable, size_bytes: int) -> bool:
        """Whether a frame of this size may come now. It may take more room than is left: else a large answer would
        wait for all other clients, as slow as they may be."""
        return self._bytes.has_room(owner, 0, spare=self._bytes.size if size_bytes <= SMALL_BYTES else 0)

    def wait_for_room(self, owner: Hashable, size_bytes: int, *, is_needless: Callable[[], bool]) -> None:
        """Wait until there is room, or none is needed any more. The answers of one owner wait in their order."""
        if self.has_room(owner, size_bytes):
            return
        turn = self._turns.get(owner)
        if turn is None:
            turn = self._turns[owner] = Semaphore(1)
        with turn:
            while not (is_needless() or self.has_room(owner, size_bytes)):
                self._make_room(owner)
                gevent.sleep(RETRY_SECS)

    def has_waiting(self, owner: Hashable) -> bool:
        """Whether an answer of this owner waits for room."""
        turn = self._turns.get(owner)
        return turn is not None and turn.locked()

    def wait_for_waiting(self, owner: Hashable) -> None:
        """Wait until no answer of this owner waits for room."""
        turn = self._turns.get(owner)
        if turn is not None:
            turn.wait()

    def add(self, holder: Unread, size_bytes: int) -> None:
        self._bytes.take(holder.owner, size_bytes)
        self._holders.add(holder)

    def remove(self, holder: Unread, size_bytes: int) -> None:
        self._bytes.give_back(holder.owner, size_bytes)
        if not holder.unread_bytes:
            self._holders.discard(holder)

    def _make_room(self, owner: Hashable) -> None:
        """Break off the stream that has been unread for longest, if that is too long: one of this owner, if it is only
        the owner's share that is used up."""
        now = monotonic()
        if now < self._looked_at + LOOK_SECS:
            return
        self._looked_at = now
        is_full = self._bytes.held > self._bytes.size
        holders = (each for each in self._holders if is_full or each.owner == owner)
        slowest = min(holders, key=lambda each: each.unread_since, default=None)
        if slowest is not None and slowest.unread_since + self._patience_secs <= now:
            journal.warning("a client has left %d bytes unread; its connection is closed", slowest.unread_bytes)
            slowest.break_off()


class History:
    """Limits what is kept. Beyond the limit, the stream that was sent something longest ago forgets what it kept, of
    the caller for which most is kept."""

    def __init__(self, *, limit_bytes: int) -> None:
        self._bytes = Shares(limit_bytes)
        self._holders: OrderedDict[Kept, None] = OrderedDict()

    def change(self, holder: Kept, change_bytes: int) -> None:
        """The stream keeps so many bytes more, or fewer."""
        self._bytes.take(holder.owner, change_bytes)
        if not holder.kept_bytes:
            self._holders.pop(holder, None)
            return
        self._holders[holder] = None
        if change_bytes > 0:
            self._holders.move_to_end(holder)
        while self._bytes.held > self._bytes.size and len(self._holders) > 1:
            greediest = self._bytes.greediest
            next(each for each in self._holders if each.owner == greediest).forget_kept()
