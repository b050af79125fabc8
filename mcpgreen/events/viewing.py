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

from mcpgreen.events.kinds import ALL, KEPT, LIST, NUMBER, SHOWN, TAIL, TEXT, TYPES, VALUE, WORD
from mcpgreen.events.stream import Event, Events, Subject
from mcpgreen.journal import cut
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

if TYPE_CHECKING:
    from mcpgreen.logs.secrets import Secrets  # takes milliseconds to import, and may not be needed

MAX_EVENTS = 2000
MAX_BYTES = 8 << 20
MAX_TEXT_CHARS = 1000
TAIL_CHARS = 4096
UNSEEN_REASONS_A_SEC = 20  # a client can have requests refused as fast as it likes
RECORD_BYTES = 512  # of an event that is no line yet, roughly
PLAIN = frozenset({NUMBER, WORD, LIST, SHOWN})  # without secrets
NAMES = ("method", "name")
SUCCESSES = ("ok", "asks", "task")
PLAIN_KINDS = ("opened", "closed", "ended")  # small, so they become lines when somebody looks

TakeLine = Callable[[bytes], None]


class Views:
    """The ring and the viewers of one server. `about` describes the server for its viewers, `secrets_of` knows what is
    secret in a call, or, for None, always."""

    def __init__(
        self, events: Events, *, about: Callable[[], Json], secrets_of: Callable[[Subject | None], Secrets]
    ) -> None:
        self.calls = self.failures = 0  # of named items: tools, resources, prompts
        self.on_viewed: Callable[[bool], None] = lambda is_viewed: None
        self._events = events
        self._about = about
        self._secrets_of = secrets_of
        self._ring: deque[bytes | Json] = deque()
        self._ring_bytes = 0
        self._viewers: list[TakeLine] = []
        self._last = 0
        self._second = self._reasons = 0
        for event in events.take_early():
            self._take(event)
        events.read(self._take, KEPT)

    def add(self, viewer: TakeLine) -> None:
        """Give a viewer what is in the ring, and every event from now on: lines of JSON with a newline. The first one
        describes the server. `viewer` must not wait."""
        viewer(self._line("server", {**self._stamp("server", time.time()), **self._about()}, None))
        for number, kept in enumerate(self._ring):
            line = kept if isinstance(kept, bytes) else self._line(kept["kind"], kept, None)
            self._ring_bytes += len(line) - _size(kept)
            self._ring[number] = line
            viewer(line)
        self._viewers.append(viewer)
        if len(self._viewers) == 1:
            self._events.read(self._take, ALL)
            self.on_viewed(True)

    def remove(self, viewer: TakeLine) -> None:
        """Give it no more. A viewer that is gone already is ignored."""
        if viewer in self._viewers:
            self._viewers.remove(viewer)
            if not self._viewers:
                self._events.read(self._take, KEPT)
                self.on_viewed(False)

    def _take(self, event: Event) -> None:
        record = self._stamp(event.kind, event.at)
        if event.call is not None:
            record["call"] = event.call.number
            record["link"] = event.call.stream.link
        record.update(event.fields)
        record.pop("line", None)  # the whole frame is for recordings
        if event.kind == "ended":
            self._count(record)
        if not self._viewers and event.kind in PLAIN_KINDS and "reason" not in record:
            record |= {name: cut(record.get(name) or "", MAX_TEXT_CHARS) for name in NAMES if name in record}
            self._keep(record)
            return
        line = self._line(event.kind, record, event.call)
        self._keep(line)
        for viewer in tuple(self._viewers):
            viewer(line)

    def _stamp(self, kind: str, at: float) -> Json:
        if kind != "server":
            self._last += 1
        return {"n": self._last, "at": round(at, 6), "kind": kind}

    def _count(self, ended: Json) -> None:
        if ended.get("name") and ended["outcome"] != "task":
            self.calls += 1
            self.failures += ended["outcome"] not in SUCCESSES
        if "reason" in ended and not self._viewers:
            second = int(ended["at"])
            self._second, self._reasons = second, self._reasons + 1 if second == self._second else 1
            if self._reasons > UNSEEN_REASONS_A_SEC:
                del ended["reason"]

    def _keep(self, entry: bytes | Json) -> None:
        self._ring.append(entry)
        self._ring_bytes += _size(entry)
        while len(self._ring) > MAX_EVENTS or self._ring_bytes > MAX_BYTES:
            self._ring_bytes -= _size(self._ring.popleft())

    def _line(self, kind: str, record: Json, call: Subject | None) -> bytes:
        secrets, types = self._secrets_of(call), TYPES[kind]
        shown: Json = {}
        for name, value in record.items():
            if value is None or value == "":
                continue
            if (type := types.get(name, NUMBER)) in PLAIN:
                shown[name] = value
            else:
                # Names are shown even if the arguments are too large to be searched for secrets.
                own = self._secrets_of(None) if secrets.hides_all and name in NAMES else secrets
                shown[name] = _shown(value, type, own)
        return jsontext.dumps(shown) + b"\n"


def _size(entry: bytes | Json) -> int:
    return len(entry) if isinstance(entry, bytes) else RECORD_BYTES


def _shown(value: Any, type: str, secrets: Secrets) -> Any:
    if type == TEXT:
        return cut(secrets.text(str(value)), MAX_TEXT_CHARS)
    if type == TAIL:  # a text that was cut may begin with half of a secret, which is not recognised
        text, is_cut = value
        shown = secrets.text(text)
        return shown[-min(TAIL_CHARS, len(shown) // 2 if is_cut else TAIL_CHARS) :]
    assert type == VALUE
    return secrets.copy(value)
