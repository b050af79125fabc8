"""The sessions of clients that begin with `initialize`: found by their ids, limited in number, ended when idle.

A session belongs to the caller that opened it. For any other caller it does not exist.
"""

from __future__ import annotations

import os
import time
from collections.abc import Hashable
from itertools import count, islice
from typing import TYPE_CHECKING

import gevent

from mcpgreen import journal
from mcpgreen.engine.link import Link
from mcpgreen.engine.server import Server
from mcpgreen.links.session import Session, Stream
from mcpgreen.links.sink import Sink
from mcpgreen.running.shares import Shares, Turns
from mcpgreen.settings.settings import Settings
from mcpgreen.text import jsontext
from mcpgreen.transports.http.responses import unavailable
from mcpgreen.transports.http.streams.events import STANDING_KEY
from mcpgreen.transports.http.streams.outlet import Outlet, Outlets

if TYPE_CHECKING:
    from mcpgreen.links.principal import Principal
    from mcpgreen.protocol.token import RemoteToken

TRANSPORT = "http"  # the name that scripts see
ID_BYTES = 16
MAX_SESSIONS_PER_PRINCIPAL = 500
MAX_OUTLETS = 32  # streams whose events are kept for a client that comes back
LOOKS_PER_IDLE_TIME = 20
LONGEST_PAUSE_SECS = 60.0
RETRY_SECS = 60  # for a client that gets no session
SHORTEST_PAUSE_SECS = 1.0  # between two searches for idle sessions, however many clients want a place


class HttpSession:
    """One session, with the id `key`. Frames that belong to no request go to `standing`."""

    def __init__(self, key: str, standing: Outlet, principal: Principal | None, owner: Hashable = None) -> None:
        self.key = key
        self.standing = standing
        self.principal = principal
        self.owner = owner
        self.session: Session  # as the engine knows it; set right after, because it needs `standing`
        self.used_at = time.monotonic()
        self.in_use = 0  # requests that are being served, and streams that are open
        self._outlets: dict[int, Outlet] = {STANDING_KEY: standing}
        self.new_key = count(STANDING_KEY + 1).__next__

    def __enter__(self) -> None:
        self.in_use += 1

    def __exit__(self, *_: object) -> None:
        self.in_use -= 1
        self.used_at = time.monotonic()

    def keep(self, key: int, outlet: Outlet) -> None:
        """Keep a stream that the client may resume. Beyond the limit, the oldest ones that are over are forgotten."""
        self._outlets[key] = outlet
        too_many = len(self._outlets) - MAX_OUTLETS
        if too_many > 0:
            over = (each for each, kept in self._outlets.items() if kept.is_over and kept.is_lost)
            for each in list(islice(over, too_many)):
                self._outlets.pop(each).forget()

    def outlet(self, key: int) -> Outlet | None:
        return self._outlets.get(key)

    def forget_outlets(self) -> None:
        for outlet in self._outlets.values():
            outlet.end()
            outlet.forget()
        self._outlets.clear()


class HttpSessions:
    """All sessions of one server. `token` is what each message has to carry, if one is set."""

    def __init__(
        self, server: Server, settings: Settings, outlets: Outlets, *, token: RemoteToken | None = None
    ) -> None:
        self._server = server
        self._token = token
        self._outlets = outlets
        self._places = Shares(settings.http_max_sessions)
        self._idle_secs: float = settings.http_session_idle_secs
        self._sessions: dict[str, HttpSession] = {}
        self._looked_at = 0.0  # for idle ones
        self._sweeping: gevent.Greenlet | None = None

    def __len__(self) -> int:
        return len(self._sessions)

    def open(self, principal: Principal | None, *, key: str | None = None, owner: Hashable = None) -> HttpSession:
        """Open a session, before its `initialize`. `key` is its id, if a proxy that we trust has chosen one. Raises
        Refusal if there are as many as there may be."""
        places = self._places
        if not places.has_room(owner) and time.monotonic() - self._looked_at > SHORTEST_PAUSE_SECS:
            self._end_idle()
        held = places.held_by(owner)
        is_at_limit = principal is not None and held >= MAX_SESSIONS_PER_PRINCIPAL
        if is_at_limit or not places.has_room(owner):
            reason = f"You have {held} sessions already; end one with DELETE."
            if not places.has_room(None):
                reason = f"There are {places.size} sessions already; end one with DELETE, or try again later."
            raise unavailable(reason, retry_secs=RETRY_SECS)
        if key is None or key in self._sessions:
            key = os.urandom(ID_BYTES).hex()
        standing = self._outlets.new(key=STANDING_KEY, owner=owner)
        opened = HttpSession(key, standing, principal, owner)
        opened.session = Session(
            standing,
            self._server.services.settings,
            self._server.services.roots,
            needs_token=self._token is not None,
            principal=principal,
            waits_for_initialized=False,  # some gateways drop that notification, and a request may overtake it
        )
        opened.session.task_owner = f"session:{jsontext.digest(key)}"
        self._server.add_session(opened.session)
        # In a greenlet: a callback of the hub cannot wait, and ending many subscriptions takes pauses. By the key: with
        # the session itself, it would be part of a reference cycle, and stay in memory until the next full collection.
        opened.session.ended.rawlink(lambda _: gevent.spawn(self.close, key))
        self._sessions[key] = opened
        places.take(owner)
        if self._sweeping is None:
            self._sweeping = gevent.spawn(self._sweep)
        return opened

    def connect(self, session: HttpSession, sink: Sink) -> Link:
        """Another stream of a session, which counts for the share of its owner."""
        stream = Stream(sink, transport=TRANSPORT, principal=session.principal, owner=session.owner)
        return self._server.connect(stream, session.session, token=self._token)

    def connect_stateless(self, sink: Sink, principal: Principal | None, owner: Hashable) -> Link:
        """Return a stream without a session."""
        stream = Stream(sink, transport=TRANSPORT, principal=principal, owner=owner)
        return self._server.connect_stateless(stream, self._token)

    def find(self, key: str, principal: Principal | None) -> HttpSession | None:
        """Find the session of this caller. If the caller has a new token, it counts from now on."""
        found = self._sessions.get(key)
        if found is None or found.principal != principal:
            return None
        found.principal = principal
        return found

    def close(self, key: str) -> None:
        """Stop what runs for the session with this id, and end its streams. May be called twice."""
        ended = self._sessions.pop(key, None)
        if ended is None:
            return
        self._places.give_back(ended.owner)
        self._server.end_session(ended.session)
        ended.forget_outlets()

    def stop(self) -> None:
        if self._sweeping is not None:
            self._sweeping.kill()
            self._sweeping = None
        for key in list(self._sessions):
            self.close(key)

    def _sweep(self) -> None:
        """End idle sessions from time to time, as long as there are sessions."""
        while self._sessions:
            gevent.sleep(min(LONGEST_PAUSE_SECS, self._idle_secs / LOOKS_PER_IDLE_TIME))
            self._end_idle()
        self._sweeping = None

    def _end_idle(self) -> None:
        self._looked_at = time.monotonic()
        idle_since = self._looked_at - self._idle_secs
        turns = Turns()
        for each in list(self._sessions.values()):
            turns.pause()
            if not each.in_use and each.used_at <= idle_since:
                journal.info("ended a session that was idle for %g s", self._idle_secs)
                self.close(each.key)
