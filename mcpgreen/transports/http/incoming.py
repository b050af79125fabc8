"""The message in the body of a POST: read within bounds, decoded in turns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from mcpgreen.errors import InternalError, InvalidRequest, ParseError
from mcpgreen.running.turns import OneAtATime, let_others
from mcpgreen.text import jsontext
from mcpgreen.text.json_bounds import weight_of
from mcpgreen.transports.http.draining import Draining
from mcpgreen.transports.http.responses import Refusal

JSON_TYPE = "application/json"
PIECE_BYTES = 65_536  # the first of each body does not count: connections are bounded, and so are these
SHORT_BYTES = 8192  # a message that takes no time to decode
BODIES_AT_ONCE = 16  # of the longest kind


class Incoming(NamedTuple):
    """A decoded message, and how much memory it takes."""

    message: Any
    weight_bytes: int


class Reader:
    """Of one server: how much of all bodies may be under way at once is bounded. `on_message` hears of all messages."""

    def __init__(
        self, draining: Draining, *, max_body_bytes: int, on_message: Callable[[bytes, Any], None] | None = None
    ) -> None:
        self._draining = draining
        self._room_bytes = BODIES_AT_ONCE * max_body_bytes
        self._on_message = on_message
        self._lane = OneAtATime()

    def read(self, variables: Mapping[str, Any]) -> Incoming:
        """Raises Refusal, and what a body raises that is not well-formed."""
        if variables.get("CONTENT_TYPE", "").partition(";")[0].strip().lower() != JSON_TYPE:
            raise Refusal("415 Unsupported Media Type", InvalidRequest(f"Content-Type must be {JSON_TYPE}."))
        counted: list[int] = []  # what it takes of the room, until it is a message and counts as one
        try:
            raw = self._whole(variables["wsgi.input"], counted)
            message = self._decoded(raw)
        except ValueError as error:
            raise Refusal("400 Bad Request", ParseError(data=str(error))) from error
        finally:
            self._room_bytes += sum(counted)
        if self._on_message is not None:
            self._on_message(raw, message)
        self._draining.require_no_request(message)
        return Incoming(message, weight_of(raw))

    def _whole(self, body: Any, counted: list[int]) -> bytes:
        pieces: list[bytes] = []
        while piece := body.read(PIECE_BYTES):
            if pieces:
                self._take_room(len(piece))
                counted.append(len(piece))
            pieces.append(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _decoded(self, raw: bytes) -> Any:
        """Raises ValueError. Twenty who decode at the same time would make everybody wait for all of them."""
        if len(raw) <= SHORT_BYTES:
            return jsontext.loads(raw)
        with self._lane:
            return jsontext.loads(raw, let_others)

    def _take_room(self, size_bytes: int) -> None:
        if size_bytes > self._room_bytes:
            reason = "Too many large requests arrive at once; try again later."
            raise Refusal("503 Service Unavailable", InternalError(reason), headers=[("Retry-After", "1")])
        self._room_bytes -= size_bytes
