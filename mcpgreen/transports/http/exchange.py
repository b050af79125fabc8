"""Read and answer one POST: its message goes to the engine, and the answer comes back as JSON or as a stream of events.

A quick answer is JSON. If something else comes first (progress, a log message, a request of ours), or nothing for a
while, the answer becomes a stream, if the client accepts one. A client that accepts only JSON gets nothing but the
answer. What becomes of an answer whose connection is lost, `streams.outlet` says.

How long the while is depends on what a stream is good for. In a session, the client can resume it after a lost
connection, so it begins soon. Otherwise it only keeps the connection open, and some clients accept a longer answer as
JSON than as an event.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import gevent

from mcpgreen.engine.link import Link
from mcpgreen.engine.server import Server
from mcpgreen.errors import ParseError
from mcpgreen.protocol import messages
from mcpgreen.running.shares import OneAtATime, Shares, let_others
from mcpgreen.text import jsontext
from mcpgreen.text.jsontext import weight_of
from mcpgreen.transports.http.responses import ACCEPTED, BAD, JSON, OK, Refusal, status_of, unavailable
from mcpgreen.transports.http.sessions import HttpSession, HttpSessions
from mcpgreen.transports.http.streams import events
from mcpgreen.transports.http.streams.outlet import Outlet, Outlets
from mcpgreen.transports.http.wire.connection import Request, Response

if TYPE_CHECKING:
    from mcpgreen.links.principal import Principal
    from mcpgreen.transports.http.oauth.resource_server import ResourceServer

KEEP_ALIVE_SECS = 15.0  # of silence on a stream, and a comment is sent so that proxies keep it open
PATIENCE_SECS = 1.0  # after which a client that can resume a stream gets one
LONGEST_TIMER_SECS = 1e6  # a token that is valid for longer ends no stream
JSON_TYPE = "application/json"
PIECE_BYTES = 65_536  # the first piece of each body does not count: the number of connections is limited
SHORT_BYTES = 8192  # a message that takes no time to decode
BODIES_AT_ONCE = 16  # of the longest kind
STOPPING = "The server is stopping."


class Parts(NamedTuple):
    """What all ways to serve a request over HTTP share. `oauth` verifies the tokens of requests."""

    server: Server
    outlets: Outlets
    sessions: HttpSessions
    oauth: ResourceServer | None


class Accepts(NamedTuple):
    """What a client accepts as an answer."""

    json: bool
    events: bool


class Post(NamedTuple):
    """A POST with its decoded message. `weight_bytes` is how much memory the message takes."""

    request: Request
    message: object
    weight_bytes: int
    accepts: Accepts


class ClientGone(ConnectionError):
    """The client is gone, so there is nothing to answer."""


def answer_post(
    parts: Parts, post: Post, session: HttpSession | None = None, *, key: int | None = None, is_primed: bool = False
) -> Response:
    """Serve the message of a POST. Raises ClientGone.

    Without a session, the request is cancelled when the connection is lost. `key` names a stream that can be resumed.
    """
    request, message, _, accepts = post
    connection = request.connection
    owner = request.owner if session is None else session.owner
    outlet = parts.outlets.new(key=key, carrier=connection, takes_events=accepts.events, owner=owner)
    until_over = ExitStack()
    if session is None:
        link = parts.sessions.connect_stateless(outlet, request.principal, owner)
    else:
        link = parts.sessions.connect(session, outlet)
        until_over.enter_context(session)
    until_over.callback(parts.server.disconnect, link)
    outlet.on_over = until_over.close
    ends_with_client = session is None
    link.receive(message, weight_bytes=post.weight_bytes)
    if outlet.is_silent and (outlet.is_over or not (link.stream.in_flight or link.stream.listens)):
        outlet.end()  # the message needs no answer
        outlet.lose()
        return ACCEPTED
    if not outlet.is_over:
        connection.on_hangup(partial(outlet.lose, connection))
        patience_secs = KEEP_ALIVE_SECS if ends_with_client else PATIENCE_SECS
        outlet.wait(patience_secs if accepts.events else None)
    if outlet.is_lost:
        _leave(link, outlet, ends_with_client=ends_with_client)
        raise ClientGone
    if outlet.answer is not None:
        request_id = messages.normal_id(message.get("id")) if type(message) is dict else None
        status, headers = status_of(outlet.answer, request_id, parts.oauth, is_stateless=session is None)
        if accepts.json or status != OK:  # a stream always has the status 200
            return Response(status, [JSON, *headers], _Answer(outlet))
    elif not accepts.events:
        outlet.lose()
        return ACCEPTED  # the call was cancelled, and a client that accepts no stream has to get something
    if session is not None and key is not None:
        session.keep(key, outlet)  # a stream can be resumed, JSON cannot
    sent = outlet.stream(connection, keep_alive_secs=KEEP_ALIVE_SECS, is_primed=is_primed)
    return Response(OK, list(events.HEADERS), _streamed(sent, link, outlet, ends_with_client=ends_with_client))


def stream_of_session(
    session: HttpSession, outlet: Outlet, request: Request, *, is_primed: bool = False, after: int | None = None
) -> Iterator[bytes]:
    """Let the connection of a GET carry a stream of its session, until the caller's token expires."""
    connection = request.connection
    sent = outlet.stream(connection, keep_alive_secs=KEEP_ALIVE_SECS, is_primed=is_primed, after=after)
    lose = partial(outlet.lose, connection)
    connection.on_hangup(lose)

    def in_use() -> Iterator[bytes]:
        with session, until_token_expires(request.principal, lose):
            yield from sent

    return in_use()


def _streamed(sent: Iterator[bytes], link: Link, outlet: Outlet, *, ends_with_client: bool) -> Iterator[bytes]:
    try:
        with until_token_expires(link.stream.principal, link.close_listens):
            yield from sent
    finally:
        _leave(link, outlet, ends_with_client=ends_with_client)


def _leave(link: Link, outlet: Outlet, *, ends_with_client: bool) -> None:
    """Leave a finished or lost connection: cancel the request if it still runs and ends with its client."""
    if ends_with_client and not outlet.is_over:
        link.drop()
        outlet.end()


class _Answer(list[bytes]):
    """The pieces of an answer. They count as unread until the connection has sent them."""

    def __init__(self, outlet: Outlet) -> None:
        line = outlet.take_answer()
        super().__init__([line] if isinstance(line, bytes) else line)
        self.close = outlet.lose


@contextmanager
def until_token_expires(principal: Principal | None, end: Callable[[], None]) -> Iterator[None]:
    """Call `end` when the token of the caller expires, if this is still in use then: a stream may be open for days."""
    expires_at = None if principal is None else principal.expires_at
    secs = LONGEST_TIMER_SECS if expires_at is None else expires_at - time.time()
    if secs >= LONGEST_TIMER_SECS:
        yield
        return
    timer = gevent.spawn_later(max(0.0, secs), end)
    try:
        yield
    finally:
        timer.kill(block=False)


class Reader:
    """Reads the bodies of one server, and limits how much of them is in memory at once. `on_message` is called for
    every message.

    `is_draining`: the server stops; what has begun is finished, and new requests are refused. The listening socket and
    idle connections stay open meanwhile. A proxy that gets 503 knows that nothing was begun, and may ask another
    server. If a connection is closed just when the proxy sends a request, the proxy learns nothing, and must not send
    twice what may have been done. So a connection is closed after an answer that says so, or when nothing has come on
    it for a while. What a running call may wait for is let in, above all answers to its questions and notifications.
    """

    def __init__(self, *, max_body_bytes: int) -> None:
        self.is_draining = False
        self._room = Shares(BODIES_AT_ONCE * max_body_bytes)
        self.on_message: Callable[[bytes, object], None] | None = None
        self._lane = OneAtATime()

    def require_known(self, method: str, *, has_session: bool, last_event: str) -> None:
        """While the server stops, refuse requests without a session, and streams that are not the rest of a call's."""
        stream = events.named(last_event)
        is_rest_of_call = stream is not None and stream[0] != events.STANDING_KEY
        if self.is_draining and (not has_session or (method == "GET" and not is_rest_of_call)):
            raise unavailable(STOPPING)

    def read(self, request: Request) -> tuple[object, int]:
        """Return the decoded message, and the memory that it takes. Raises Refusal, and BadRequest for a bad body."""
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
        if self.on_message is not None:
            self.on_message(raw, message)
        members = message if type(message) is list else [message]
        if self.is_draining and any("id" in each and "method" in each for each in members if type(each) is dict):
            raise unavailable(STOPPING, id=messages.normal_id(message.get("id")) if type(message) is dict else None)
        return message, weight_of(raw)

    def _whole(self, request: Request, counted: list[int]) -> bytes:
        pieces: list[bytes] = []
        while piece := request.body.read(PIECE_BYTES):
            if pieces:
                if not self._room.has_room(request.owner, len(piece)):
                    raise unavailable("Too many large requests are arriving at once; try again later.")
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
