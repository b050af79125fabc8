"""Where frames go: what a transport, a batch or a command gives to its calls."""

from __future__ import annotations

from typing import Protocol

Line = bytes | list[bytes]  # a large line comes in pieces

# Of replies that clients have not read. Beyond that no script starts, and reading pauses.
MAX_BACKLOG_BYTES = 32 << 20


def whole(line: Line) -> bytes:
    return line if isinstance(line, bytes) else b"".join(line)


def size_of(line: Line) -> int:
    return len(line) if isinstance(line, bytes) else sum(map(len, line))


class Answerable(Protocol):
    """A call, as a sink knows it: nothing of it is written once it is cancelled."""

    id: str | int

    @property
    def is_cancelled(self) -> bool: ...


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
