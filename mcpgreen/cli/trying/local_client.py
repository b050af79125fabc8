"""A client of a server in the same process."""

from __future__ import annotations

import time
from typing import Any

from gevent.event import Event
from gevent.pool import Group

from mcpgreen.cli.mcp_client import McpClient
from mcpgreen.engine.frames import Frames
from mcpgreen.engine.server import Server
from mcpgreen.links.session import Stream
from mcpgreen.links.sink import Answerable, MemorySink
from mcpgreen.protocol.messages import Line, whole
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

HOUR_SECS = 3600.0


class LocalClient(McpClient):
    """`call_number` is the server's number of the last request that it did not answer at once."""

    def __init__(self, server: Server, *, capabilities: Json | None = None, **options: Any) -> None:
        self.server = server
        self.call_number: int | None = None
        self._link = server.connect(Stream(MemorySink(self._receive), transport="stdio"))
        self._frames = Frames(server.services, self._link)
        self._heard = Event()  # replaced each time
        self._askers = Group()
        super().__init__(self._send, self._wait, capabilities or {}, **options)

    def close(self) -> None:
        """Leave the server, which cancels what is in flight."""
        self._askers.kill(block=False)
        self.server.disconnect(self._link)

    def cancel(self) -> None:
        super().cancel()
        self._wake()

    def _send(self, message: Json) -> None:
        if "frame" in self.server.services.events.wants:
            self._frames.tell_incoming(jsontext.dumps(message), message)
        self._link.receive(message)
        if "method" in message and (call := self._link.stream.in_flight.get(message.get("id", ""))):
            self.call_number = call.number

    def _wait(self, until: float) -> None:
        self._heard.wait(min(max(0.0, until - time.monotonic()), HOUR_SECS))  # no timer is for ever

    def reply(self, question: Json) -> None:
        self._askers.spawn(super().reply, question)

    def _receive(self, line: Line, call: Answerable | None) -> None:
        if "frame" in self.server.services.events.wants:
            self._frames.tell_outgoing(line, call)
        self.take(jsontext.loads(whole(line)))
        self._wake()

    def _wake(self) -> None:
        """Let all that wait look again."""
        heard, self._heard = self._heard, Event()
        heard.set()
