"""Tell of each frame: its direction, its size, the process behind it, its content. At the level debug, the log has a
line for each.

Secrets in a frame are not shown (`features.confidential`), nor is a frame that is too long to be searched for them.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

from mcpgreen import journal
from mcpgreen.engine.link import Link
from mcpgreen.events.stream import Event
from mcpgreen.features.call import Call
from mcpgreen.features.services import Services
from mcpgreen.links.sink import Answerable
from mcpgreen.protocol import messages
from mcpgreen.protocol.messages import Line, size_of, whole
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

MAX_READ_BYTES = 1 << 18  # of a frame
ARROWS = {"in": "-->", "out": "<--"}


class Frames:
    """The frames of one transport; those of a single client if it has a `link`."""

    def __init__(self, services: Services, link: Link | None = None) -> None:
        self._services = services
        self._link = link

    def follow(self, outlet: Any, reader: Any) -> None:
        """Tell of the frames that these two write and read, while somebody wants to know. Otherwise, they do not even
        compare."""

        def switch(is_wanted: bool) -> None:
            outlet.on_frame = self.tell_outgoing if is_wanted else None
            reader.on_message = self.tell_incoming if is_wanted else None

        self._services.events.when_wanted("frame", switch)

    def tell_first(self, line: bytes, answer: bytes) -> None:
        """Tell of the first request and its answer, which came before anything else was ready."""
        self.tell_incoming(line, jsontext.loads(line.strip()))
        self.tell_outgoing(answer, None)

    def tell_incoming(self, line: bytes, message: object) -> None:
        process = None
        if type(message) is dict and message.get("method") == "notifications/cancelled" and self._link is not None:
            params, in_flight = message.get("params"), self._link.stream.in_flight
            if type(params) is dict:  # the process that the cancellation ends
                process = self._process_of(in_flight.get(messages.normal_id(params.get("requestId")) or 0))
        self._tell("in", line, message, self._services.confidential.hear(message).shown(message), process, None)

    def tell_outgoing(self, line: Line, answered: Answerable | None) -> None:
        call = answered if isinstance(answered, Call) else getattr(answered, "call", None)
        size, message = size_of(line), None
        with suppress(ValueError):
            message = jsontext.loads(whole(line)) if size <= MAX_READ_BYTES else None
        secrets = self._services.confidential.shown_of(call)
        shown = f"... ({size} bytes)" if message is None else secrets.shown(message)
        self._tell("out", line, message, shown, self._process_of(answered), call)

    def _process_of(self, call: object) -> int | None:
        """Return the process that runs for a call, or has run for it."""
        if not isinstance(call, Call) or call.run is None:
            return None
        return call.run.child.pid if call.run.child is not None else self._services.runner.process_of(call.serial)

    def _tell(self, way: str, line: Line, message: object, shown: str, process: int | None, call: Call | None) -> None:
        # The line is for recordings; viewers get what is in the table of kinds.
        told: Json = {"way": way, "bytes": size_of(line), "frame": shown, "process": process, "line": line}
        if type(message) is dict:
            told |= {"id": message.get("id"), "method": message.get("method")}
        if call is not None:
            told["ms"] = round((time.monotonic() - call.arrived_at) * 1000, 3)
        elif self._link is not None:
            told["link"] = self._link.stream.link
        self._services.events.tell("frame", call, told)


def write_line(event: Event) -> None:
    """Log a frame."""
    told = event.fields
    fields: Json = {"direction": told["way"], "bytes": told["bytes"], "frame": told["frame"]}
    text = f"{ARROWS[told['way']]} {told['bytes']} bytes"
    if told["process"] is not None:
        fields["process"] = told["process"]
        text += f", process {told['process']}"
    journal.record("debug", text, f": {told['frame']}", fields)
