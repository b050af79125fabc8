"""A sink that keeps its frames in memory: for commands that serve themselves, and for tests without a pipe."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gevent.event import Event

from mcpgreen.links.sink import Answerable, Line, whole
from mcpgreen.text import jsontext

OnFrame = Callable[[Any], object]


class MemorySink:
    """Keeps all frames in their order, and each kind by itself, decoded. `set_room` stands in for a slow client."""

    carries_requests = True

    def __init__(self, *, on_request: OnFrame | None = None, on_notification: OnFrame | None = None) -> None:
        self.frames: list[Any] = []
        self.responses: list[Any] = []
        self.notifications: list[Any] = []
        self.requests: list[Any] = []
        self._on_request = on_request
        self._on_notification = on_notification
        self._room = Event()
        self._room.set()

    @property
    def has_room(self) -> bool:
        return bool(self._room.is_set())

    def set_room(self, has_room: bool) -> None:
        """Say whether the client reads: without room, droppable frames are lost and no script starts."""
        if has_room:
            self._room.set()
        else:
            self._room.clear()

    def respond(self, line: Line, call: Answerable | None = None) -> None:
        if call is None or not call.is_cancelled:
            self._keep(self.responses, line)

    def notify(self, line: Line, call: Answerable | None = None, *, is_droppable: bool = True) -> None:
        if (call is None or not call.is_cancelled) and (self.has_room or not is_droppable):
            self._keep(self.notifications, line, self._on_notification)

    def request(self, line: Line) -> None:
        self._keep(self.requests, line, self._on_request)

    def wait_for_room(self) -> None:
        self._room.wait()

    def wait_for_room_for(self, size_bytes: int) -> None:
        """Do nothing: there are no other clients."""

    def expect(self) -> None:
        """Do nothing: each answer is kept by itself."""

    def withdraw(self) -> None:
        """Do nothing."""

    def forget(self) -> None:
        """Drop all frames: a long session would keep everything."""
        for frames in (self.frames, self.responses, self.notifications, self.requests):
            frames.clear()

    def _keep(self, frames: list[Any], line: Line, on_frame: OnFrame | None = None) -> None:
        frame = jsontext.loads(whole(line))
        self.frames.append(frame)
        frames.append(frame)
        if on_frame is not None:
            on_frame(frame)
