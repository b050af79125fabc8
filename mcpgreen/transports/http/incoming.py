"""The message in the body of a POST: read within bounds, decoded in turns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from mcpgreen.errors import InternalError, InvalidRequest, ParseError
from mcpgreen.running.turns import let_others
from mcpgreen.text import jsontext
from mcpgreen.text.json_bounds import weight_of
from mcpgreen.transports.http.responses import Refusal

JSON_TYPE = "application/json"
PIECE_BYTES = 65_536  # the first of each body does not count: connections are bounded, and so are these
BODIES_AT_ONCE = 16  # of the longest kind


class Incoming(NamedTuple):
    """A decoded message, and how much memory it takes."""

    message: Any
    weight_bytes: int


class Reader:
    """Of one server: how much of all bodies may be under way at once is bounded. `on_message` hears of all messages."""

    def __init__(self, *, max_body_bytes: int, on_message: Callable[[bytes, Any], None] | None = None) -> None:
        self._room_bytes = BODIES_AT_ONCE * max_body_bytes
        self._on_message = on_message

    def read(self, variables: Mapping[str, Any]) -> Incoming:
        """Raises Refusal, and what a body raises that is not well-formed."""
        if variables.get("CONTENT_TYPE", "").partition(";")[0].strip().lower() != JSON_TYPE:
            raise Refusal("415 Unsupported Media Type", InvalidRequest(f"Content-Type must be {JSON_TYPE}."))
        raw = self._whole(variables["wsgi.input"])
        try:
            message = jsontext.loads(raw, let_others)
        except ValueError as error:
            raise Refusal("400 Bad Request", ParseError(data=str(error))) from error
        if self._on_message is not None:
            self._on_message(raw, message)
        return Incoming(message, weight_of(raw))

    def _whole(self, body: Any) -> bytes:
        pieces: list[bytes] = []
        counted_bytes = 0
        try:
            while piece := body.read(PIECE_BYTES):
                if pieces:
                    self._take_room(len(piece))
                    counted_bytes += len(piece)
                pieces.append(piece)
        finally:
            self._room_bytes += counted_bytes
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _take_room(self, size_bytes: int) -> None:
        if size_bytes > self._room_bytes:
            reason = "Too many large requests arrive at once; try again later."
            raise Refusal("503 Service Unavailable", InternalError(reason), headers=[("Retry-After", "1")])
        self._room_bytes -= size_bytes
