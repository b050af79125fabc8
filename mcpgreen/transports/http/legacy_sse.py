"""The older pair of paths, for clients of the first revision: `/sse` is a stream, `/messages` takes what they send.

Everything that the server says goes on the stream, answers too, and the session ends with it. Only served if a setting
asks for it: `/mcp` can do all that this transport can, and more.
"""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import parse_qs

from mcpgreen.engine.link import Link
from mcpgreen.transports.http.exchange import Parts, stream_of_session
from mcpgreen.transports.http.incoming import Reader
from mcpgreen.transports.http.responses import NOT_FOUND, Refusal, accepted, not_allowed
from mcpgreen.transports.http.sessions import HttpSession
from mcpgreen.transports.http.streams import events
from mcpgreen.transports.http.wire.connection import Request, Response

STREAM = "/sse"
MESSAGES = "/messages"
KEY = "session_id"


class LegacySse:
    """Serves both paths."""

    def __init__(self, parts: Parts, reader: Reader) -> None:
        self._parts = parts
        self._reader = reader
        self._links: dict[str, Link] = {}  # of the sessions that were opened here

    def open(self, request: Request) -> Response:
        """`GET /sse`. Raises Refusal."""
        if request.method != "GET":
            raise not_allowed("GET", "This path takes GET.")
        sessions = self._parts.sessions
        session = sessions.open(request.principal, owner=request.owner)
        self._links[session.key] = sessions.connect(session, session.standing)
        sent = stream_of_session(session, session.standing, request)
        return Response("200 OK", list(events.HEADERS), self._streamed(session, sent))

    def take(self, request: Request) -> Response:
        """`POST /messages`. Raises Refusal."""
        if request.method != "POST":
            raise not_allowed("POST", "This path takes POST.")
        key = parse_qs(request.query).get(KEY, [""])[0]
        session = self._parts.sessions.find(key, request.principal)
        if session is None or key not in self._links:
            raise Refusal(NOT_FOUND, f"There is no such session; open one with GET {STREAM}.")
        message, weight_bytes = self._reader.read(request)
        link = self._links.get(key)
        if link is not None:  # the session may have ended while we read
            link.stream.principal = request.principal  # this token counts: that of the stream may be older
            link.receive(message, weight_bytes=weight_bytes)
        return accepted()

    def _streamed(self, session: HttpSession, sent: Iterator[bytes]) -> Iterator[bytes]:
        try:
            yield f"event: endpoint\ndata: {MESSAGES}?{KEY}={session.key}\n\n".encode("ascii")
            yield from sent
        finally:
            link = self._links.pop(session.key)
            link.drop()
            self._parts.server.disconnect(link)
            self._parts.sessions.close(session)
