"""The older pair of addresses, for clients of the first revision: `/sse` is a stream, `/messages` takes what they send.

Everything that the server says goes on the stream, answers too, and the session ends with it. Off unless a setting
wants it: what this transport can do, the one at `/mcp` can do better.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from mcpgreen.engine.link import Link
from mcpgreen.errors import InternalError, InvalidRequest
from mcpgreen.transports.http.eras.expiry import ended_with_token
from mcpgreen.transports.http.incoming import Reader
from mcpgreen.transports.http.parts import Parts
from mcpgreen.transports.http.responses import Refusal, Response, accepted
from mcpgreen.transports.http.sessions import HttpSession, NoRoom
from mcpgreen.transports.http.streams import events
from mcpgreen.transports.http.wire.connection import CONNECTION

if TYPE_CHECKING:
    from mcpgreen.links.principal import Principal

STREAM = "/sse"
MESSAGES = "/messages"
KEY = "session_id"


class LegacySse:
    """Serves both."""

    def __init__(self, parts: Parts, reader: Reader) -> None:
        self._parts = parts
        self._reader = reader
        self._links: dict[str, Link] = {}  # of the sessions that were opened here

    def open(self, variables: Mapping[str, Any], principal: Principal | None) -> Response:
        """`GET /sse`. Raises Refusal."""
        if variables["REQUEST_METHOD"] != "GET":
            raise _not_allowed("GET")
        try:
            session = self._parts.sessions.open(principal)
        except NoRoom as error:
            raise Refusal("503 Service Unavailable", InternalError(str(error))) from error
        self._links[session.key] = self._parts.connect(session.standing, session)
        connection = variables[CONNECTION]
        session.standing.carried_by(connection)
        connection.on_hangup(partial(session.standing.lose, connection))
        return Response("200 OK", list(events.HEADERS), self._stream(session, connection))

    def take(self, variables: Mapping[str, Any], principal: Principal | None) -> Response:
        """`POST /messages`. Raises Refusal."""
        if variables["REQUEST_METHOD"] != "POST":
            raise _not_allowed("POST")
        key = parse_qs(variables["QUERY_STRING"]).get(KEY, [""])[0]
        session = self._parts.sessions.find(key, principal)
        if session is None or key not in self._links:
            raise Refusal("404 Not Found", InvalidRequest(f"There is no such session; open one with GET {STREAM}."))
        message, weight_bytes = self._reader.read(variables)
        link = self._links.get(key)
        if link is not None:  # it may have ended while we read
            link.stream.principal = principal  # by the token of this message: that of the stream may be an older one
            link.receive(message, weight_bytes=weight_bytes)
        return accepted()

    def _stream(self, session: HttpSession, connection: Any) -> Iterator[bytes]:
        try:
            yield f"event: endpoint\ndata: {MESSAGES}?{KEY}={session.key}\n\n".encode("ascii")
            with session, ended_with_token(session.principal, partial(session.standing.lose, connection)):
                keep_alive_secs = self._parts.settings.http_keepalive_secs
                yield from session.standing.stream(connection, keep_alive_secs=keep_alive_secs)
        finally:
            link = self._links.pop(session.key)
            link.drop()
            self._parts.server.disconnect(link)
            self._parts.sessions.close(session)


def _not_allowed(method: str) -> Refusal:
    headers = [("Allow", method)]
    return Refusal("405 Method Not Allowed", InvalidRequest(f"This address takes {method}."), headers=headers)
