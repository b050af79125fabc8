"""Answer one POST: its message goes to the engine, and the answer comes back as JSON or as a stream of events.

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
from mcpgreen.protocol import messages
from mcpgreen.transports.http.responses import JSON, OK, accepted, status_of
from mcpgreen.transports.http.sessions import HttpSession, HttpSessions
from mcpgreen.transports.http.streams import events
from mcpgreen.transports.http.streams.outlet import Outlet
from mcpgreen.transports.http.streams.outlets import Outlets
from mcpgreen.transports.http.wire.connection import Request, Response

if TYPE_CHECKING:
    from mcpgreen.links.principal import Principal
    from mcpgreen.transports.http.oauth.resource_server import ResourceServer

KEEP_ALIVE_SECS = 15.0  # of silence on a stream, and a comment is sent so that proxies keep it open
PATIENCE_SECS = 1.0  # after which a client that can resume a stream gets one
UNBOUNDED_SECS = 3600.0  # at a time; how long a call may take is not for the transport to say
LONGEST_TIMER_SECS = 1e6  # a token that is valid for longer ends no stream


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

    Without a session, the request is cancelled when the connection is lost. `key` names the stream, if the client may
    resume it.
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
    if outlet.is_silent:
        if outlet.is_over or not (link.stream.in_flight or link.stream.listens):
            outlet.end()  # the message needs no answer
            outlet.lose()
            return accepted()
        connection.on_hangup(partial(outlet.lose, connection))
        if accepts.events:
            outlet.wait(KEEP_ALIVE_SECS if ends_with_client else PATIENCE_SECS)
        while not (accepts.events or outlet.is_over or outlet.is_lost):
            outlet.wait(UNBOUNDED_SECS)
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
        return accepted()  # the call was cancelled, and a client that accepts no stream has to get something
    if not outlet.is_over:
        connection.on_hangup(partial(outlet.lose, connection))
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
