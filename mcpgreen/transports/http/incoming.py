"""Read the message in the body of a POST: within limits, and decoded in turns."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from mcpgreen.errors import InternalError, InvalidRequest, ParseError
from mcpgreen.protocol.messages import request_ids_in
from mcpgreen.running.shares import Shares
from mcpgreen.running.turns import OneAtATime, let_others
from mcpgreen.text import jsontext
from mcpgreen.text.jsontext import weight_of
from mcpgreen.transports.http.draining import Draining
from mcpgreen.transports.http.responses import Refusal, unavailable
from mcpgreen.transports.http.wire.connection import Request

JSON_TYPE = "application/json"
PIECE_BYTES = 65_536  # the first piece of each body does not count: the number of connections is limited
SHORT_BYTES = 8192  # a message that takes no time to decode
BODIES_AT_ONCE = 16  # of the longest kind


class Incoming(NamedTuple):
    """A decoded message, and how much memory it takes."""

    message: object
    weight_bytes: int


class Reader:
    """Reads the bodies of one server, and limits how much of them is in memory at once. `on_message` is called for
    every message."""

    def __init__(
        self, draining: Draining, *, max_body_bytes: int, on_message: Callable[[bytes, object], None] | None = None
    ) -> None:
        self._draining = draining
        self._room = Shares(BODIES_AT_ONCE * max_body_bytes)
        self._on_message = on_message
        self._lane = OneAtATime()

    def read(self, request: Request) -> Incoming:
        """Raises Refusal, and BadBody for a body that is not well-formed."""
        if request.fields.get("content-type", "").partition(";")[0].strip().lower() != JSON_TYPE:
            raise Refusal("415 Unsupported Media Type", InvalidRequest(f"Content-Type must be {JSON_TYPE}."))
        counted: list[int] = []  # what the body takes of the room, until it is a message and counts as one
        raw = b""
        try:
            raw = self._whole(request, counted)
            message = self._decoded(raw)
        except ValueError as error:
            ids = request_ids_in(raw)
            id = ids[0] if len(ids) == 1 else None  # a batch is refused as a whole
            raise Refusal("400 Bad Request", ParseError(data=str(error)), id=id) from error
        finally:
            self._room.give_back(request.owner, sum(counted))
        require_place(request)
        if self._on_message is not None:
            self._on_message(raw, message)
        self._draining.require_no_request(message)
        return Incoming(message, weight_of(raw))

    def _whole(self, request: Request, counted: list[int]) -> bytes:
        pieces: list[bytes] = []
        while piece := request.body.read(PIECE_BYTES):
            if pieces:
                if not self._room.has_room(request.owner, len(piece)):
                    raise unavailable(InternalError("Too many large requests arrive at once; try again later."))
                self._room.take(request.owner, len(piece))
                counted.append(len(piece))
            pieces.append(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _decoded(self, raw: bytes) -> object:
        """Raises ValueError. Long messages are decoded one after the other: decoding twenty of them at the same time
        would make all clients wait for all twenty."""
        if len(raw) <= SHORT_BYTES:
            return jsontext.loads(raw)
        with self._lane:
            return jsontext.loads(raw, let_others)


def require_place(request: Request) -> None:
    """Raises Refusal if the caller has used up its share of the connections that are being served."""
    if not request.connection.serve_for(request.owner):
        raise unavailable(InternalError("Too many of your requests are being served; try again later."))
