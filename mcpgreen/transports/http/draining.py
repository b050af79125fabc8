"""What a server refuses between the signal to stop and its end.

What has begun is finished, and new requests are refused. The listening socket and idle connections stay open meanwhile.
A proxy that gets 503 knows that nothing was begun, and may ask another server. A connection that is closed just when
the proxy sends a request tells it nothing, and what may have been done must not be sent twice. So a connection is
closed after an answer that says so, or when nothing has come on it for a while.

Rule: what a running call may wait for is let in, above all answers to its questions and notifications.
"""

from __future__ import annotations

from mcpgreen.errors import InternalError
from mcpgreen.protocol import messages
from mcpgreen.transports.http.responses import Refusal, unavailable
from mcpgreen.transports.http.streams import events


class Draining:
    """Whether the server drains, and what it refuses then."""

    def __init__(self) -> None:
        self.has_begun = False

    def require_known(self, method: str, *, has_session: bool, last_event: str) -> None:
        """Refuse, without reading it, a request without a session, and a stream that is not the rest of a call's.
        Raises Refusal."""
        if self.has_begun and (not has_session or (method == "GET" and not _is_of_a_call(last_event))):
            raise _refusal(None)

    def require_no_request(self, message: object) -> None:
        """Raises Refusal for a request, and for a batch with a request in it."""
        members = message if type(message) is list else [message]
        if self.has_begun and any("id" in each and "method" in each for each in members if type(each) is dict):
            raise _refusal(messages.normal_id(message.get("id")) if type(message) is dict else None)


def _is_of_a_call(last_event: str) -> bool:
    named = events.named(last_event)
    return named is not None and named[0] != events.STANDING_KEY


def _refusal(request_id: str | int | None) -> Refusal:
    return unavailable(InternalError("The server is stopping."), id=request_id)
