"""Calls, put together from events: what `watch` shows as a table, and what is exported.

Pure, apart from the clock of calls that have not ended. Bounded: the oldest calls that are over are forgotten, and of a
call with very many events the first and the last are kept.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

MAX_CALLS = 5000
MAX_EVENTS = 400  # of one call
FAILURES = ("failed", "refused", "timed out")
OF_LISTS = ("ping", "initialize", "server/discover")  # besides lists: requests that say little


class CallRow:
    """One request. `status` is that of its end, and before it `queued`, `running` or `asks`."""

    def __init__(self, server: Json, event: Json, client: str) -> None:
        self.server = server
        self.number: int = event.get("call", 0)
        self.link: int = event.get("link", 0)
        self.client = client
        self.id: Any = event.get("id")
        self.method = str(event.get("method", ""))
        self.name = str(event.get("name", ""))
        self.task = str(event.get("task", ""))
        self.interaction: int = event.get("interaction") or self.number
        self.arguments: Any = event.get("arguments")
        self.at = float(event["at"])  # when it came
        self.status = "listens" if self.method == "subscriptions/listen" else "queued"
        self.reason = ""
        self.queue_ms = self.run_ms = self.write_ms = 0.0
        self.started_at: float | None = None
        self.ended_at: float | None = None
        self.process: Json = {}  # of `started` and `exited`
        self.output: dict[str, Json] = {}  # by stream
        self.progress: Json = {}
        self.events: list[Json] = []

    @property
    def kind(self) -> str:
        """What it is about, as the filter says it: tool, resource, prompt, or the method."""
        return self.method.partition("/")[0]

    @property
    def title(self) -> str:
        return self.name if self.method == "tools/call" else f"{self.method} {self.name}".strip()

    @property
    def is_failure(self) -> bool:
        return self.status in FAILURES

    @property
    def total_ms(self) -> float:
        if self.ended_at is not None:
            return self.queue_ms + self.run_ms + self.write_ms
        return max(0.0, (time.time() - self.at) * 1000)

    @property
    def parts_ms(self) -> tuple[float, float, float]:
        """How long it waited, ran, and was written; until now, if it has not ended."""
        if self.ended_at is not None:
            return self.queue_ms, self.run_ms, self.write_ms
        now = time.time()
        begun = now if self.started_at is None else self.started_at
        return max(0.0, begun - self.at) * 1000, max(0.0, now - begun) * 1000, 0.0

    def text(self) -> str:
        """All that a free word of a filter is looked for in."""
        arguments = "" if self.arguments is None else jsontext.dumps(self.arguments).decode("ascii")
        return " ".join((self.method, self.name, self.client, self.status, self.reason, self.task, arguments)).lower()


class Board:
    """The calls of all servers that are watched, the oldest first."""

    def __init__(self) -> None:
        self.rows: dict[tuple[int, int], CallRow] = {}  # by process of the server, and number
        self.servers: dict[int, Json] = {}
        self.samples: dict[int, Json] = {}
        self.notes: list[tuple[Json, Json]] = []  # what belongs to no call: changes, items left out, losses
        self._clients: dict[tuple[int, int], str] = {}
        self._frames: dict[tuple[int, int, str], Json] = {}  # requests whose call is not known yet
        self._refused = 0

    def take(self, server: Json, event: Json) -> CallRow | None:
        """Take an event of this server; return the call that it is about."""
        pid, kind = int(server.get("pid", 0)), event.get("kind")
        if kind == "server":
            self.servers[pid] = event
        elif kind == "opened":
            client = event.get("client")
            name = str(client.get("name", "")) if isinstance(client, dict) else ""
            self._clients[pid, event.get("link", 0)] = name
        elif kind == "sample":
            self.samples[pid] = event
        elif kind in ("changed", "left out", "lost", "closed"):
            self.notes = [*self.notes[-99:], (server, event)]
        elif kind == "frame" and "call" not in event:
            self._take_loose_frame(pid, event)
        else:
            return self._take_of_call(server, pid, event)
        return None

    def _take_loose_frame(self, pid: int, event: Json) -> None:
        """A request comes before its call; the answer to a quick one belongs to the call with the same id."""
        key = pid, event.get("link", 0), repr(event.get("id"))
        if event.get("way") == "in":
            if "id" in event and "method" in event:
                self._frames[key] = event
                if len(self._frames) > MAX_EVENTS:
                    del self._frames[next(iter(self._frames))]
            return
        for row in reversed(self.rows.values()):
            if (row.server.get("pid"), row.link, repr(row.id)) == key:
                row.events.append(event)
                return

    def _take_of_call(self, server: Json, pid: int, event: Json) -> CallRow:
        number = event.get("call")
        if number is None:  # refused before it became a call
            self._refused -= 1
            number = self._refused
        row = self.rows.get((pid, number))
        if row is None:
            client = self._clients.get((pid, event.get("link", 0)), "")
            row = self.rows[pid, number] = CallRow(server, {**event, "call": number}, client)
            if (frame := self._frames.pop((pid, row.link, repr(row.id)), None)) is not None:
                row.events.append(frame)
            self._forget_old()
        _update(row, event)
        return row

    def _forget_old(self) -> None:
        if len(self.rows) > MAX_CALLS:
            over = (key for key, row in self.rows.items() if row.ended_at is not None)
            del self.rows[next(over, next(iter(self.rows)))]


def _update(row: CallRow, event: Json) -> None:
    kind, at = event["kind"], float(event["at"])
    if len(row.events) >= MAX_EVENTS:
        del row.events[MAX_EVENTS // 2]
    row.events.append(event)
    if kind == "started":
        row.status, row.process, row.started_at = "running", {**row.process, **event}, row.started_at or at
    elif kind == "exited":
        row.process = {**row.process, **event}
    elif kind == "asked" and row.ended_at is None:
        row.status = "asks"
    elif kind == "answered" and row.ended_at is None:
        row.status = "running"
    elif kind == "output":
        row.output[str(event.get("stream"))] = event
    elif kind == "progress":
        row.progress = event
    elif kind == "task":
        row.task = str(event.get("task", ""))
    elif kind == "ended":
        _end(row, event, at)


def _end(row: CallRow, event: Json, at: float) -> None:
    row.method, row.name = str(event.get("method", "")), str(event.get("name", ""))
    row.status, row.reason = str(event.get("outcome", "")), str(event.get("reason", ""))
    row.task, row.interaction = str(event.get("task", row.task)), event.get("interaction", row.interaction)
    row.queue_ms, row.run_ms, row.write_ms = (float(event.get(f"{part}_ms", 0)) for part in ("queue", "run", "write"))
    if row.status == "cancelled" and row.started_at is not None:  # the server does not know any more when it began
        row.queue_ms = (row.started_at - row.at) * 1000
        row.run_ms = max(0.0, row.run_ms - row.queue_ms)
    row.ended_at = at
    if len(row.events) == 1:  # nobody looked when it came
        row.at = at - row.total_ms / 1000


def board_of(events: Iterable[Json]) -> Board:
    """Return the board of a file of events, which may be of several servers: `server` in each is the process number."""
    board = Board()
    server: Json = {}
    for event in events:
        if event.get("kind") == "server":
            server = event
        board.take(board.servers.get(int(event.get("server", 0)), server), event)
    return board
