"""Lines from a shell to a server: one after the other, each when the request before it has its answer.

A notification follows at once, since it may be about the request before it. A line that is an answer waits for a
question of the server; a question for which there is none is refused, so that nobody waits for ever.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from examples.harness.wire import Silence, Wire

CANNOT_BE_ASKED = {"code": -32601, "message": "examples/send was given no answer to this"}


class BadLine(Exception):
    """A line to be sent is not JSON."""


class Sending:
    """What is to be sent. Raises BadLine, before a server is started for it."""

    def __init__(self, lines: list[str], *, is_raw: bool) -> None:
        self._raw = lines if is_raw else None
        self._messages = [] if is_raw else [_message_of(line, number) for number, line in enumerate(lines, 1)]
        self._open: list[Any] = []  # ids of requests without an answer
        self._questions: list[Any] = []  # ids of the server's own

    def answers(self, wire: Wire) -> Iterator[str]:
        """Every line of the server, as it comes. Raises Silence."""
        if self._raw is None:
            wire.handshake()
            yield from self._conversation(wire)
            wire.close()
        else:
            for line in self._raw:
                wire.send(line)
            wire.close()
        while (last := wire.next_line()) is not None:
            yield last

    def _conversation(self, wire: Wire) -> Iterator[str]:
        left = list(self._messages)
        while left or self._open:
            if left and (not self._open or _is_notification(left[0])):
                self._send(left.pop(0), wire)
            elif self._questions:
                if left and _is_answer(left[0]):
                    wire.send(json.dumps({**left.pop(0), "id": self._questions.pop(0)}))
                else:
                    refusal = {"jsonrpc": "2.0", "id": self._questions.pop(0), "error": CANNOT_BE_ASKED}
                    wire.send(json.dumps(refusal))
            else:
                line = wire.next_line()
                if line is None:
                    raise Silence("the server ended before it had answered")
                yield line
                self._hear(json.loads(line))

    def _send(self, message: Any, wire: Wire) -> None:
        for each in message if isinstance(message, list) else [message]:
            if not isinstance(each, dict):
                continue
            if "method" in each and "id" in each:
                self._open.append(each["id"])
            elif each.get("method") == "notifications/cancelled":
                cancelled = each.get("params", {}).get("requestId")
                self._open = [id for id in self._open if id != cancelled]
        wire.send(json.dumps(message))

    def _hear(self, message: Any) -> None:
        for each in message if isinstance(message, list) else [message]:
            if "method" in each:
                self._questions += [each["id"]] if "id" in each else []
            else:
                # Without an id it is an error about a line that made no sense: the one that we wait for.
                self._open = [id for id in self._open if each.get("id") not in (id, None)]


def _message_of(line: str, number: int) -> Any:
    try:
        message = json.loads(line)
    except ValueError as error:
        raise BadLine(f"line {number} is not JSON: {error}. --raw sends it all the same.") from None
    if not isinstance(message, dict):
        return message
    is_request = "method" in message and not str(message["method"]).startswith("notifications/")
    return {"jsonrpc": "2.0", **({"id": number} if is_request else {}), **message}


def _is_notification(message: Any) -> bool:
    return isinstance(message, dict) and "method" in message and "id" not in message


def _is_answer(message: Any) -> bool:
    return isinstance(message, dict) and "method" not in message
