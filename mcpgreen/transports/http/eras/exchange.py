"""One POST that is to be answered: its message goes in, and comes back as JSON or as a stream of events.

Quick answers are JSON. When something else comes first (progress, a log message, a request of ours), or nothing for a
while, the answer becomes a stream, if the client takes one. A client that takes only JSON hears nothing but the answer.

How long a while is depends on what a stream is good for. In a session, the client can go on with it after a lost
connection, so it begins soon. Otherwise it only keeps the connection open, and some clients take longer answers as JSON
than as an event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, NamedTuple

from mcpgreen.engine.link import Link
from mcpgreen.engine.server import Server
from mcpgreen.links.sink import Line
from mcpgreen.transports.http.eras.expiry import ended_with_token
from mcpgreen.transports.http.responses import JSON, Headers, Response, accepted
from mcpgreen.transports.http.streams import events
from mcpgreen.transports.http.streams.outlet import Outlet
from mcpgreen.transports.http.wire.connection import CONNECTION

PATIENCE_SECS = 1.0  # after which a client that can go on with a stream gets one
UNBOUNDED_SECS = 3600.0  # at a time; how long a call may take is not for the transport to say

StatusOf = Callable[[Line], tuple[str, Headers]]


class Accepts(NamedTuple):
    """What a client takes as an answer."""

    json: bool
    events: bool


class ClientGone(ConnectionError):
    """There is nobody to be answered."""


class Exchange:
    """`is_dropped_with_client`: whether what a client asked for ends when it goes. `use` is held until all is said."""

    def __init__(
        self,
        server: Server,
        link: Link,
        outlet: Outlet,
        *,
        accepts: Accepts,
        keep_alive_secs: float,
        is_dropped_with_client: bool,
        use: AbstractContextManager[None] | None = None,
    ) -> None:
        self._server = server
        self._link = link
        self._outlet = outlet
        self._accepts = accepts
        self._keep_alive_secs = keep_alive_secs
        self._is_dropped_with_client = is_dropped_with_client
        self._use = use or nullcontext()
        self._use.__enter__()
        outlet.on_over = self._on_over

    def respond(
        self, message: Any, variables: Mapping[str, Any], *, weight_bytes: int, status_of: StatusOf, is_primed: bool
    ) -> Response:
        """Serve the message. Raises ClientGone."""
        outlet, connection = self._outlet, variables[CONNECTION]
        outlet.carried_by(connection)
        self._link.receive(message, weight_bytes=weight_bytes)
        if outlet.is_silent:
            stream = self._link.stream
            if outlet.is_over or not (stream.in_flight or stream.listens):
                outlet.end()  # there was nothing in it to be answered
                return accepted()
            connection.on_hangup(partial(outlet.lose, connection))
            self._wait()
        if outlet.is_lost:
            self._leave()
            raise ClientGone
        if self._accepts.json and (outlet.is_answer_alone or not self._accepts.events):
            return self._whole(status_of)
        if not outlet.is_over:
            connection.on_hangup(partial(outlet.lose, connection))
        stream_of_events = outlet.stream(connection, keep_alive_secs=self._keep_alive_secs, is_primed=is_primed)
        return Response("200 OK", list(events.HEADERS), self._until_left(stream_of_events))

    def _wait(self) -> None:
        outlet = self._outlet
        if self._accepts.events:
            outlet.wait(self._keep_alive_secs if self._is_dropped_with_client else PATIENCE_SECS)
            return
        while not (outlet.is_over or outlet.is_lost):
            outlet.wait(UNBOUNDED_SECS)

    def _whole(self, status_of: StatusOf) -> Response:
        outlet = self._outlet
        if outlet.is_silent:  # it was cancelled, and a client that takes no stream has to be told something
            return accepted()
        line = outlet.take_answer()
        status, headers = status_of(line)
        return Response(status, [JSON, *headers], Held(line, outlet))

    def _until_left(self, stream: Iterator[bytes]) -> Iterator[bytes]:
        try:
            with ended_with_token(self._link.stream.principal, self._link.close_listens):
                yield from stream
        finally:
            self._leave()

    def _leave(self) -> None:
        """The client has its answer, or is gone."""
        outlet = self._outlet
        if self._is_dropped_with_client and not outlet.is_over:
            self._link.drop()
            outlet.end()
        if self._is_dropped_with_client or not outlet.has_begun:
            outlet.takes_events = False  # the client has none to go on from
            outlet.forget()

    def _on_over(self) -> None:
        self._server.disconnect(self._link)
        self._use.__exit__(None, None, None)
        if self._outlet.is_lost:
            self._leave()


class Held(list[bytes]):
    """The pieces of an answer. They count as unread until the connection is done with them."""

    def __init__(self, line: Line, outlet: Outlet) -> None:
        super().__init__([line] if isinstance(line, bytes) else line)
        self._outlet = outlet

    def close(self) -> None:
        self._outlet.release()
