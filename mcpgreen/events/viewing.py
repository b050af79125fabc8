"""What viewers get: each event as a line of JSON without secrets, the latest of them from a ring.

Rules: all that leaves the server as an event goes through `Views._line`, which removes the secrets. A viewer's `take`
never waits. While there is no viewer, only the kinds that are kept are made at all, and of those a plain `ended` is
kept as it was told: it becomes a line when somebody looks.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mcpgreen.events.kinds import ALL, KEPT, PLAIN, TYPES
from mcpgreen.events.stream import Event, Events
from mcpgreen.journal import cut
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

if TYPE_CHECKING:
    from mcpgreen.logs.secrets import Secrets  # takes milliseconds to import, and may not be needed

MAX_EVENTS = 2000
MAX_BYTES = 8 << 20
MAX_TEXT_CHARS = 1000
TAIL_CHARS = 4096
RECORD_BYTES = 512  # of an event that is no line yet, roughly
SUCCESSES = ("ok", "asks", "task")
SMALL_KINDS = ("opened", "closed", "ended")  # they become lines when somebody looks

TakeLine = Callable[[bytes], None]


class Views:
    """The ring and the viewers of one server. `about` describes the server for its viewers, `secrets_of` knows what is
    secret in a call, or, for None, always."""

    def __init__(self, events: Events, *, about: Callable[[], Json], secrets_of: Callable[[Any], Secrets]) -> None:
        self.calls = self.failures = 0  # of named items: tools, resources, prompts
        self._events = events
        self._about = about
        self._secrets_of = secrets_of
        self._ring: deque[bytes | tuple[Json, Json]] = deque()
        self._ring_bytes = 0
        self._viewers: list[TakeLine] = []
        self._last = 0
        for event in events.take_early():
            self._take(event)
        events.read(self._take, KEPT)

    def add(self, viewer: TakeLine) -> None:
        """Give a viewer what is in the ring, and every event from now on: lines of JSON with a newline. The first one
        describes the server. `viewer` must not wait."""
        viewer(self._line({"n": self._last, "at": time.time(), "kind": "server", **self._about()}, None))
        for number, kept in enumerate(self._ring):
            line = kept if isinstance(kept, bytes) else self._line({**kept[0], **kept[1]}, None)
            self._ring_bytes += len(line) - _size(kept)
            self._ring[number] = line
            viewer(line)
        self._viewers.append(viewer)
        self._events.read(self._take, ALL)

    def remove(self, viewer: TakeLine) -> None:
        """Give it no more. A viewer that is gone already is ignored."""
        if viewer in self._viewers:
            self._viewers.remove(viewer)
            self._events.read(self._take, ALL if self._viewers else KEPT)

    def _take(self, event: Event) -> None:
        """Keep an event, and give it to the viewers. While there are none, this is most of what an event costs."""
        self._last += 1
        kind, call, fields = event.kind, event.call, event.fields
        head: Json = {"n": self._last, "at": event.at, "kind": kind}
        if call is not None:
            head["call"] = call.number
            head["link"] = call.stream.link
        if kind == "ended" and fields["name"] and fields["outcome"] != "task":
            self.calls += 1
            self.failures += fields["outcome"] not in SUCCESSES
        if not self._viewers and kind in SMALL_KINDS and "reason" not in fields:
            if len(fields.get("name") or "") > MAX_TEXT_CHARS:
                fields = {**fields, "name": cut(fields["name"], MAX_TEXT_CHARS)}
            self._keep((head, fields), RECORD_BYTES)
            return
        line = self._line({**head, **fields, "line": None}, call)  # the whole frame is for recordings
        self._keep(line, len(line))
        for viewer in tuple(self._viewers):
            viewer(line)

    def _keep(self, entry: bytes | tuple[Json, Json], size_bytes: int) -> None:
        self._ring.append(entry)
        self._ring_bytes += size_bytes
        while len(self._ring) > MAX_EVENTS or self._ring_bytes > MAX_BYTES:
            self._ring_bytes -= _size(self._ring.popleft())

    def _line(self, record: Json, call: Any) -> bytes:
        types, secrets = TYPES[record["kind"]], None
        shown: Json = {}
        for name, value in record.items():
            if value is None or value == "":
                continue
            type = types.get(name, "number")
            if type in PLAIN:
                shown[name] = round(value, 6 if name == "at" else 3) if isinstance(value, float) else value
                continue
            secrets = secrets or self._secrets_of(call)
            # Names are shown even if the arguments are too large to be searched for secrets.
            is_name = secrets.hides_all and name in ("method", "name")
            shown[name] = _shown(value, type, self._secrets_of(None) if is_name else secrets)
        return jsontext.dumps(shown) + b"\n"


def _size(entry: bytes | tuple[Json, Json]) -> int:
    return len(entry) if isinstance(entry, bytes) else RECORD_BYTES


def _shown(value: Any, type: str, secrets: Secrets) -> Any:
    if type == "text":
        return cut(secrets.text(str(value)), MAX_TEXT_CHARS)
    if type == "tail":  # a text that was cut may begin with half of a secret, which is not recognised
        text, is_cut = value
        shown = secrets.text(text)
        return shown[-min(TAIL_CHARS, len(shown) // 2 if is_cut else TAIL_CHARS) :]
    assert type == "value"
    return secrets.copy(value)
