"""Log every frame: its direction, its size, the process behind it, its content.

Loaded at the level debug only. Secrets in a frame are not shown (`features.confidential`), nor is a frame that is too
long to be searched for them.
"""

from __future__ import annotations

from collections import deque

from mcpgreen import journal
from mcpgreen.engine.link import Link
from mcpgreen.features.call import Call
from mcpgreen.features.services import Services
from mcpgreen.links.sink import Answerable
from mcpgreen.protocol import messages
from mcpgreen.protocol.messages import Line, size_of, whole
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

MAX_READ_BYTES = 1 << 18
MAX_UNSEEN = 100
ARROWS = {"in": "-->", "out": "<--"}


class FrameLog:
    """The frame logger of one server."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._confidential = services.confidential
        self._unseen: deque[str | int | None] = deque(maxlen=MAX_UNSEEN)  # requests whose arguments are shown later

    def log_first(self, line: bytes, answer: bytes) -> None:
        """Log the first request and its answer, which came before anything else was ready."""
        for way, frame in (("in", line), ("out", answer)):
            self._write(way, len(frame), self._confidential.always.shown(jsontext.loads(frame.strip())))

    def log_incoming(self, link: Link | None, line: bytes, message: object) -> None:
        """Log a message of the client. `link` knows the process that a cancellation ends."""
        secrets, process = self._confidential.always, None
        if type(message) is dict and type(message.get("params")) is dict:
            params = message["params"]
            secrets = self._confidential.of(message.get("method"), params)
            if self._confidential.is_unknown(message.get("method"), params):
                self._unseen.append(messages.normal_id(message.get("id")))
            if message.get("method") == "notifications/cancelled" and link is not None:
                process = self._process_of(link.stream.in_flight.get(messages.normal_id(params.get("requestId")) or 0))
        elif type(message) is list:
            requests = [each for each in message[:1000] if type(each) is dict and type(each.get("params")) is dict]
            every = [self._confidential.of(each.get("method"), each["params"]) for each in requests]
            secrets = secrets.with_those(every)
        self._write("in", len(line), secrets.shown(message), process)

    def log_outgoing(self, line: Line, call: Answerable | None) -> None:
        secrets, process = self._confidential.always, None
        if isinstance(call, Call):
            secrets = self._confidential.of(call.method, {**call.params, "arguments": call.arguments})
            process = self._process_of(call)
            if call.id in self._unseen:
                self._unseen.remove(call.id)
                shown = secrets.shown({"arguments": call.arguments})
                journal.debug("request %r to %s had %s", call.id, call.method, shown)
        size = size_of(line)
        try:
            shown = f"... ({size} bytes)" if size > MAX_READ_BYTES else secrets.shown(jsontext.loads(whole(line)))
        except ValueError:
            shown = "(not JSON)"
        self._write("out", size, shown, process)

    def _process_of(self, call: object) -> int | None:
        """The process that runs for a call, or has run for it."""
        if not isinstance(call, Call) or call.run is None:
            return None
        return call.run.child.pid if call.run.child is not None else self._services.runner.process_of(call.serial)

    def _write(self, way: str, size: int, shown: str, process: int | None = None) -> None:
        fields: Json = {"direction": way, "bytes": size, "frame": shown}
        text = f"{ARROWS[way]} {size} bytes"
        if process is not None:
            fields["process"] = process
            text += f", process {process}"
        journal.record("debug", text, f": {shown}", fields)
