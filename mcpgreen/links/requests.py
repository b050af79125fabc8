"""Requests to the client of one session, and how its answers get to the greenlets that wait for them.

For clients with a session only: in the stateless era a server sends no requests. Callers check that the client has
declared the capability that a request needs.

Rule: a request leaves nothing behind, however it ends. Its entry lives exactly as long as a greenlet waits for the
answer, and an answer without an entry (late, a second one, to nothing) is ignored.

Responses carry no remote token: no revision has a place for one. So where a token is set, ids are random, and only the
client can know them.
"""

from __future__ import annotations

import os
from typing import Any

from gevent.event import AsyncResult

from mcpgreen import journal
from mcpgreen.errors import AnswerOverdue, LinkClosed, MethodNotFound, RefusedByClient
from mcpgreen.links.sink import Sink
from mcpgreen.protocol import messages
from mcpgreen.text.json_types import Json

ID_BYTES = 16
MAX_REASON_CHARS = 1000  # of the message in a client's error, which a script gets


class OutgoingRequests:
    """Our requests to one client. Their ids are integers from 1, which all clients understand; each direction has its
    own ids. `needs_token`: messages have to carry a token, so ids are texts that cannot be guessed."""

    def __init__(self, *, needs_token: bool = False) -> None:
        self._needs_token = needs_token
        self._last_id = 0
        self._pending: dict[str | int, AsyncResult] = {}
        self._is_closed = False

    def __repr__(self) -> str:
        return f"<OutgoingRequests, {len(self._pending)} pending>"

    @property
    def is_waiting(self) -> bool:
        """Whether a greenlet waits for an answer of the client."""
        return bool(self._pending)

    def ask(self, sink: Sink, method: str, params: Json | None = None, *, timeout_secs: float) -> Any:
        """Send a request by this sink and wait for its result, which may be any JSON value.

        Raises `RefusedByClient`, `AnswerOverdue` or `LinkClosed`. When the wait ends without an answer, also because
        the waiting greenlet is killed, the request is cancelled.
        """
        if self._is_closed:
            raise LinkClosed(f"{method} cannot be asked: the link is closed")
        if not sink.carries_requests:
            reason = "The client cannot be asked here: it accepts no stream in answer to this request."
            raise RefusedByClient(reason, code=MethodNotFound.code)
        request_id = self._new_id()
        answer = self._pending[request_id] = AsyncResult()
        sink.request(messages.request(request_id, method, params))
        try:
            answer.wait(timeout_secs)
        finally:
            if self._pending.pop(request_id, None) is not None:
                withdrawn = {"requestId": request_id, "reason": "The answer is not needed any more."}
                sink.notify(messages.notification("notifications/cancelled", withdrawn))
        if not answer.ready():
            raise AnswerOverdue(f"no answer to {method} within {timeout_secs:g} s")
        return answer.get()

    def take_answer(self, message: Json) -> None:
        """Hand a response to the greenlet that waits for it. A response to nothing is ignored."""
        request_id = messages.normal_id(message.get("id"))
        answer = None if request_id is None else self._pending.pop(request_id, None)
        if answer is None:
            journal.debug("ignored a response to nothing that we ask")
        elif message.get("error") is not None or "result" not in message:
            answer.set_exception(_refusal(message.get("error")))
        else:
            answer.set(message["result"])

    def close(self) -> None:
        """No answer will come any more: raise LinkClosed where greenlets wait for one."""
        self._is_closed = True
        for answer in self._pending.values():
            answer.set_exception(LinkClosed("the link is closed"))
        self._pending.clear()

    def _new_id(self) -> str | int:
        if self._needs_token:
            return os.urandom(ID_BYTES).hex()
        self._last_id += 1
        return self._last_id


def _refusal(error: object) -> RefusedByClient:
    """The error of a client as an exception, whatever its shape."""
    if type(error) is not dict:
        error = {}
    code, message = error.get("code"), error.get("message")
    return RefusedByClient(
        message[:MAX_REASON_CHARS] if type(message) is str and message else "The client gave no reason.",
        code=code if type(code) is int else None,
        data=error.get("data"),
    )
