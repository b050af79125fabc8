"""A viewer of a running server: reads its events in a thread, as `mcpgreen watch` does."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mcpgreen.events import places
from mcpgreen.events.attach import attach
from tests.support.waiting import PATIENCE_SECS, eventually

Json = dict[str, Any]


def socket_of(pid: int) -> Path:
    """The socket of a server, as soon as it is there."""

    def look() -> Path | None:
        return next((Path(path) for number, path in places.sockets(os.environ) if number == pid), None)

    found = eventually(look)
    assert found is not None
    return found


class Viewer:
    def __init__(self, pid: int) -> None:
        self.events: list[Json] = []
        self.is_over = threading.Event()
        self._path = str(socket_of(pid))
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()
        eventually(lambda: self.events)

    def _read(self) -> None:
        with contextlib.suppress(OSError):
            for event in attach(self._path):
                self.events.append(event)
        self.is_over.set()

    def of(self, kind: str, **fields: Any) -> list[Json]:
        """The events of this kind, with these values."""
        return [
            each
            for each in list(self.events)
            if each["kind"] == kind and all(each.get(name) == value for name, value in fields.items())
        ]

    def get(self, kind: str, **fields: Any) -> Json:
        """The first such event, as soon as it is there."""
        found: Json = eventually(lambda: next(iter(self.of(kind, **fields)), None))
        return found

    def kinds_of(self, call: int) -> list[str]:
        return [each["kind"] for each in list(self.events) if each.get("call") == call]


@contextlib.contextmanager
def viewing(pid: int) -> Iterator[Viewer]:
    """View a server until it ends; the server ends first, or is ended by its test."""
    viewer = Viewer(pid)
    yield viewer
    assert viewer.is_over.wait(PATIENCE_SECS)
