"""What a client and we have agreed on, for as long as it holds: handshake, log level, roots, what it is being asked.

A session may have several streams, one after the other or side by side. Stateless requests have none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gevent
from gevent.event import AsyncResult

from mcpgreen.journal import LEVELS
from mcpgreen.links.requests import OutgoingRequests
from mcpgreen.links.roots import SessionRoots
from mcpgreen.links.sink import Sink
from mcpgreen.links.stream import Stream
from mcpgreen.project.roots import Roots
from mcpgreen.protocol import messages
from mcpgreen.protocol.admission import ClientView, Handshake
from mcpgreen.settings.settings import Settings

if TYPE_CHECKING:
    from mcpgreen.links.principal import Principal


class Session:
    """`sink` is for what belongs to no request. `ended` is set, with the reason, when the client or a timer wants it to
    end. `has_strangers`: others than the client may write to us. It belongs to the `principal` that opened it, and
    nobody else may use it."""

    def __init__(
        self,
        sink: Sink,
        settings: Settings,
        configured: Roots,
        *,
        handshake: Handshake | None = None,
        has_strangers: bool = False,
        principal: Principal | None = None,
    ) -> None:
        self.sink = sink
        self.principal = principal
        self.handshake = handshake or Handshake()
        self.requests = OutgoingRequests(has_strangers=has_strangers)
        self.roots = SessionRoots(configured, self.requests, sink, settings, has_strangers=has_strangers)
        self.streams: set[Stream] = set()
        self.ended: AsyncResult = AsyncResult()
        self._shutdown_secs: float = settings.shutdown_timeout
        self._shutdown_timer: Any = None

    def __repr__(self) -> str:
        view = self.handshake.view
        return f"<Session {view.revision.name if view else 'without a handshake'}, {len(self.streams)} streams>"

    def become_ready(self, *, needs_roots: bool) -> None:
        """`notifications/initialized`."""
        view = self.handshake.view
        if view is None or self.handshake.is_ready:
            return
        self.handshake.is_ready = True
        if needs_roots and type(view.capabilities.get("roots")) is dict:
            self.roots.begin()

    def begin_shutdown(self) -> None:
        """`shutdown`: the client has a few seconds to say `exit`."""
        self.handshake.is_shutting_down = True
        if self._shutdown_timer is None:
            self._shutdown_timer = gevent.spawn_later(self._shutdown_secs, self.end, "shutdown timeout")

    def end(self, reason: str) -> None:
        self.requests.close()  # the client is going: who waits for its answers need not
        if not self.ended.ready():
            self.ended.set(reason)

    def close(self) -> None:
        if self._shutdown_timer is not None:
            self._shutdown_timer.kill(block=False)
        self.requests.close()
        self.roots.close()

    def log(self, level: str, logger: str, text: str) -> None:
        """A message of the server itself, for a client that wants this level."""
        view = self.handshake.view
        if self.handshake.is_ready and view is not None and wants_level(view, level):
            self.sink.notify(messages.notification("notifications/message", log_params(level, logger, text)))


def wants_level(view: ClientView, level: str) -> bool:
    return view.log_level is not None and LEVELS.index(level) >= LEVELS.index(view.log_level)


def log_params(level: str, logger: str | None, data: Any) -> dict[str, Any]:
    params: dict[str, Any] = {"level": level, "data": data}
    if logger:
        params["logger"] = logger
    return params
