"""Read the message in the body of a POST, within limits and in turns, and refuse new requests while the server stops.

Between the signal to stop and the end of the server, what has begun is finished, and new requests are refused. The
listening socket and idle connections stay open meanwhile. A proxy that gets 503 knows that nothing was begun, and may
ask another server. If a connection is closed just when the proxy sends a request, the proxy learns nothing, and must
not send twice what may have been done. So a connection is closed after an answer that says so, or when nothing has come
on it for a while.

Rule: what a running call may wait for is let in, above all answers to its questions and notifications.
"""

from __future__ import annotations

from collections.abc import Callable

from mcpgreen.errors import ParseError
from mcpgreen.protocol import messages
from mcpgreen.running.shares import OneAtATime, Shares, let_others
from mcpgreen.text import jsontext
from mcpgreen.text.jsontext import weight_of
from mcpgreen.transports.http.responses import BAD, Refusal, unavailable
from mcpgreen.transports.http.streams import events
from mcpgreen.transports.http.wire.connection import Request

JSON_TYPE = "application/json"
PIECE_BYTES = 65_536  # the first piece of each body does not count: the number of connections is limited
SHORT_BYTES = 8192  # a message that takes no time to decode
BODIES_AT_ONCE = 16  # of the longest kind
STOPPING = "The server is stopping."


class Reader:
    """Reads the bodies of one server, and limits how much of them is in memory at once. `on_message` is called for
    every message. `is_draining`: the server stops."""

    def __init__(self, *, max_body_bytes: int, on_message: Callable[[bytes, object], None] | None = None) -> None:
        self.is_draining = False
        self._room = Shares(BODIES_AT_ONCE * max_body_bytes)
        self._on_message = on_message
        self._lane = OneAtATime()

    def require_known(self, method: str, *, has_session: bool, last_event: str) -> None:
        """While the server stops, refuse without reading it a request without a session, and a stream that is not the
        rest of a call's. Raises Refusal."""
        stream = events.named(last_event)
        is_rest_of_call = stream is not None and stream[0] != events.STANDING_KEY
        if self.is_draining and (not has_session or (method == "GET" and not is_rest_of_call)):
            raise unavailable(STOPPING)

    def read(self, request: Request) -> tuple[object, int]:
        """Return the decoded message, and how much memory it takes. Raises Refusal, and BadRequest for a body that is
        not well-formed."""
        if request.fields.get("content-type", "").partition(";")[0].strip().lower() != JSON_TYPE:
            raise Refusal("415 Unsupported Media Type", f"Content-Type must be {JSON_TYPE}.")
        counted: list[int] = []  # what the body takes of the room, until it is a message and counts as one
        raw = b""
        try:
            raw = self._whole(request, counted)
            message = self._decoded(raw)
        except ValueError as error:
            ids, answered = messages.ids_in(raw), messages.ids_in(raw, messages.ANSWER)
            if ids or len(answered) != 1:  # a batch is refused as a whole
                id = ids[0] if len(ids) == 1 else None
                raise Refusal(BAD, ParseError(data=str(error)), id=id) from error
            message = messages.unreadable_answer(answered[0], str(error))
        finally:
            self._room.give_back(request.owner, sum(counted))
        require_place(request)
        if self._on_message is not None:
            self._on_message(raw, message)
        members = message if type(message) is list else [message]
        if self.is_draining and any("id" in each and "method" in each for each in members if type(each) is dict):
            raise unavailable(STOPPING, id=messages.normal_id(message.get("id")) if type(message) is dict else None)
        return message, weight_of(raw)

    def _whole(self, request: Request, counted: list[int]) -> bytes:
        pieces: list[bytes] = []
        while piece := request.body.read(PIECE_BYTES):
            if pieces:
                if not self._room.has_room(request.owner, len(piece)):
                    raise unavailable("Too many large requests arrive at once; try again later.")
                self._room.take(request.owner, len(piece))
                counted.append(len(piece))
            pieces.append(piece)
        return b"".join(pieces)

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
        raise unavailable("Too many of your requests are being served; try again later.")
