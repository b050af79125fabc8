"""The replies to one batch, sent as one array when all are there."""

from __future__ import annotations

from mcpgreen.features.call import Call
from mcpgreen.features.sink import Line, Sink


class BatchSink:
    """Collects responses; notifications pass straight through.

    An answer that is there at once comes without its call. One that takes time is expected first, and then either put
    with its call or withdrawn.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
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
        if call is not None:
            self._expected -= 1
        self._replies.append((line if isinstance(line, bytes) else b"".join(line), call))
        self._send_if_complete()

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
