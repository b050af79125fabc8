"""The replies to one batch, sent as one array when all are there."""

from __future__ import annotations

from mcpgreen.errors import InternalError
from mcpgreen.features.call import Call
from mcpgreen.features.sink import Line, Sink
from mcpgreen.protocol import messages, shapes


class BatchSink:
    """Collects responses; notifications pass straight through.

    An answer that is there at once comes without its call. One that takes time is expected first, and then either put
    with its call or withdrawn. The array has to be held in memory as a whole, so there is a limit to it.
    """

    def __init__(self, sink: Sink, *, limit_bytes: int) -> None:
        self._sink = sink
        self._left_bytes = limit_bytes
        self._expected = 0
        self._is_sealed = False
        self._replies: list[tuple[bytes, Call | None]] = []

    def expect(self) -> None:
        self._expected += 1

    def seal(self) -> None:
        """No more members: the array can go out as soon as nothing is missing."""
        self._is_sealed = True
        self._send_if_complete()

    def put(self, line: Line, call: Call | None = None, *, is_droppable: bool = False) -> None:
        if is_droppable:
            self._sink.put(line, call, is_droppable=True)
            return
        reply = line if isinstance(line, bytes) else b"".join(line)
        if call is not None:
            self._expected -= 1
            if len(reply) > self._left_bytes:
                reply = messages.error(call.id, shapes.error_object(too_long()))
        self._left_bytes -= len(reply)
        self._replies.append((reply, call))
        self._send_if_complete()

    @property
    def is_full(self) -> bool:
        """Whether there is no room for another answer."""
        return self._left_bytes <= 0

    def withdraw(self) -> None:
        self._expected -= 1
        self._send_if_complete()

    def wait_for_room(self) -> None:
        self._sink.wait_for_room()

    def _send_if_complete(self) -> None:
        if not self._is_sealed or self._expected > 0:
            return
        lines = [line for line, call in self._replies if call is None or not call.is_cancelled]
        self._replies.clear()
        if lines:
            self._sink.put(b"[" + b",".join(lines) + b"]")


def too_long() -> InternalError:
    return InternalError("The reply to this batch would be too long; ask for less at a time.")
