"""The sessions of handshake clients over HTTP: by their ids, bounded in number, ended when nobody uses them.

A session belongs to whoever opened it. To anybody else it does not exist.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

import gevent

from mcpgreen import journal
from mcpgreen.engine.server import Server
from mcpgreen.links.session import Session
from mcpgreen.running.turns import Turns
from mcpgreen.settings.settings import Settings
from mcpgreen.transports.http.streams.events import STANDING_KEY
from mcpgreen.transports.http.streams.outlet import Outlet, Outlets

if TYPE_CHECKING:
    from mcpgreen.links.principal import Principal

ID_BYTES = 16
MAX_OUTLETS = 32  # streams whose events are kept for a client that comes back
LOOKS_PER_IDLE_TIME = 20
LONGEST_PAUSE_SECS = 60.0
SHORTEST_PAUSE_SECS = 1.0  # however many would have the place of an idle one


class NoRoom(Exception):
    """There are as many sessions as there may be. What it says is for the client."""


class HttpSession:
    """What a client gets an id for. `standing` is for what belongs to no request."""

    def __init__(self, key: str, standing: Outlet, principal: Principal | None) -> None:
        self.key = key
        self.standing = standing
        self.principal = principal
        self.session: Session  # as the engine knows it; set right after, because it needs `standing`
        self.used_at = time.monotonic()
        self.in_use = 0  # requests that are being served, and streams that are open
        self._outlets: dict[int, Outlet] = {STANDING_KEY: standing}
        self._last_key = STANDING_KEY

    def __enter__(self) -> None:
        self.in_use += 1

    def __exit__(self, *_: Any) -> None:
        self.in_use -= 1
        self.used_at = time.monotonic()

    def new_key(self) -> int:
        self._last_key += 1
        return self._last_key

    def keep(self, key: int, outlet: Outlet) -> None:
        """Its client may come back for the rest of it."""
        self._outlets[key] = outlet
        too_many = len(self._outlets) - MAX_OUTLETS
        if too_many > 0:
            for each in list(islice((each for each, kept in self._outlets.items() if kept.is_left), too_many)):
                self._outlets.pop(each).forget()

    def drop(self, key: int) -> None:
        """Its client cannot come back for it."""
        self._outlets.pop(key, None)

    def outlet(self, key: int) -> Outlet | None:
        return self._outlets.get(key)

    def forget_outlets(self) -> None:
        for outlet in self._outlets.values():
            outlet.end()
            outlet.forget()
        self._outlets.clear()


class HttpSessions:
    """All of one server. `has_strangers`: others than its client may write to a session."""

    def __init__(self, server: Server, settings: Settings, outlets: Outlets, *, has_strangers: bool = False) -> None:
        self._server = server
        self._has_strangers = has_strangers
        self._outlets = outlets
        self._max_sessions: int = settings.http_max_sessions
        self._max_of_one: int = settings.http_max_sessions_per_principal
        self._idle_secs: float = settings.http_session_idle_secs
        self._sessions: dict[str, HttpSession] = {}
        self._count_of: dict[str | None, int] = {}
        self._looked_at = 0.0  # for idle ones
        self._sweeping: Any = None

    def __len__(self) -> int:
        return len(self._sessions)

    def __iter__(self) -> Iterator[HttpSession]:
        return iter(list(self._sessions.values()))

    def open(self, principal: Principal | None, *, key: str | None = None) -> HttpSession:
        """A new one, before its handshake. `key`: its id, if somebody whom we trust has chosen one. Raises NoRoom."""
        name = None if principal is None else principal.name
        if len(self._sessions) >= self._max_sessions and time.monotonic() - self._looked_at > SHORTEST_PAUSE_SECS:
            self._end_idle()
        if len(self._sessions) >= self._max_sessions:
            raise NoRoom(f"There are {self._max_sessions} sessions already; end one with DELETE, or try again later.")
        if principal is not None and self._count_of.get(name, 0) >= self._max_of_one:
            raise NoRoom(f"You have {self._max_of_one} sessions already; end one with DELETE.")
        if key is None or key in self._sessions:
            key = os.urandom(ID_BYTES).hex()
        standing = self._outlets.new(key=STANDING_KEY, is_for_session=True)
        opened = HttpSession(key, standing, principal)
        opened.session = self._server.open_session(standing, has_strangers=self._has_strangers, principal=principal)
        # In a greenlet: what the hub calls cannot wait, and to end many subscriptions takes pauses.
        opened.session.ended.rawlink(lambda _: gevent.spawn(self.close, opened))
        self._sessions[key] = opened
        self._count_of[name] = self._count_of.get(name, 0) + 1
        if self._sweeping is None:
            self._sweeping = gevent.spawn(self._sweep)
        return opened

    def find(self, key: str, principal: Principal | None) -> HttpSession | None:
        """That of this caller, who may have another token than before: what that one allows counts from now on."""
        found = self._sessions.get(key)
        if found is None or found.principal != principal:
            return None
        found.principal = principal
        return found

    def close(self, ended: HttpSession) -> None:
        """What it has running is stopped, its streams end. May be called twice."""
        if self._sessions.pop(ended.key, None) is None:
            return
        name = None if ended.principal is None else ended.principal.name
        self._count_of[name] -= 1
        if not self._count_of[name]:
            del self._count_of[name]
        self._server.end_session(ended.session)
        ended.forget_outlets()

    def stop(self) -> None:
        if self._sweeping is not None:
            self._sweeping.kill()
            self._sweeping = None
        for each in self:
            self.close(each)

    def _sweep(self) -> None:
        """As long as there are any: end those that nobody has used for long."""
        while self._sessions:
            gevent.sleep(min(LONGEST_PAUSE_SECS, self._idle_secs / LOOKS_PER_IDLE_TIME))
            self._end_idle()
        self._sweeping = None

    def _end_idle(self) -> None:
        self._looked_at = time.monotonic()
        idle_since = self._looked_at - self._idle_secs
        turns = Turns()
        for each in self:
            turns.pause()
            if not each.in_use and each.used_at <= idle_since:
                journal.info("a session has been idle for %g s; it is ended", self._idle_secs)
                self.close(each)
