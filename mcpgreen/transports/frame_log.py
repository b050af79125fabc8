"""A line in the log for every frame that comes or goes: its direction, its size, the process behind it, its content.

Only at the level debug: nobody else loads this module. What is secret in a frame is not shown (`engine.confidential`),
nor what is too long to be looked through for it.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from mcpgreen import journal
from mcpgreen.engine.confidential import Confidential
from mcpgreen.engine.link import Link
from mcpgreen.features.call import Call
from mcpgreen.features.services import Services
from mcpgreen.links.sink import Answerable, Line
from mcpgreen.logs.secrets import Secrets
from mcpgreen.protocol import messages
from mcpgreen.text import jsontext
from mcpgreen.transports.outbox import Outbox

MAX_READ_BYTES = 1 << 18
MAX_UNSEEN = 100
ARROWS = {"in": "-->", "out": "<--"}


class FrameLog:
    """Of one server."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._confidential = Confidential(services)
        self._unseen: deque[str | int | None] = deque(maxlen=MAX_UNSEEN)  # requests whose arguments are shown later

    def greeted(self, line: bytes, answer: bytes) -> None:
        """What was said before anything else was ready."""
        self._tell("in", len(line), jsontext.loads(line.strip()), self._confidential.always)
        self._tell("out", len(answer), jsontext.loads(answer), self._confidential.always)

    def came(self, link: Link | None, line: bytes, message: Any) -> None:
        """`link`: if the process that a cancellation ends can be found there."""
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
        self._tell("in", len(line), message, secrets, process)

    def goes(self, line: Line, call: Answerable | None) -> None:
        secrets, process = self._confidential.always, None
        if isinstance(call, Call):
            secrets = self._confidential.of(call.method, {**call.params, "arguments": call.arguments})
            process = self._process_of(call)
            if call.id in self._unseen:
                self._unseen.remove(call.id)
                shown = secrets.shown({"arguments": call.arguments})
                journal.debug("request %r to %s had %s", call.id, call.method, shown)
        pieces = [line] if isinstance(line, bytes) else line
        size = sum(map(len, pieces))
        if size > MAX_READ_BYTES:
            self._write("out", size, f"... ({size} bytes)", process)
            return
        try:
            message = jsontext.loads(b"".join(pieces))
        except ValueError:
            self._write("out", size, "(not JSON)", process)
        else:
            self._tell("out", size, message, secrets, process)

    def _process_of(self, call: object) -> int | None:
        """That which runs for a call, or has run for it."""
        if not isinstance(call, Call) or call.run is None:
            return None
        return call.run.child.pid if call.run.child is not None else self._services.runner.process_of(call.serial)

    def _tell(self, way: str, size: int, message: Any, secrets: Secrets, process: int | None = None) -> None:
        self._write(way, size, secrets.shown(message), process)

    def _write(self, way: str, size: int, shown: str, process: int | None) -> None:
        fields: dict[str, Any] = {"direction": way, "bytes": size, "frame": shown}
        text = f"{ARROWS[way]} {size} bytes"
        if process is not None:
            fields["process"] = process
            text += f", process {process}"
        journal.record("debug", text, f": {shown}", fields)


class LoggedOutbox(Outbox):
    """An outbox that tells what goes through it."""

    frames: FrameLog

    def respond(self, line: Line, call: Answerable | None = None) -> None:
        if not self.is_broken:
            self.frames.goes(line, call)
        super().respond(line, call)
