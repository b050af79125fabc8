"""Where frames go: what a transport, a batch or a command offers to the calls that it brings."""

from __future__ import annotations

from typing import Protocol

Line = bytes | list[bytes]  # a large one comes in pieces


def whole(line: Line) -> bytes:
    return line if isinstance(line, bytes) else b"".join(line)


class Answerable(Protocol):
    """A call, as far as its frames are concerned: nothing of it is written once it is cancelled."""

    id: str | int

    @property
    def is_cancelled(self) -> bool: ...


class Sink(Protocol):
    """A way to a client. It says what it carries; nothing here waits but `wait_for_room`."""

    @property
    def carries_requests(self) -> bool:
        """Whether the client can be asked something by this way, now."""

    @property
    def has_room(self) -> bool:
        """Whether the client reads what it gets."""

    def respond(self, line: Line, call: Answerable | None = None) -> None:
        """The answer to a request: at once and without a call, or later and with the one that was expected."""

    def notify(self, line: Line, call: Answerable | None = None, *, is_droppable: bool = True) -> None:
        """A droppable one may be lost when the client does not read."""

    def request(self, line: Line) -> None:
        """What we ask the client."""

    def wait_for_room(self) -> None: ...

    def expect(self) -> None:
        """An answer to one request will come later, by `respond` with its call."""

    def withdraw(self) -> None:
        """It will not come."""
