"""The life of one answer over HTTP, as a table of states, and the frames that wait for the connection that sends them.

An outlet is the sink of one stream. The stream of a POST ends with its answer, which goes out as JSON if it is the
only frame, and as events otherwise. The stream of a session, which a GET carries, ends with the session. When a
connection is lost, another one may take its place: events that have a number are kept for a while, and are sent again
from the number that the client names.

Rules: `TRANSITIONS` is all that can happen; in each state more may come, or the stream is over. A frame goes to one
connection at a time, and to a second one only if the client asks for it by its number. Nothing of a cancelled call is
sent.

All streams of a server share a room (`Outlets`). An answer for which there is no room waits, in the greenlet of its
call. Each caller has a share of the room, so a client that does not read holds up little but its own answers. A client
that reads, or has not had time to read, never loses anything for lack of room: only a stream that has not been read for
a while makes way, and only for an answer that waits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterator
from functools import partial
from time import monotonic
from typing import NamedTuple, Protocol
from weakref import WeakValueDictionary

import gevent
from gevent.event import Event
from gevent.lock import Semaphore

from mcpgreen import journal
from mcpgreen.links.sink import Answerable
from mcpgreen.protocol.messages import Line, size_of
from mcpgreen.running.shares import Shares
from mcpgreen.transports.http.streams import events

MAX_KEPT_FRAMES = 256
MAX_KEPT_BYTES = 1 << 18
SMALL_BYTES = 1 << 16  # of a frame that may wait in the room beyond the limit, which is as large again
RETRY_SECS = 0.02
LOOK_SECS = 0.25  # between two looks for streams that are not read

OnFrame = Callable[[Line, Answerable | None], None]


class State:
    WAITING = "waiting"  # the connection of a POST waits for the answer, or for the first event
    STREAMING = "streaming"  # a connection sends events as they come
    DETACHED = "detached"  # no connection sends events, and the client may come back for them
    GONE = "gone"  # the client cannot come back: nothing is kept any more


class Change:
    STREAM = "stream"  # a connection begins to send events
    LOSE = "lose"  # the connection has sent the answer, or is gone
    GIVE_UP = "give up"  # the same, and events have no numbers that the client could name


TRANSITIONS = {
    (State.WAITING, Change.STREAM): State.STREAMING,
    (State.WAITING, Change.LOSE): State.GONE,  # no event was sent from which the client could go on
    (State.WAITING, Change.GIVE_UP): State.GONE,
    (State.STREAMING, Change.STREAM): State.STREAMING,  # another connection takes the place of the first
    (State.STREAMING, Change.LOSE): State.DETACHED,  # also when all is sent: the client may not have received it
    (State.STREAMING, Change.GIVE_UP): State.GONE,
    (State.DETACHED, Change.STREAM): State.STREAMING,
    # The frames of a stream that no connection carries may be dropped, and a connection may end after its client.
    (State.DETACHED, Change.LOSE): State.DETACHED,
    (State.GONE, Change.LOSE): State.GONE,
    (State.GONE, Change.GIVE_UP): State.GONE,
}


class Carrier(Protocol):
    """A connection that sends frames. `sent_at` is when it last sent something."""

    sent_at: float

    def end(self) -> None: ...


class Frame(NamedTuple):
    number: int
    line: Line
    size_bytes: int
    call: Answerable | None

    @property
    def is_void(self) -> bool:
        return self.call is not None and self.call.is_cancelled


class Outlet:
    """A sink over HTTP. `key` names it in the ids of its events; without one, the client cannot come back for them.
    `takes_events` is False for a client that accepts only JSON. `is_over`: nothing more will come."""

    def __init__(
        self,
        outlets: Outlets,
        *,
        key: int | None = None,
        carrier: Carrier | None = None,
        takes_events: bool = True,
        owner: Hashable = None,
    ) -> None:
        self._outlets = outlets
        self._key = key
        self._is_for_session = key == events.STANDING_KEY
        self._carrier = carrier
        self._takes_events = takes_events
        self.owner = owner
        self.is_over = False
        self.state = State.DETACHED if self._is_for_session else State.WAITING
        self._frames: deque[Frame] = deque()
        self._kept: deque[Frame] = deque()  # sent, and not yet forgotten
        self._last_number = 0
        self._changed = Event()
        self._room = Event()
        self.unread_bytes = 0
        self._unread_since = 0.0
        self.kept_bytes = 0
        self.on_over: Callable[[], None] | None = None

    def on(self, change: str) -> None:
        """Go to the next state. Raises KeyError for a change that cannot happen in this state."""
        self.state = TRANSITIONS[self.state, change]
        if self.state == State.GONE:
            self.forget()

    @property
    def is_lost(self) -> bool:
        """Whether no connection waits for what is here, or sends it."""
        return self.state in (State.DETACHED, State.GONE)

    @property
    def is_silent(self) -> bool:
        """Whether there is nothing to send."""
        return not self._frames

    @property
    def answer(self) -> Line | None:
        """The answer, if it is the only frame. Asked before anything is sent."""
        return self._frames[0].line if self.is_over and len(self._frames) == 1 else None

    def can_resume_after(self, number: int) -> bool:
        """Tell whether a client that has seen this event can go on: more is kept, or may still come."""
        if self._key is None or self.state not in (State.STREAMING, State.DETACHED):
            return False
        return not self.is_over or bool(self._frames) or any(frame.number > number for frame in self._kept)

    # The methods of a sink.

    @property
    def carries_requests(self) -> bool:
        is_unreachable = self.is_lost if self._is_for_session else self._is_gone()
        return self._takes_events and not self.is_over and not is_unreachable

    @property
    def has_room(self) -> bool:
        """A client that is gone cannot make room, so nothing waits for it. While an answer to the same caller waits,
        there should not be more of them."""
        return (self.is_lost or not self._is_full) and not self._has_answers_waiting

    def wait_for_room(self) -> None:
        while not self.has_room:
            if self._has_answers_waiting:
                self._outlets.wait_for_waiting(self.owner)
            else:
                self._room.clear()
                self._room.wait()

    def has_room_for(self, size_bytes: int) -> bool:
        return self._is_gone() or self._outlets.has_room(self.owner, size_bytes)

    def wait_for_room_for(self, size_bytes: int) -> None:
        if not self._is_gone():
            self._outlets.wait_for_room(self.owner, size_bytes, is_needless=self._is_gone)

    def respond(self, line: Line, call: Answerable | None = None) -> None:
        if not self.is_over:
            self._put(line, call)
            if not self._is_for_session:
                self.end()

    def notify(self, line: Line, call: Answerable | None = None, *, is_droppable: bool = True) -> None:
        if self.is_over or not self._takes_events:
            return
        if is_droppable and (self._is_full or not self.has_room_for(size_of(line))):
            return
        if self._is_for_session and any(frame.line == line for frame in self._frames):
            return  # the client has not read the first one yet, and a second one would say the same
        self._put(line, call)

    def request(self, line: Line) -> None:
        if self.carries_requests:
            self._put(line, None)

    def expect(self) -> None:
        """Do nothing: the connection waits for the answer in any case."""

    def withdraw(self) -> None:
        """End the stream of a POST: its answer will not come."""
        if not self._is_for_session:
            self.end()

    # For the limit that all outlets share.

    @property
    def unread_since(self) -> float:
        """When something of it was read last, or when there was first something to read."""
        return self._unread_since if self._carrier is None else max(self._unread_since, self._carrier.sent_at)

    # For the connection that carries it, and for the session that it belongs to.

    def end(self) -> None:
        """Nothing more will come. Calling it again changes nothing."""
        if self.is_over:
            return
        self.is_over = True
        # The calls are over, and a client may come back much later: their arguments need not stay in memory.
        self._count(-sum(frame.size_bytes for frame in self._frames if frame.is_void))
        self._count_kept(-sum(frame.size_bytes for frame in self._kept if frame.is_void))
        self._frames, self._kept = (
            deque(frame._replace(call=None) for frame in frames if not frame.is_void)
            for frames in (self._frames, self._kept)
        )
        self._changed.set()
        on_over, self.on_over = self.on_over, None  # a kept stream must not keep what belongs to its request
        if on_over is not None:
            on_over()

    def wait(self, secs: float | None) -> None:
        """Wait for the first frame, the end, or the loss of the connection, or until the time is up. With None, the
        time is not limited: how long a call may take is not for the transport to say."""
        if not (self._frames or self.is_over or self.is_lost):
            self._changed.clear()
            self._changed.wait(secs)

    def take_answer(self) -> Line:
        """Hand over the answer, to be sent as JSON. It counts as unread until `lose`."""
        return self._frames.popleft().line

    def lose(self, carrier: Carrier | None = None) -> None:
        """The connection has sent the answer, or is gone. Ignored if this `carrier` no longer carries the stream."""
        if carrier is not None and carrier is not self._carrier:
            return
        self._carrier = None
        self.on(Change.GIVE_UP if self._key is None else Change.LOSE)
        self._changed.set()
        self._room.set()

    def break_off(self) -> None:
        """Drop all frames of a client that does not read, and end its connection."""
        carrier = self._carrier
        self._drop_frames()
        self.lose()
        if carrier is not None:
            carrier.end()

    def forget_kept(self) -> None:
        """Forget what was sent: a client that comes back gets only what is new."""
        self._kept.clear()
        self._count_kept(-self.kept_bytes)

    def forget(self) -> None:
        """Forget all frames: no connection will ever carry them."""
        self._drop_frames()
        self.forget_kept()

    def stream(
        self, carrier: Carrier, *, keep_alive_secs: float, is_primed: bool = False, after: int | None = None
    ) -> Iterator[bytes]:
        """Let this connection carry the stream from now on, instead of an earlier one; yield what it sends.
        `after`: first send again what has a higher number. `is_primed`: begin with an event that tells the client where
        it is, because some clients forget it when a connection brings them nothing."""
        self._carrier = carrier
        self._unread_since = monotonic()
        self.on(Change.STREAM)
        if after is not None:
            again = [frame for frame in self._kept if frame.number > after]
            self._frames.extendleft(reversed(again))
            for frame in again:
                self._kept.remove(frame)
            size_bytes = sum(frame.size_bytes for frame in again)
            self._count_kept(-size_bytes)
            self._count(size_bytes)
        self._changed.set()
        return self._sent_by(carrier, keep_alive_secs, is_primed=is_primed)

    def _sent_by(self, carrier: Carrier, keep_alive_secs: float, *, is_primed: bool) -> Iterator[bytes]:
        try:
            if is_primed and self._key is not None:
                seen = self._frames[0].number - 1 if self._frames else self._last_number
                yield events.first_event(f"{self._key}-{seen}")
            elif not self._frames:
                yield events.OPENED
            while self._carrier is carrier:
                part, size_bytes = self._next_events()
                if size_bytes:
                    try:
                        yield part
                    finally:  # only now is it read, as far as we can know, or never will be
                        self._count(-size_bytes)
                elif self.is_over:
                    return
                else:
                    self._changed.clear()
                    if not self._changed.wait(keep_alive_secs):
                        yield events.KEEP_ALIVE
        finally:
            self.lose(carrier)

    def _next_events(self) -> tuple[bytes, int]:
        """Return the events that go out together, and how many unread bytes they are."""
        parts: list[bytes] = []
        size_bytes = 0
        while self._frames and size_bytes <= MAX_KEPT_BYTES:
            frame = self._frames.popleft()
            if frame.is_void:
                self._count(-frame.size_bytes)
                continue
            parts.append(events.event(frame.line, None if self._key is None else f"{self._key}-{frame.number}"))
            size_bytes += frame.size_bytes
            if self._key is not None:
                self._keep(frame)
        return b"".join(parts), size_bytes

    def _put(self, line: Line, call: Answerable | None) -> None:
        if self._outlets.on_frame is not None:
            self._outlets.on_frame(line, call)
        if self._is_gone():
            return
        self._last_number += 1
        size_bytes = size_of(line)
        self._frames.append(Frame(self._last_number, line, size_bytes, call))
        self._changed.set()
        self._count(size_bytes)
        if self._is_for_session and self._carrier is None:
            # What a lost connection had on its way counts as well, until it is known to have failed.
            while self._frames and (len(self._frames) > MAX_KEPT_FRAMES or self.unread_bytes > MAX_KEPT_BYTES):
                self._count(-self._frames.popleft().size_bytes)

    def _keep(self, frame: Frame) -> None:
        self._kept.append(frame)
        self._count_kept(frame.size_bytes)
        while self._kept and (len(self._kept) > MAX_KEPT_FRAMES or self.kept_bytes > MAX_KEPT_BYTES):
            self._count_kept(-self._kept.popleft().size_bytes)

    def _drop_frames(self) -> None:
        self._frames.clear()
        self._count(-self.unread_bytes)

    def _count_kept(self, change_bytes: int) -> None:
        self.kept_bytes += change_bytes
        if change_bytes:
            self._outlets.count_kept(self, change_bytes)

    def _count(self, change_bytes: int) -> None:
        change_bytes = max(change_bytes, -self.unread_bytes)  # what was on its way may have been forgotten meanwhile
        if not self.unread_bytes:
            self._unread_since = monotonic()
        self.unread_bytes += change_bytes
        if change_bytes:
            self._outlets.count_unread(self, change_bytes)
        if not self._is_full:
            self._room.set()

    @property
    def _is_full(self) -> bool:
        return self.unread_bytes > self._outlets.max_backlog_bytes

    @property
    def _has_answers_waiting(self) -> bool:
        return not self._is_gone() and self._outlets.has_waiting(self.owner)

    def _is_gone(self) -> bool:
        return self.state == State.GONE


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
        self._with_kept: dict[Outlet, None] = {}  # the least recently used first
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
        self._with_kept.pop(outlet, None)
        if outlet.kept_bytes:
            self._with_kept[outlet] = None
        while self._kept.held > self._kept.size and len(self._with_kept) > 1:
            greediest = self._kept.greediest
            next(each for each in self._with_kept if each.owner == greediest).forget_kept()

    def _make_room(self, owner: Hashable) -> None:
        """Break off the stream that was unread for too long; one of this owner, if only its share is used up."""
        now = monotonic()
        if now < self._looked_at + LOOK_SECS:
            return
        self._looked_at = now
        is_full = self._unread.held > self._unread.size
        candidates = (each for each in self._with_unread if is_full or each.owner == owner)
        slowest = min(candidates, key=lambda each: each.unread_since, default=None)
        if slowest is not None and slowest.unread_since + self._patience_secs <= now:
            journal.warning("a client has left %d bytes unread; closing its connection", slowest.unread_bytes)
            slowest.break_off()
