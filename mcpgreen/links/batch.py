"""The answers to one batch, sent as one array when all are there."""

from __future__ import annotations

from mcpgreen.errors import InternalError
from mcpgreen.links.sink import Answerable, Line, Sink, whole
from mcpgreen.protocol import messages, revision_fields


class BatchSink:
    """Collects answers; everything else passes straight through.

    An answer that is there at once comes without its call. One that takes time is expected first, and then either given
    with its call or withdrawn. The array has to be held in memory as a whole, so there is a limit to it.
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

    @property
    def has_room(self) -> bool:
        return self._sink.has_room

    @property
    def carries_requests(self) -> bool:
        return self._sink.carries_requests

    @property
    def is_full(self) -> bool:
        """Whether there is no room for another answer."""
        return self._left_bytes <= 0

    def expect(self) -> None:
        self._expected += 1

    def seal(self) -> None:
        """No more members: the array can go out as soon as nothing is missing."""
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
    return InternalError("The reply to this batch would be too long; ask for less at a time.")
