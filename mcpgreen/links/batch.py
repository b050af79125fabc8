"""Collect the answers to one batch, and send them as one array."""

from __future__ import annotations

from mcpgreen.errors import InternalError
from mcpgreen.links.sink import Answerable, Line, Sink, whole
from mcpgreen.protocol import messages, revision_fields


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
    return InternalError("The reply to this batch would be too long; ask for less at a time.")
