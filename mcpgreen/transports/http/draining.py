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


class Draining:
    """Of one server."""

    def __init__(self) -> None:
        self.has_begun = False

    def require_session(self, method: str, *, has_session: bool) -> None:
        """What can only be new, a stream or what belongs to no session, is refused unread. Raises Refusal."""
        if self.has_begun and (method == "GET" or not has_session):
            raise _refusal(None)

    def require_no_request(self, message: Any) -> None:
        """Raises Refusal."""
        if self.has_begun and (type(message) is not dict or ("id" in message and "method" in message)):
            raise _refusal(messages.normal_id(message.get("id")) if type(message) is dict else None)


def _refusal(request_id: str | int | None) -> Refusal:
    error = InternalError("The server is stopping.")
    return Refusal("503 Service Unavailable", error, headers=[("Retry-After", "1")], id=request_id)
