"""Where the frames of one stream wait for the connection that carries them.

The stream of a POST has one answer and then is over; that of a session, which a GET carries, goes on. A connection may
be lost and another take its place: what has a number is kept for a while, and sent again from wherever the client says.

Rules: a frame goes to one connection at a time, and to a second one only if the client asks for it by a number. Nothing
of a cancelled call is handed out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from gevent.event import Event

from mcpgreen.links.sink import Answerable, Line
from mcpgreen.transports.http.streams import events
from mcpgreen.transports.http.streams.backlog import Backlog
from mcpgreen.transports.http.streams.history import History

OnFrame = Callable[[Line, Answerable | None], None]

MAX_KEPT_FRAMES = 256
MAX_KEPT_BYTES = 1 << 18  # what was sent may be asked for again


class Frame(NamedTuple):
    number: int
    line: Line
    size_bytes: int
    call: Answerable | None

    @property
    def is_void(self) -> bool:
        return self.call is not None and self.call.is_cancelled


class Outlet:
    """A sink. `key` names it in the ids of its events, for a client that may come back, and `history` bounds what is
    kept for it; None: there are no ids. `takes_events`: whether the client takes anything but an answer."""

    __slots__ = (
        "__weakref__",
        "_backlog",
        "_bell",
        "_carrier",
        "_frames",
        "_history",
        "_is_for_session",
        "_kept",
        "_key",
        "_last_number",
        "_max_bytes",
        "_on_frame",
        "_room",
        "has_begun",
        "is_lost",
        "is_over",
        "kept_bytes",
        "on_over",
        "takes_events",
        "unread_bytes",
    )

    def __init__(
        self,
        backlog: Backlog,
        *,
        max_bytes: int,
        key: int | None = None,
        history: History | None = None,
        takes_events: bool = True,
        is_for_session: bool = False,
        on_frame: OnFrame | None = None,
    ) -> None:
        self._backlog = backlog
        self._on_frame = on_frame
        self._history = history
        self._max_bytes = max_bytes
        self._key = key
        self._is_for_session = is_for_session
        self._frames: deque[Frame] = deque()
        self._kept: deque[Frame] = deque()
        self._last_number = 0
        self._bell = Event()
        self._room: Event | None = None
        self._carrier: Any = None
        self.unread_bytes = 0
        self.kept_bytes = 0
        self.takes_events = takes_events
        self.has_begun = False  # as a stream of events
        self.is_lost = False  # nobody carries it, or will before the client comes back
        self.is_over = False  # nothing more will come
        self.on_over: Callable[[], None] = lambda: None

    # As a sink.

    @property
    def carries_requests(self) -> bool:
        """One of a session carries them while a GET carries it."""
        is_carried = self._carrier is not None or not self._is_for_session
        return self.takes_events and is_carried and not self.is_over

    @property
    def has_room(self) -> bool:
        """Nobody is kept waiting by a client that is gone: it could not make room."""
        return self.is_lost or not self._is_full

    def wait_for_room(self) -> None:
        if not self.has_room:
            if self._room is None:
                self._room = Event()
            self._room.clear()
            self._room.wait()

    def respond(self, line: Line, call: Answerable | None = None) -> None:
        if not self.is_over:
            self._put(line, call)
            if not self._is_for_session:
                self.end()

    def notify(self, line: Line, call: Answerable | None = None, *, is_droppable: bool = True) -> None:
        if self.is_over or not self.takes_events or (is_droppable and self._is_full):
            return
        if self._is_for_session and any(frame.line == line for frame in self._frames):
            return  # nobody has read the first yet; that something has changed is as true as before
        self._put(line, call)

    def request(self, line: Line) -> None:
        if self.carries_requests:
            self._put(line, None)

    def expect(self) -> None:
        """Whoever reads the request waits in any case."""

    def withdraw(self) -> None:
        """The answer will not come, and with it nothing."""
        if not self._is_for_session:
            self.end()

    # For whoever carries it.

    def end(self) -> None:
        if not self.is_over:
            self.is_over = True
            if not self.is_answer_alone or self._frames[0].is_void:  # else it is sent at once, most often
                self._let_go_of_calls()
            self._bell.set()
            self.on_over()

    @property
    def is_answer_alone(self) -> bool:
        """Whether all that there is to say is the answer."""
        return self.is_over and not self.has_begun and len(self._frames) == 1

    @property
    def is_silent(self) -> bool:
        """Whether nothing is there to be sent."""
        return not self._frames

    @property
    def is_left(self) -> bool:
        """Whether nobody is about to send anything of it, or will before the client comes back."""
        return self.is_over and (self.is_lost or not self._frames)

    def wait(self, secs: float) -> bool:
        """Until there is something to send, or nobody to send it to; at most so long."""
        if self._frames or self.is_over or self.is_lost:
            return True
        self._bell.clear()
        return bool(self._bell.wait(secs))

    def take_answer(self) -> Line:
        """The only frame."""
        return self._frames.popleft().line

    def release(self) -> None:
        """What was taken has been sent, or never will be."""
        self._count(-self.unread_bytes)

    def lose(self, carrier: Any = None) -> None:
        """The connection is gone. `carrier`: only if it is still the one that carries this."""
        if carrier is not None and carrier is not self._carrier:
            return
        self._carrier = None
        self.is_lost = True
        self._bell.set()
        self._make_room()

    def break_off(self) -> None:
        """For a client that does not read."""
        carrier = self._carrier
        self._frames.clear()
        self.release()
        self.lose()
        if carrier is not None:
            carrier.end()

    def forget_kept(self) -> None:
        """Nobody can ask for it again."""
        self._kept.clear()
        self._keep_count(-self.kept_bytes)

    def forget(self) -> None:
        """Nobody will ever carry it."""
        self._frames.clear()
        self.release()
        self.forget_kept()

    def carried_by(self, carrier: Any, *, after: int | None = None) -> None:
        """From now on by this connection; another one, if there is, ends. `after`: send again what has a higher
        number."""
        self._carrier = carrier
        self.is_lost = False
        if after is not None:
            again = [frame for frame in self._kept if frame.number > after]
            self._frames.extendleft(reversed(again))
            for frame in again:
                self._kept.remove(frame)
            size_bytes = sum(frame.size_bytes for frame in again)
            self._keep_count(-size_bytes)
            self._count(size_bytes)  # last: if it is too much, all of it is forgotten
        self._bell.set()

    def has_more_than(self, number: int) -> bool:
        """Whether something with a higher number can still be sent, or may come."""
        return not self.is_over or bool(self._frames) or any(frame.number > number for frame in self._kept)

    def stream(self, carrier: Any, *, keep_alive_secs: float, is_primed: bool = False) -> Iterator[bytes]:
        """What is to be sent, as events, for as long as this connection carries it. `is_primed`: at first the client is
        told where it is. Some forget it when a connection brings them nothing."""
        self.has_begun = True
        try:
            if is_primed and self._key is not None:
                told = self._frames[0].number - 1 if self._frames else self._last_number
                yield events.first_event(f"{self._key}-{told}")
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
                    self._bell.clear()
                    if not self._bell.wait(keep_alive_secs):
                        yield events.KEEP_ALIVE
        finally:
            if self._carrier is carrier:
                self.lose()
                if self._key is None:
                    self.forget()  # the others count until their client has come back for them

    def _next_events(self) -> tuple[bytes, int]:
        """What can go out together, and how much of what is unread that is."""
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
        if self._on_frame is not None:
            self._on_frame(line, call)
        self._last_number += 1
        size_bytes = len(line) if isinstance(line, bytes) else sum(map(len, line))
        self._frames.append(Frame(self._last_number, line, size_bytes, call))
        self._bell.set()
        self._count(size_bytes)
        if self._is_for_session and self._carrier is None:
            # What a lost connection had on its way counts as well, until it is known to have failed.
            while self._frames and (len(self._frames) > MAX_KEPT_FRAMES or self.unread_bytes > MAX_KEPT_BYTES):
                self._count(-self._frames.popleft().size_bytes)

    def _keep(self, frame: Frame) -> None:
        self._kept.append(frame._replace(call=None) if self.is_over else frame)
        self._keep_count(frame.size_bytes)
        while self._kept and (len(self._kept) > MAX_KEPT_FRAMES or self.kept_bytes > MAX_KEPT_BYTES):
            self._keep_count(-self._kept.popleft().size_bytes)

    def _keep_count(self, change_bytes: int) -> None:
        self.kept_bytes += change_bytes
        if self._history is not None and change_bytes:
            self._history.change(self, change_bytes)

    def _let_go_of_calls(self) -> None:
        """They are over, and a client may come back much later: what it asked for need not be in memory until then."""
        self._count(-sum(frame.size_bytes for frame in self._frames if frame.is_void))
        self._keep_count(-sum(frame.size_bytes for frame in self._kept if frame.is_void))
        self._frames, self._kept = (
            deque(frame._replace(call=None) for frame in frames if not frame.is_void)
            for frames in (self._frames, self._kept)
        )

    def _count(self, change_bytes: int) -> None:
        change_bytes = max(change_bytes, -self.unread_bytes)  # what was on its way may have been forgotten meanwhile
        self.unread_bytes += change_bytes
        if change_bytes > 0:
            self._backlog.add(self, change_bytes)
        elif change_bytes:
            self._backlog.remove(self, -change_bytes)
            if not self._is_full:
                self._make_room()

    @property
    def _is_full(self) -> bool:
        return self.unread_bytes > self._max_bytes

    def _make_room(self) -> None:
        if self._room is not None:
            self._room.set()


class Outlets:
    """Those of one server, which share what bounds them. `on_frame` hears of all that they get."""

    def __init__(self, *, max_backlog_bytes: int, on_frame: OnFrame | None = None) -> None:
        self._on_frame = on_frame
        self._max_bytes = max_backlog_bytes
        self._backlog = Backlog(limit_bytes=max_backlog_bytes)
        self._history = History(limit_bytes=max_backlog_bytes)

    @property
    def have_answers(self) -> bool:
        """Whether some are still being sent."""
        return self._backlog.has_answers

    def new(self, *, key: int | None = None, takes_events: bool = True, is_for_session: bool = False) -> Outlet:
        return Outlet(
            self._backlog,
            max_bytes=self._max_bytes,
            key=key,
            history=None if key is None else self._history,
            takes_events=takes_events,
            is_for_session=is_for_session,
            on_frame=self._on_frame,
        )
