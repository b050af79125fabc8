"""Server-sent events: how a frame is written as an event, and how an event is named."""

from __future__ import annotations

import re

from mcpgreen.protocol.messages import Line, whole

CONTENT_TYPE = "text/event-stream"
KEEP_ALIVE = b": keep-alive\n\n"
OPENED = b": open\n\n"  # the client should not wait for the head until there is an event
RETRY_MS = 1000
STANDING_KEY = 0  # names the stream of a session, which a GET carries, in the ids of its events
EVENT_ID = re.compile(r"([0-9]{1,12})-([0-9]{1,12})")

# For every answer that is a stream: no proxy may hold it back or change it.
HEADERS = [("Content-Type", CONTENT_TYPE), ("Cache-Control", "no-cache, no-transform"), ("X-Accel-Buffering", "no")]


def event(line: Line, event_id: str | None) -> bytes:
    if event_id is None:
        return b"data: %b\n\n" % whole(line)
    return b"id: %b\ndata: %b\n\n" % (event_id.encode("ascii"), whole(line))


def first_event(event_id: str) -> bytes:
    """Return an event without a message: from now on the client can come back with its id."""
    return b"id: %b\nretry: %d\ndata:\n\n" % (event_id.encode("ascii"), RETRY_MS)


def named(text: str) -> tuple[int, int] | None:
    """Return the stream's key and the event's number in a `Last-Event-ID`; None for an id that is not ours."""
    found = EVENT_ID.fullmatch(text)
    return None if found is None else (int(found[1]), int(found[2]))
