"""POST, GET and DELETE of clients that begin with a handshake: they have a session, and say its id in every request.

What we ask a client goes on the stream of the call that asks. What belongs to no request goes on the stream that a GET
carries, of which a session has one: a second GET takes its place. A connection that is lost cancels nothing, and a
client may come back for the rest of a stream by `Last-Event-ID`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, Any

from mcpgreen.errors import InternalError, InvalidRequest
from mcpgreen.links.memory import MemorySink
from mcpgreen.protocol import messages, revisions
from mcpgreen.protocol.revisions import Feature, Revision
from mcpgreen.transports.http.eras.exchange import Accepts, Exchange, StatusOf
from mcpgreen.transports.http.eras.expiry import ended_with_token
from mcpgreen.transports.http.eras.statuses import Statuses
from mcpgreen.transports.http.parts import Parts
from mcpgreen.transports.http.responses import Refusal, Response, accepted
from mcpgreen.transports.http.sessions import HttpSession, NoRoom
from mcpgreen.transports.http.streams import events
from mcpgreen.transports.http.streams.outlet import Outlet
from mcpgreen.transports.http.wire.connection import CONNECTION

if TYPE_CHECKING:
    from mcpgreen.links.principal import Principal

SESSION = "HTTP_MCP_SESSION_ID"
VERSION = "HTTP_MCP_PROTOCOL_VERSION"
LAST_EVENT = "HTTP_LAST_EVENT_ID"
CHOSEN_ID = re.compile(r"[0-9a-f]{32}")  # 128 bits, as nginx writes its $request_id


class HandshakeEra:
    """Serves them."""

    def __init__(self, parts: Parts, statuses: Statuses) -> None:
        self._parts = parts
        self._statuses = statuses

    def post(
        self,
        message: Any,
        variables: Mapping[str, Any],
        *,
        accepts: Accepts,
        principal: Principal | None,
        weight_bytes: int,
    ) -> Response:
        """Raises Refusal, and ClientGone."""
        if _is_initialize(message):
            return self._initialize(message, variables, accepts, principal, weight_bytes)
        session = self.session_of(variables, principal)
        self._require_version(session, variables)
        if type(message) is dict and ("id" not in message or type(message.get("method")) is not str):
            return self._take(session, message)
        is_primed = self._is_primed(session)
        return self._respond(session, message, variables, accepts=accepts, weight=weight_bytes, is_primed=is_primed)

    def get(self, variables: Mapping[str, Any], *, accepts: Accepts, principal: Principal | None) -> Response:
        """The session's own stream, or the rest of one that was lost. Raises Refusal."""
        session = self.session_of(variables, principal)
        self._require_version(session, variables)
        if not accepts.events:
            raise Refusal("406 Not Acceptable", InvalidRequest("A GET is answered by a stream of events."))
        outlet, after = self._wanted(session, variables.get(LAST_EVENT, ""))
        connection = variables[CONNECTION]
        outlet.carried_by(connection, after=after)
        connection.on_hangup(partial(outlet.lose, connection))
        stream = outlet.stream(
            connection,
            keep_alive_secs=self._parts.settings.http_keepalive_secs,
            is_primed=self._is_primed(session),
        )
        end = ended_with_token(principal, partial(outlet.lose, connection))
        return Response("200 OK", list(events.HEADERS), _in_use(session, stream, end))

    def delete(self, variables: Mapping[str, Any], *, principal: Principal | None) -> Response:
        """Raises Refusal."""
        session = self.session_of(variables, principal)
        self._require_version(session, variables)
        self._parts.sessions.close(session)
        return Response("204 No Content", [], [])

    def session_of(self, variables: Mapping[str, Any], principal: Principal | None) -> HttpSession:
        """Raises Refusal."""
        key = variables.get(SESSION)
        if not key:
            reason = (
                "Mcp-Session-Id is missing: send initialize first; or, as a stateless client, the header "
                f"MCP-Protocol-Version: {revisions.STATELESS_NAMES[-1]}."
            )
            raise Refusal("400 Bad Request", InvalidRequest(reason))
        session = self._parts.sessions.find(key, principal)
        if session is None:
            raise Refusal("404 Not Found", InvalidRequest("There is no such session; send initialize for a new one."))
        return session

    def _initialize(
        self, message: Any, variables: Mapping[str, Any], accepts: Accepts, principal: Principal | None, weight: int
    ) -> Response:
        chosen = variables.get(SESSION, "") if self._parts.settings.http_accept_session_ids else ""
        key = chosen if CHOSEN_ID.fullmatch(chosen) else None
        try:
            session = self._parts.sessions.open(principal, key=key)
        except NoRoom as error:
            retry = [("Retry-After", "60")]
            raise Refusal("503 Service Unavailable", InternalError(str(error)), headers=retry) from error
        # Whoever loses this answer has no id to come back with.
        response = self._respond(
            session, message, variables, accepts=accepts, weight=weight, is_primed=False, is_kept=False
        )
        if session.session.handshake.view is None:
            self._parts.sessions.close(session)  # it was refused
            return response
        return response._replace(headers=[*response.headers, ("Mcp-Session-Id", session.key)])

    def _respond(
        self,
        session: HttpSession,
        message: Any,
        variables: Mapping[str, Any],
        *,
        accepts: Accepts,
        weight: int,
        is_primed: bool,
        is_kept: bool = True,
    ) -> Response:
        """`is_kept`: for a client that may come back for the rest of it."""
        parts, key = self._parts, session.new_key() if is_kept else None
        outlet = parts.outlets.new(key=key, takes_events=accepts.events)
        if key is not None:
            session.keep(key, outlet)
        exchange = Exchange(
            parts.server,
            parts.connect(outlet, session),
            outlet,
            accepts=accepts,
            keep_alive_secs=parts.settings.http_keepalive_secs,
            is_dropped_with_client=False,
            use=session,
        )
        status_of = self._status_of(message)
        response = exchange.respond(message, variables, weight_bytes=weight, status_of=status_of, is_primed=is_primed)
        if key is not None and isinstance(response.body, list):
            session.drop(key)  # what is no stream has no event to go on from
        return response

    def _status_of(self, message: Any) -> StatusOf:
        request_id = messages.normal_id(message.get("id")) if type(message) is dict else None
        return lambda line: self._statuses.of_handshake(line, request_id)

    def _take(self, session: HttpSession, message: Any) -> Response:
        """What is not answered: a notification, or an answer to us. Something that is neither is told so."""
        heard = MemorySink()
        link = self._parts.connect(heard, session)
        with session:
            link.receive(message)
        self._parts.server.disconnect(link)
        if heard.responses:
            error = InvalidRequest(heard.responses[0]["error"]["message"])
            raise Refusal("400 Bad Request", error, id=messages.normal_id(message.get("id")))
        return accepted()

    def _wanted(self, session: HttpSession, last_event: str) -> tuple[Outlet, int | None]:
        """Which stream a GET goes on with, and after which event. Raises Refusal.

        A client whose call was cancelled sees its stream end without an answer, and comes back for it. With a stream
        that ends at once it would do so for ever, and with that of the session it would push its own GET out.
        """
        named = events.named(last_event)
        if named is None:
            return session.standing, None
        key, number = named
        outlet = session.outlet(key)
        if outlet is None or not (key == events.STANDING_KEY or (outlet.has_begun and outlet.has_more_than(number))):
            reason = "Nothing more will come on the stream that Last-Event-ID names."
            raise Refusal("405 Method Not Allowed", InvalidRequest(reason), headers=[("Allow", "POST, DELETE")])
        return outlet, number

    def _require_version(self, session: HttpSession, variables: Mapping[str, Any]) -> None:
        revision, sent = self._revision_of(session), variables.get(VERSION)
        if sent is None:
            if revision.has(Feature.VERSION_HEADER):
                raise _bad_version(f"MCP-Protocol-Version is missing; this session has agreed on {revision.name}.")
        elif sent not in revisions.BY_NAME:
            raise _bad_version(f"MCP-Protocol-Version: this server knows {', '.join(revisions.NEWEST_FIRST)}.")
        elif sent != revision.name:
            raise _bad_version(f"MCP-Protocol-Version: this session has agreed on {revision.name}.")

    def _revision_of(self, session: HttpSession) -> Revision:
        view = session.session.handshake.view
        return revisions.LATEST_HANDSHAKE if view is None else view.revision

    def _is_primed(self, session: HttpSession) -> bool:
        return self._revision_of(session).has(Feature.PRIMED_STREAMS)


def _is_initialize(message: Any) -> bool:
    return type(message) is dict and message.get("method") == "initialize" and "id" in message


def _bad_version(reason: str) -> Refusal:
    return Refusal("400 Bad Request", InvalidRequest(reason))


def _in_use(session: HttpSession, stream: Iterator[bytes], end: AbstractContextManager[None]) -> Iterator[bytes]:
    with session, end:
        yield from stream
