"""POST, GET and DELETE from clients that begin with `initialize`: they send their session's id in every request.

A request of ours goes on the stream of the call that asks. What belongs to no request goes on the stream that a GET
carries; a session has one of these, and a second GET takes the place of the first. A lost connection cancels nothing,
and a client may resume a stream by `Last-Event-ID`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import parse_qs

from mcpgreen.engine.link import Link
from mcpgreen.links.sink import MemorySink
from mcpgreen.protocol import messages, revisions
from mcpgreen.protocol.revisions import Feature, Revision
from mcpgreen.text.json_types import Json
from mcpgreen.transports.http.exchange import Accepts, Parts, Post, Reader, answer_post, stream_of_session
from mcpgreen.transports.http.responses import ACCEPTED, BAD, NOT_ACCEPTABLE, NOT_FOUND, Refusal, not_allowed
from mcpgreen.transports.http.sessions import HttpSession
from mcpgreen.transports.http.streams import events
from mcpgreen.transports.http.streams.outlet import Outlet
from mcpgreen.transports.http.wire.connection import Request, Response

SESSION = "mcp-session-id"
VERSION = "mcp-protocol-version"
LAST_EVENT = "last-event-id"
CHOSEN_ID = re.compile(r"[0-9a-f]{32}")  # 128 bits, as nginx writes its $request_id
LEGACY_STREAM = "/sse"
LEGACY_MESSAGES = "/messages"
LEGACY_KEY = "session_id"


class HandshakeEra:
    """Serves clients that have a session."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def post(self, post: Post) -> Response:
        """Raises Refusal, and ClientGone."""
        message = post.message
        if type(message) is dict and message.get("method") == "initialize" and "id" in message:
            return self._initialize(post)
        session = self._session_of(post.request)
        if type(message) is dict and ("id" not in message or type(message.get("method")) is not str):
            return self._take(session, message)
        return answer_post(self._parts, post, session, key=session.new_key(), is_primed=_is_primed(session))

    def get(self, request: Request, accepts: Accepts) -> Response:
        """Serve the stream of the session, or the rest of a stream that was lost. Raises Refusal."""
        session = self._session_of(request)
        if not accepts.events:
            raise Refusal(NOT_ACCEPTABLE, "The response to a GET is an event stream; Accept must allow it.")
        outlet, after = self._wanted(session, request.fields.get(LAST_EVENT, ""))
        sent = stream_of_session(session, outlet, request, is_primed=_is_primed(session), after=after)
        return Response("200 OK", list(events.HEADERS), sent)

    def delete(self, request: Request) -> Response:
        """Raises Refusal."""
        self._parts.sessions.close(self._session_of(request).key)
        return Response("204 No Content", [], [])

    def _session_of(self, request: Request) -> HttpSession:
        """Find the session of a request, and check that the revision is the session's. Raises Refusal."""
        key = request.fields.get(SESSION)
        if not key:
            reason = (
                "Mcp-Session-Id is missing: send initialize first; or, as a stateless client, the header "
                f"MCP-Protocol-Version: {revisions.STATELESS_NAMES[-1]}."
            )
            raise Refusal(BAD, reason)
        session = self._parts.sessions.find(key, request.principal)
        if session is None:
            raise Refusal(NOT_FOUND, "There is no such session; send initialize for a new one.")
        sent, agreed = request.fields.get(VERSION), _revision_of(session).name
        # A client that does not send the revision, as Gemini CLI, means the one agreed on.
        if sent is not None and sent not in revisions.BY_NAME:
            raise Refusal(BAD, f"MCP-Protocol-Version: this server supports {', '.join(revisions.NEWEST_FIRST)}.")
        if sent is not None and sent != agreed:
            raise Refusal(BAD, f"MCP-Protocol-Version: this session uses {agreed}.")
        return session

    def _initialize(self, post: Post) -> Response:
        request, sessions = post.request, self._parts.sessions
        takes_chosen_id = self._parts.server.services.settings.http_accept_session_ids
        chosen = request.fields.get(SESSION, "") if takes_chosen_id else ""
        key = chosen if CHOSEN_ID.fullmatch(chosen) else None
        session = sessions.open(request.principal, key=key, owner=request.owner)
        response = answer_post(self._parts, post, session)  # a client that loses it has no session to come back with
        if session.session.handshake.view is None:
            sessions.close(session.key)  # initialize was refused
            return response
        return response._replace(headers=[*response.headers, ("Mcp-Session-Id", session.key)])

    def _take(self, session: HttpSession, message: Json) -> Response:
        """Take a message that is not answered: a notification, or an answer to us. Raises Refusal for anything else."""
        method, request_id = message.get("method"), messages.normal_id(message.get("id"))
        if method is not None and (type(method) is not str or message.get("jsonrpc") != "2.0"):
            raise Refusal(BAD, 'jsonrpc must be "2.0" and method a string.', id=request_id)
        said = MemorySink()
        link = self._parts.sessions.connect(session, said)
        with session:
            link.receive(message)
        self._parts.server.disconnect(link)
        if said.responses:
            raise Refusal(BAD, said.responses[0]["error"]["message"], id=request_id)
        return ACCEPTED

    def _wanted(self, session: HttpSession, last_event: str) -> tuple[Outlet, int | None]:
        """Find the stream that a GET wants, and the event after which it goes on. Raises Refusal.

        A client whose call was cancelled sees its stream end without an answer, and comes back for it. If it got a
        stream that ends at once, it would come back for ever; if it got the stream of the session, it would push out
        its own GET.
        """
        named = events.named(last_event)
        if named is None:
            return session.standing, None
        key, number = named
        outlet = session.outlet(key)
        if outlet is None or not (key == events.STANDING_KEY or outlet.can_resume_after(number)):
            raise not_allowed("POST, DELETE", "The stream that Last-Event-ID names cannot be resumed.")
        return outlet, number


def _revision_of(session: HttpSession) -> Revision:
    view = session.session.handshake.view
    return revisions.LATEST_HANDSHAKE if view is None else view.revision


def _is_primed(session: HttpSession) -> bool:
    return Feature.PRIMED_STREAMS in _revision_of(session).features


class LegacySse:
    """Serves the older pair of paths, for clients of the first revision: `/sse` is a stream, `/messages` takes what
    they send. Everything that the server says goes on the stream, answers too, and the session ends with it. Only
    served if a setting asks for it: `/mcp` can do all that this transport can, and more."""

    def __init__(self, parts: Parts, reader: Reader) -> None:
        self._parts = parts
        self._reader = reader
        self._links: dict[str, Link] = {}  # of the sessions that were opened here

    def open(self, request: Request) -> Response:
        """`GET /sse`. Raises Refusal."""
        if request.method != "GET":
            raise not_allowed("GET", "This path only accepts GET.")
        sessions = self._parts.sessions
        session = sessions.open(request.principal, owner=request.owner)
        self._links[session.key] = sessions.connect(session, session.standing)
        sent = stream_of_session(session, session.standing, request)
        return Response("200 OK", list(events.HEADERS), self._streamed(session, sent))

    def take(self, request: Request) -> Response:
        """`POST /messages`. Raises Refusal."""
        if request.method != "POST":
            raise not_allowed("POST", "This path only accepts POST.")
        key = parse_qs(request.query).get(LEGACY_KEY, [""])[0]
        session = self._parts.sessions.find(key, request.principal)
        if session is None or key not in self._links:
            raise Refusal(NOT_FOUND, f"There is no such session; open one with GET {LEGACY_STREAM}.")
        message, weight_bytes = self._reader.read(request)
        link = self._links.get(key)
        if link is not None:  # the session may have ended while we read
            link.stream.principal = request.principal  # this token counts: that of the stream may be older
            link.receive(message, weight_bytes=weight_bytes)
        return ACCEPTED

    def _streamed(self, session: HttpSession, sent: Iterator[bytes]) -> Iterator[bytes]:
        try:
            yield f"event: endpoint\ndata: {LEGACY_MESSAGES}?{LEGACY_KEY}={session.key}\n\n".encode("ascii")
            yield from sent
        finally:
            link = self._links.pop(session.key)
            link.drop()
            self._parts.server.disconnect(link)
            self._parts.sessions.close(session.key)
