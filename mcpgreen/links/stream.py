"""A stream: where the frames of its requests go, and which of their ids are in use.

A pipe is one stream. Over HTTP each request has a stream of its own, so equal ids do not meet.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Protocol

from gevent.event import Event

from mcpgreen.links.sink import Answerable, Sink

if TYPE_CHECKING:
    from mcpgreen.links.principal import Principal


class Request(Answerable, Protocol):
    """A call, as the stream of its answer knows it."""

    sink: Sink
    stream: Stream
    weight_bytes: int

    def cancel(self) -> None: ...


class Stream:
    """`idle` is set while no request is in flight. `transport` is the name that scripts see; `principal` is the caller,
    if the transport knows it. Calls of one `owner` take turns with the calls of other owners."""

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
