"""The time between the wish that a server stops and its end: what it has begun is finished, new requests are refused.

The listening socket stays open meanwhile, and so do connections between two requests. A proxy that is refused by 503
knows that nothing was begun, and may ask another server. A connection that is closed just when it sends a request
tells it nothing, and what may have been done must not be sent twice. So a connection is closed after an answer, which
says so, or when nothing has come on it for a while.

Rule: what a running call may wait for is let in, answers to its questions and notifications above all.
"""

from __future__ import annotations

from typing import Any

from mcpgreen.errors import InternalError
from mcpgreen.protocol import messages
from mcpgreen.transports.http.responses import Refusal
from mcpgreen.transports.http.streams import events


class Draining:
    """Of one server."""

    def __init__(self) -> None:
        self.has_begun = False

    def require_known(self, method: str, *, has_session: bool, last_event: str) -> None:
        """What can only be new is refused unread: what belongs to no session, and a stream, unless it goes on with that
        of a call. Raises Refusal."""
        if self.has_begun and (not has_session or (method == "GET" and not _is_of_a_call(last_event))):
            raise _refusal(None)

    def require_no_request(self, message: Any) -> None:
        """Nor a batch with one in it. Raises Refusal."""
        members = message if type(message) is list else [message]
        if self.has_begun and any("id" in each and "method" in each for each in members if type(each) is dict):
            raise _refusal(messages.normal_id(message.get("id")) if type(message) is dict else None)


def _is_of_a_call(last_event: str) -> bool:
    named = events.named(last_event)
    return named is not None and named[0] != events.STANDING_KEY


def _refusal(request_id: str | int | None) -> Refusal:
    error = InternalError("The server is stopping.")
    return Refusal("503 Service Unavailable", error, headers=[("Retry-After", "1")], id=request_id)
