"""Faults of our own output: recognise a line that must not go out, and count until it is time to give up.

Lines are sound by construction, so a fault is a mistake in the server or a device that takes nothing more. A client
that sees half a message cannot know where the next one begins: better no server than one that goes on talking.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from mcpgreen import journal
from mcpgreen.errors import InternalError
from mcpgreen.links.sink import Answerable, Line, whole
from mcpgreen.protocol import messages, revision_fields
from mcpgreen.settings.settings import Settings
from mcpgreen.settings.table import default_of
from mcpgreen.text import jsontext

EXIT_STATUS = 2


class CorruptionGuard:
    """Counts faults. `on_limit` hears of too many within the window, once."""

    def __init__(
        self, settings: Settings, *, on_limit: Callable[[], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.is_tripped = False
        self._window_secs: float = settings.corruption_window_secs
        self._is_tolerant: bool = settings.allow_corrupt_stdout
        self._on_limit = on_limit
        self._clock = clock
        self._threshold: int = settings.corruption_threshold or default_of("corruption_threshold")
        self._seen_at: deque[float] = deque(maxlen=self._threshold)

    def count(self, what: str) -> None:
        if self.is_tripped:
            return  # the end is on its way
        journal.critical("output is faulty: %s", what)
        self._seen_at.append(self._clock())
        is_recent = self._seen_at[-1] - self._seen_at[0] <= self._window_secs
        if len(self._seen_at) == self._threshold and is_recent and not self._is_tolerant:
            self.is_tripped = True
            journal.critical("%d faults within %g s; exiting", self._threshold, self._window_secs)
            self._on_limit()


def is_sound(line: Line) -> bool:
    """One line of UTF-8. Of a large one the ends are looked at; between them is text that was encoded in pieces."""
    pieces = (line,) if isinstance(line, bytes) else (line[0], line[-1])
    try:
        for piece in pieces:
            if b"\n" in piece:
                return False
            if not piece.isascii():
                piece.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def are_sound(lines: list[bytes], joined: bytes) -> bool:
    """As `is_sound` for lines that have been joined by newlines already, in a fraction of the time."""
    return joined.count(b"\n") == len(lines) - 1 and joined.isascii()


def replacement(line: Line, call: Answerable | None) -> bytes | None:
    """What goes out instead of an unsound line: an error for whoever waits for it, if that can be told."""
    try:
        message = jsontext.loads(whole(line))
    except ValueError:
        request_id = None if call is None else call.id
    else:
        is_response = type(message) is dict and "method" not in message
        request_id = messages.normal_id(message.get("id")) if is_response else None
    if request_id is None:
        return None
    return messages.error(request_id, revision_fields.error_object(InternalError("The answer could not be sent.")))
