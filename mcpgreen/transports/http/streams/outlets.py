"""All streams of one server, and how many bytes they may hold together: frames that are unread, and events that were
sent and are kept for a client that comes back.

An answer for which there is no room waits, in the greenlet of its call. Each caller has a share of the room, so a
client that does not read holds up little but its own answers.

Rule: a client that reads, or has not had time to read, never loses anything for lack of room. Only a stream that has
not been read for a while makes way, and only for an answer that waits.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import partial
from time import monotonic
from weakref import WeakValueDictionary

import gevent
from gevent.lock import Semaphore

from mcpgreen import journal
from mcpgreen.links.sink import Answerable
from mcpgreen.protocol.messages import Line
from mcpgreen.running.shares import Shares
from mcpgreen.transports.http.streams.outlet import Outlet

SMALL_BYTES = 1 << 16  # of a frame that may wait in the room beyond the limit, which is as large again
RETRY_SECS = 0.02
LOOK_SECS = 0.25  # between two looks for streams that are not read

OnFrame = Callable[[Line, Answerable | None], None]


class Outlets:
    """The outlets of one server. They hold `max_backlog_bytes` of unread frames and one answer, and as many bytes of
    kept events. While an answer waits, streams that have not been read for `patience_secs` lose their connection.
    `on_frame` is called for every frame."""

    def __init__(self, *, max_backlog_bytes: int, patience_secs: float = 15, on_frame: OnFrame | None = None) -> None:
        self.max_backlog_bytes = max_backlog_bytes
        self.on_frame = on_frame
        self.new = partial(Outlet, self)
        self._patience_secs = patience_secs
        self._unread = Shares(max_backlog_bytes)
        self._kept = Shares(max_backlog_bytes)
        self._with_unread: set[Outlet] = set()
        self._with_kept: OrderedDict[Outlet, None] = OrderedDict()  # the least recently used first
        self._turns: WeakValueDictionary[Hashable, Semaphore] = WeakValueDictionary()  # of owners that wait for room
        self._looked_at = 0.0

    def __repr__(self) -> str:
        return f"<Outlets with {self._unread.held} bytes unread, of {len(self._with_unread)} streams>"

    @property
    def has_answers(self) -> bool:
        """Whether connections are still sending answers."""
        return any(outlet.is_over and not outlet.is_lost for outlet in self._with_unread)

    def has_room(self, owner: Hashable, size_bytes: int) -> bool:
        """Tell whether a frame of this size may come now. It may take more room than is left: else a large answer would
        wait for all other clients, as slow as they may be."""
        return self._unread.has_room(owner, 0, spare=self._unread.size if size_bytes <= SMALL_BYTES else 0)

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
        """Tell whether an answer of this owner waits for room."""
        turn = self._turns.get(owner)
        return turn is not None and turn.locked()

    def wait_for_waiting(self, owner: Hashable) -> None:
        """Wait until no answer of this owner waits for room."""
        turn = self._turns.get(owner)
        if turn is not None:
            turn.wait()

    def count_unread(self, outlet: Outlet, change_bytes: int) -> None:
        """Count unread bytes that the stream has gained or lost."""
        self._unread.take(outlet.owner, change_bytes)
        if outlet.unread_bytes:
            self._with_unread.add(outlet)
        else:
            self._with_unread.discard(outlet)

    def count_kept(self, outlet: Outlet, change_bytes: int) -> None:
        """Count bytes that the stream keeps, or no longer keeps. Beyond the limit, of the caller for which most is
        kept, the stream to which nothing was sent for the longest time forgets what it kept."""
        self._kept.take(outlet.owner, change_bytes)
        if not outlet.kept_bytes:
            self._with_kept.pop(outlet, None)
            return
        self._with_kept[outlet] = None
        if change_bytes > 0:
            self._with_kept.move_to_end(outlet)
        while self._kept.held > self._kept.size and len(self._with_kept) > 1:
            greediest = self._kept.greediest
            next(each for each in self._with_kept if each.owner == greediest).forget_kept()

    def _make_room(self, owner: Hashable) -> None:
        """Break off the stream that has been unread for longest, if that is too long: one of this owner, if it is only
        the owner's share that is used up."""
        now = monotonic()
        if now < self._looked_at + LOOK_SECS:
            return
        self._looked_at = now
        is_full = self._unread.held > self._unread.size
        candidates = (each for each in self._with_unread if is_full or each.owner == owner)
        slowest = min(candidates, key=lambda each: each.unread_since, default=None)
        if slowest is not None and slowest.unread_since + self._patience_secs <= now:
            journal.warning("a client has left %d bytes unread; its connection is closed", slowest.unread_bytes)
            slowest.break_off()
