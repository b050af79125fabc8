"""Sessions and streams.

A session is what the client and the server have agreed on: the result of `initialize`, the log level, roots, our
requests. A stream is where the frames of its requests go, and which of their ids are in use. A session may have several
streams, one after the other or at the same time. Stateless requests have a stream and no session.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Protocol

import gevent
from gevent.event import AsyncResult, Event

from mcpgreen.journal import LEVELS
from mcpgreen.links.requests import OutgoingRequests
from mcpgreen.links.roots import SessionRoots
from mcpgreen.links.sink import Answerable, Sink
from mcpgreen.project.roots import Roots
from mcpgreen.protocol import messages
from mcpgreen.protocol.admission import ClientView, Handshake
from mcpgreen.settings.settings import Settings
from mcpgreen.text.json_types import Json

if TYPE_CHECKING:
    from mcpgreen.links.principal import Principal


class Request(Answerable, Protocol):
    """A call, as the stream of its answer knows it."""

    sink: Sink
    stream: Stream
    weight_bytes: int

    def cancel(self) -> None: ...


class Stream:
    """A pipe is one stream. Over HTTP each request has a stream of its own, so equal ids do not meet. `idle` is set
    while no request is in flight. `transport` is the name that scripts see; `principal` is the caller, if the transport
    knows it. Calls of one `owner` take turns with the calls of other owners."""

    __slots__ = ("idle", "in_flight", "listens", "owner", "principal", "sink", "transport")

    def __init__(
        self, sink: Sink, *, transport: str, principal: Principal | None = None, owner: Hashable = None
    ) -> None:
        self.sink = sink
        self.transport = transport
        self.principal = principal
        self.owner = owner
        self.in_flight: dict[str | int, Request] = {}
        self.listens: dict[str | int, Request] = {}  # open subscriptions, which end with the client
        self.idle = Event()
        self.idle.set()

    def is_used(self, request_id: str | int) -> bool:
        return request_id in self.in_flight or request_id in self.listens

    def take(self, call: Request) -> None:
        """Register a call: from now on it can be cancelled, and its id is in use."""
        self.in_flight[call.id] = call
        self.idle.clear()

    def forget(self, call: Request) -> None:
        if self.in_flight.get(call.id) is call:
            del self.in_flight[call.id]
        if not self.in_flight:
            self.idle.set()


class Session:
    """Frames that belong to no request go to `sink`. `ended` is set to the reason when the session should end.
    `needs_token`: messages have to carry a token, because others than the client may write to us. Only the `principal`
    that opened the session may use it. `waits_for_initialized`: requests are refused before
    `notifications/initialized`; otherwise the first request counts as that notification."""

    def __init__(
        self,
        sink: Sink,
        settings: Settings,
        configured: Roots,
        *,
        handshake: Handshake | None = None,
        needs_token: bool = False,
        principal: Principal | None = None,
        waits_for_initialized: bool = True,
    ) -> None:
        self.sink = sink
        self.waits_for_initialized = waits_for_initialized
        self.principal = principal
        self.handshake = handshake or Handshake()
        self.requests = OutgoingRequests(needs_token=needs_token)
        self.roots = SessionRoots(configured, self.requests, sink, settings, needs_token=needs_token)
        self.streams: set[Stream] = set()
        self.ended: AsyncResult = AsyncResult()
        self._shutdown_secs: float = settings.shutdown_timeout
        self._shutdown_timer: gevent.Greenlet | None = None

    def __repr__(self) -> str:
        view = self.handshake.view
        return f"<Session {view.revision.name if view else 'without a handshake'}, {len(self.streams)} streams>"

    def become_ready(self, *, needs_roots: bool) -> None:
        """Handle `notifications/initialized`."""
        view = self.handshake.view
        if view is None or self.handshake.is_ready:
            return
        self.handshake.is_ready = True
        if needs_roots and type(view.capabilities.get("roots")) is dict:
            self.roots.begin()

    def begin_shutdown(self) -> None:
        """Handle `shutdown`: the client has a few seconds to send `exit`."""
        self.handshake.is_shutting_down = True
        if self._shutdown_timer is None:
            self._shutdown_timer = gevent.spawn_later(self._shutdown_secs, self.end, "shutdown timeout")

    def end(self, reason: str) -> None:
        self.requests.close()  # the client is going, and will answer nothing any more
        if not self.ended.ready():
            self.ended.set(reason)

    def close(self) -> None:
        if self._shutdown_timer is not None:
            self._shutdown_timer.kill(block=False)
        self.requests.close()
        self.roots.close()

    def log(self, level: str, logger: str, text: str) -> None:
        """Send a log message of the server itself, if the client wants this level."""
        view = self.handshake.view
        if self.handshake.is_ready and view is not None and wants_level(view, level):
            self.sink.notify(messages.notification("notifications/message", log_params(level, logger, text)))


def wants_level(view: ClientView, level: str) -> bool:
    return view.log_level is not None and LEVELS.index(level) >= LEVELS.index(view.log_level)


def log_params(level: str, logger: str | None, data: object) -> Json:
    params: Json = {"level": level, "data": data}
    if logger:
        params["logger"] = logger
    return params
