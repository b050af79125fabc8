"""Sinks: where frames go. A transport, a batch or a command gives one to its calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from gevent.event import Event

from mcpgreen.errors import InternalError
from mcpgreen.protocol import messages, revision_fields
from mcpgreen.protocol.messages import Line, whole
from mcpgreen.text import jsontext

# Of replies that clients have not read. Beyond that no script starts, and reading pauses.
MAX_BACKLOG_BYTES = 32 << 20


class Answerable(Protocol):
    """A call, as a sink knows it: nothing of it is written once it is cancelled."""

    @property
    def id(self) -> str | int: ...

    @property
    def is_cancelled(self) -> bool: ...


OnLine = Callable[[Line, Answerable | None], object]


class Sink(Protocol):
    """A way to a client. Only `wait_for_room` and `wait_for_room_for` wait."""

    @property
    def carries_requests(self) -> bool:
        """Whether a request can be sent to the client this way, now."""

    @property
    def has_room(self) -> bool:
        """Whether the client reads quickly enough for more frames."""

    def respond(self, line: Line, call: Answerable | None = None) -> None:
        """Send the answer to a request: a quick one without its call, or an expected one with it."""

    def notify(self, line: Line, call: Answerable | None = None, *, is_droppable: bool = True) -> None:
        """Send a notification. A droppable one may be lost when the client does not read."""

    def request(self, line: Line) -> None:
        """Send a request to the client."""

    def wait_for_room(self) -> None: ...

    def wait_for_room_for(self, size_bytes: int) -> None:
        """Wait until an answer of this size may be sent, among those of all clients."""

    def expect(self) -> None:
        """Announce an answer that will come later, by `respond` with its call."""

    def withdraw(self) -> None:
        """Say that an expected answer will not come."""


class BatchSink:
    """Collects answers, and passes everything else through to `sink`.

    A quick answer comes without its call. A later one is announced by `expect`, and then comes with its call or is
    withdrawn. The whole array is held in memory, so its size is limited.
    """

    def __init__(self, sink: Sink, *, limit_bytes: int) -> None:
        self._sink = sink
        self._left_bytes = limit_bytes
        self._expected = 0
        self._is_sealed = False
        self._answers: list[tuple[bytes, Answerable | None]] = []
        self.notify = sink.notify
        self.request = sink.request
        self.wait_for_room = sink.wait_for_room
        self.wait_for_room_for = sink.wait_for_room_for

    @property
    def has_room(self) -> bool:
        return self._sink.has_room

    @property
    def carries_requests(self) -> bool:
        return self._sink.carries_requests

    @property
    def is_full(self) -> bool:
        return self._left_bytes <= 0

    def expect(self) -> None:
        self._expected += 1

    def seal(self) -> None:
        """The batch has no more members: send the array as soon as no answer is missing."""
        self._is_sealed = True
        self._send_if_complete()

    def respond(self, line: Line, call: Answerable | None = None) -> None:
        answer = whole(line)
        if call is not None:
            self._expected -= 1
            if len(answer) > self._left_bytes:
                answer = messages.error(call.id, revision_fields.error_object(too_long()))
        self._left_bytes -= len(answer)
        self._answers.append((answer, call))
        self._send_if_complete()

    def withdraw(self) -> None:
        self._expected -= 1
        self._send_if_complete()

    def _send_if_complete(self) -> None:
        if not self._is_sealed or self._expected > 0:
            return
        lines = [line for line, call in self._answers if call is None or not call.is_cancelled]
        self._answers.clear()
        if lines:
            self._sink.respond(b"[" + b",".join(lines) + b"]")
        else:
            self._sink.withdraw()


def too_long() -> InternalError:
    return InternalError("The reply to this batch would be too long; send smaller batches.")


class MemorySink:
    """For commands that serve themselves, and for tests without a pipe: keeps all frames in their order, and each kind
    by itself, decoded. With `on_line`, it keeps nothing, and calls that with each frame as it is written, and with its
    call. Clear `room` to stand in for a slow client."""

    carries_requests = True

    def __init__(self, on_line: OnLine | None = None) -> None:
        self.frames: list[Any] = []
        self.responses: list[Any] = []
        self.notifications: list[Any] = []
        self.requests: list[Any] = []
        self._on_line = on_line
        self.room = Event()
        self.room.set()

    @property
    def has_room(self) -> bool:
        return bool(self.room.is_set())

    def respond(self, line: Line, call: Answerable | None = None) -> None:
        if call is None or not call.is_cancelled:
            self._keep(self.responses, line, call)

    def notify(self, line: Line, call: Answerable | None = None, *, is_droppable: bool = True) -> None:
        if (call is None or not call.is_cancelled) and (self.has_room or not is_droppable):
            self._keep(self.notifications, line, call)

    def request(self, line: Line) -> None:
        self._keep(self.requests, line)

    def wait_for_room(self) -> None:
        self.room.wait()

    def wait_for_room_for(self, size_bytes: int) -> None:
        """Do nothing: there are no other clients."""

    def expect(self) -> None:
        """Do nothing: each answer is kept by itself."""

    def withdraw(self) -> None:
        """Do nothing."""

    def _keep(self, frames: list[Any], line: Line, call: Answerable | None = None) -> None:
        if self._on_line is not None:
            self._on_line(line, call)
            return
        frame = jsontext.loads(whole(line))
        self.frames.append(frame)
        frames.append(frame)
