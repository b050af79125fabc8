"""Where replies go: what a transport, a batch or a command offers to the calls that it brings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from mcpgreen.features.call import Call

Line = bytes | list[bytes]  # a large one comes in pieces


class Sink(Protocol):
    """Where replies go. `put` never blocks; a droppable line may be lost when the client does not read."""

    def put(self, line: Line, call: Call | None = None, *, is_droppable: bool = False) -> None: ...

    def wait_for_room(self) -> None: ...

    def expect(self) -> None:
        """An answer to one request will come later, by `put` with its call."""

    def withdraw(self) -> None:
        """It will not come."""
