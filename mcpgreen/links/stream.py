"""Where the frames of some requests go, and which of their ids are in use.

A pipe is one stream for as long as it lasts. Where each request has a stream of its own, equal ids do not meet.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Protocol

from gevent.event import Event

from mcpgreen.links.sink import Answerable, Sink

if TYPE_CHECKING:
    from mcpgreen.links.principal import Principal


class Request(Answerable, Protocol):
    """A call, as far as the stream is concerned on which its answer is to go."""

    sink: Sink
    stream: Stream
    weight_bytes: int

    def cancel(self) -> None: ...


class Stream:
    """`idle` is set while no request is in flight. `transport` is what scripts are told of it; `principal` is who sends
    its requests, if the transport knows. Where there are many clients, those of one `owner` take turns with those of
    others."""

    __slots__ = ("idle", "in_flight", "listens", "owner", "principal", "sink", "transport")

    def __init__(
        self, sink: Sink, *, transport: str, principal: Principal | None = None, owner: Hashable = None
    ) -> None:
        self.sink = sink
        self.transport = transport
        self.principal = principal
        self.owner = owner
        self.in_flight: dict[str | int, Request] = {}
        self.listens: dict[str | int, Request] = {}  # open as well, but nobody waits for their end
        self.idle = Event()
        self.idle.set()

    def is_used(self, request_id: str | int) -> bool:
        return request_id in self.in_flight or request_id in self.listens

    def take(self, call: Request) -> None:
        """From now on the call can be cancelled, and its id is in use."""
        self.in_flight[call.id] = call
        self.idle.clear()

    def forget(self, call: Request) -> None:
        if self.in_flight.get(call.id) is call:
            del self.in_flight[call.id]
        if not self.in_flight:
            self.idle.set()
