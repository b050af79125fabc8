"""The way from a decoded value to a handler, for one stream of one session.

A transport hands over decoded messages and a sink for what goes back. Whatever arrives, nothing raises out of
`receive`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from mcpgreen import journal
from mcpgreen.errors import InvalidParams, InvalidRequest, ParseError, RpcError
from mcpgreen.links.batch import BatchSink, too_long
from mcpgreen.links.session import Session
from mcpgreen.links.sink import Sink
from mcpgreen.links.stream import Stream
from mcpgreen.protocol import messages, revision_fields
from mcpgreen.protocol.admission import is_stateless
from mcpgreen.protocol.revisions import Feature
from mcpgreen.running.turns import let_others
from mcpgreen.text.json_types import Json

if TYPE_CHECKING:
    from mcpgreen.engine.router import Router
    from mcpgreen.features.watching.subscriptions import Subscriptions
    from mcpgreen.links.postponed import PostponedMessages
    from mcpgreen.protocol.token import RemoteToken

FAULT = "fault"  # the reason for an end that nobody foresaw
MAX_BATCH_MEMBERS = 1000
MEMBERS_A_TURN = 8
HEAVY_BYTES_A_SEC = 65536 / 0.025  # read while requests in line are heavy: a pipe holds so much, a socket thrice that
URGENT = ("ping", "notifications/cancelled")
MENTIONED_LINES = 20  # that are not JSON; a client that sends rubbish sends a lot of it


class Link:
    """`give_turn` is for whoever takes long in the reader: the transport says how others get on meanwhile."""

    def __init__(
        self, router: Router, session: Session, stream: Stream, *, owns_session: bool, token: RemoteToken | None
    ) -> None:
        self.session = session
        self.stream = stream
        self.owns_session = owns_session
        self._router = router
        self._token = token
        self._rubbish_lines = 0
        self._postponed: PostponedMessages | None = None  # made when it is needed
        self._is_closed = False
        self.give_turn: Callable[[], None] = let_others

    @property
    def is_waited_on(self) -> bool:
        """Whether the client waits for something: the end of a call, a person that it asks for us, or news of what it
        has subscribed to."""
        services, stream = self._router.services, self.stream
        is_subscribed = services.subscriptions.has_subscribed(self.session)
        return bool(stream.in_flight or stream.listens or services.has_parked or is_subscribed or self._postponed)

    def wait_for_room(self, read_bytes: int) -> None:
        """After a read of so many bytes: until what waits takes less memory. Requests in line may take long, so reading
        goes on slowly meanwhile: what comes next may be a ping, a cancellation, or the answer that they wait for."""
        if self._postponed:
            self._postponed.wait_for_room()
        waiting = self._router.services.waiting
        if waiting.is_heavy:
            waiting.wait_for_room(read_bytes / HEAVY_BYTES_A_SEC)

    def wait_until_served(self) -> None:
        """Until nothing is left of what could wait."""
        if self._postponed:
            self._postponed.wait_until_served()

    def receive(self, message: Any, sink: Sink | None = None, *, weight_bytes: int = 0, may_wait: bool = False) -> None:
        """Serve one decoded value. Answers go to `sink`, by default the stream's own. `weight_bytes` is how much memory
        the value takes. One that may wait, and is not urgent, is served in turns with everybody else, in the order in
        which they came."""
        if sink is None:
            sink = self.stream.sink
            if (may_wait or self._postponed) and not _is_urgent(message):
                self._postpone(message, weight_bytes)
                return
        if type(message) is dict:
            self._receive_object(message, sink, weight_bytes)
        elif type(message) is list:
            self._receive_batch(message, sink, weight_bytes)
        else:
            sink.respond(_unnamed_error(InvalidRequest, "A message must be a JSON object."))

    def _postpone(self, message: Any, weight_bytes: int) -> None:
        sink = self.stream.sink
        if self._postponed is None:
            from mcpgreen.links.postponed import PostponedMessages

            limit_bytes = self._router.services.settings.max_queued_bytes
            self._postponed = PostponedMessages(
                self._receive_postponed, sink, max_bytes=limit_bytes, on_fault=self._end_after_fault
            )
        self._postponed.add(message, weight_bytes)

    def _receive_postponed(self, message: Any, sink: Sink, weight_bytes: int) -> None:
        self.receive(message, sink, weight_bytes=weight_bytes)

    def _end_after_fault(self, failed: Any) -> None:
        self.session.end(FAULT)
        journal.error("serving failed unexpectedly, the server ends: %r", failed.exception)

    def receive_rubbish(self, reason: str, id: str | int | None = None) -> None:
        """A line that could not be decoded; who waits for an answer to it, if that much is known, gets one as well."""
        self._rubbish_lines += 1
        if self._rubbish_lines <= MENTIONED_LINES:
            journal.warning("a line cannot be read: %s", reason)
        if self._rubbish_lines == MENTIONED_LINES:
            journal.warning("further lines that cannot be read are not mentioned")
        self.stream.sink.respond(_unnamed_error(ParseError, data=reason))
        if id is not None and not self.stream.is_used(id):
            self._refuse(self.stream.sink, id, InvalidRequest(f"The request is too large: {reason}"))

    def close_listens(self) -> None:
        """The orderly end of all listens: each gets its result."""
        self._router.services.subscriptions.end_all(self.stream)

    def drop(self) -> None:
        """The client is gone, and nobody waits for anything that it has begun."""
        stop_stream(self.stream, self._router.services.subscriptions)

    def close(self) -> None:
        """Drop everything in flight; what can still be told is told."""
        self._is_closed = True
        self.session.streams.discard(self.stream)
        if self._postponed:
            self._postponed.close()
        self.close_listens()
        for call in list(self.stream.in_flight.values()):
            self._router.abandon(call)

    def _receive_object(self, message: Json, sink: Sink, weight_bytes: int, *, is_member: bool = False) -> None:
        method = message.get("method")
        if type(method) is not str or message.get("jsonrpc") != "2.0":
            self._receive_odd(message, method, sink)
        elif self._token is not None and self._is_stranger(message, sink, self._token):
            return
        elif "id" not in message:
            self._receive_notification(method, message.get("params"))
        elif is_member and (method == "initialize" or is_stateless(message.get("params"))):
            reason = "Neither initialize nor a stateless request can be part of a batch."
            self._refuse(sink, messages.normal_id(message["id"]), InvalidRequest(reason))
        else:
            self._receive_request(message, method, sink, weight_bytes)

    def _is_stranger(self, message: Json, sink: Sink, token: RemoteToken) -> bool:
        """Whether a message comes without the remote token. A request is told so, a notification dropped."""
        if token.admits(message.get("params")):
            return False
        error = token.refusal(time.monotonic())
        if "id" not in message:
            journal.info("a message is refused: %s", error.message)
        else:
            self._refuse(sink, messages.normal_id(message["id"]), error)
        return True

    def _receive_odd(self, message: Json, method: Any, sink: Sink) -> None:
        """Neither request nor notification as they should be."""
        if method is None and ("result" in message or "error" in message):
            self.session.requests.take_answer(message)
        elif method is None or "id" in message:
            what = "Missing method" if method is None else 'jsonrpc must be "2.0" and method a string.'
            request_id = messages.normal_id(message.get("id"))
            if request_id is None:
                sink.respond(_unnamed_error(InvalidRequest, what))
            else:
                self._refuse(sink, request_id, InvalidRequest(what))

    def _receive_request(self, message: Json, method: str, sink: Sink, weight_bytes: int) -> None:
        request_id = messages.normal_id(message["id"])
        if request_id is None:
            sink.respond(_unnamed_error(InvalidRequest, "id must be a string or an integer."))
            return
        params = message.get("params")
        if params is None:
            params = {}
        if type(params) is not dict:
            self._refuse(sink, request_id, InvalidParams("params must be an object."))
        elif self.stream.is_used(request_id):
            self._refuse(sink, request_id, InvalidRequest("This id belongs to a request that is still running."))
        else:
            self._router.dispatch(self, request_id, method, params, sink, weight_bytes)

    def _receive_notification(self, method: str, params: Any) -> None:
        if type(params) is not dict:
            params = {}
        if method == "notifications/cancelled":
            self._cancel(params.get("requestId", params.get("id")))
        elif method in ("notifications/initialized", "initialized"):
            self.session.become_ready(needs_roots="tools" in self._router.services.offered)
        elif method == "notifications/roots/list_changed":
            if not self.session.handshake.is_shutting_down:
                self.session.roots.changed()
        elif method == "exit":
            if self.session.handshake.is_shutting_down:
                self.session.end("exit")
        else:
            journal.debug("ignored notification %s", method)

    def _cancel(self, request_id: Any) -> None:
        """Of this stream, else of another one of the same session: its client may say so by any of them."""
        key = messages.normal_id(request_id)
        if key is None:
            return
        for stream in (self.stream, *(self.session.streams - {self.stream})):
            if key in stream.listens:
                self._router.services.subscriptions.close(stream.listens[key])
                return
            if key in stream.in_flight:
                stream.in_flight[key].cancel()
                return
        if self._postponed:
            self._postponed.drop(key)

    def _receive_batch(self, batch: list[Any], sink: Sink, weight_bytes: int) -> None:
        from mcpgreen.links.postponed import is_dropped

        problem = self._problem_with_batch(batch)
        if problem:
            sink.respond(_unnamed_error(InvalidRequest, problem))
            return
        collected = BatchSink(sink, limit_bytes=self._router.services.settings.max_backlog_bytes)
        for number, member in enumerate(batch, start=1):
            if not is_dropped(member):
                self._receive_member(member, collected, weight_bytes // len(batch))
            if number % MEMBERS_A_TURN == 0:
                self.give_turn()
                if self._is_closed:
                    break
        collected.seal()

    def _problem_with_batch(self, batch: list[Any]) -> str | None:
        view = self.session.handshake.view
        allows = view is not None and view.revision.has(Feature.BATCHES)
        if not batch:
            return "An empty batch."
        if not (allows or self._router.services.settings.compat_batches):
            return "Batches do not exist in this protocol revision."
        if len(batch) > MAX_BATCH_MEMBERS:
            return f"A batch may have {MAX_BATCH_MEMBERS} members at the most; send several."
        return None

    def _receive_member(self, member: Any, collected: BatchSink, weight_bytes: int) -> None:
        if type(member) is not dict:
            error: RpcError = InvalidRequest("A member of a batch must be an object.")
            if self._token is not None:
                error = self._token.refusal(time.monotonic())  # only an object could carry the token
            self._refuse(collected, None, error)
        elif collected.is_full and "id" in member:
            self._refuse(collected, messages.normal_id(member["id"]), too_long())
        else:
            self._receive_object(member, collected, weight_bytes, is_member=True)

    def _refuse(self, sink: Sink, request_id: str | int | None, error: RpcError) -> None:
        sink.respond(messages.error(request_id, revision_fields.error_object(error)))
        if journal.tells_failures:
            self._router.tell("refused", "a request", None, error)


def stop_stream(stream: Stream, subscriptions: Subscriptions) -> None:
    """End all that was asked for on it, without a word."""
    for call in list(stream.listens.values()):
        subscriptions.close(call)
    for call in list(stream.in_flight.values()):
        call.cancel()


def _is_urgent(message: Any) -> bool:
    """Whether a message need not wait for those before it: it takes no time, and none of them makes a difference to it.
    That is true of answers, too, and of what is no message at all."""
    if type(message) is dict:
        return "method" not in message or message["method"] in URGENT
    return type(message) is not list or not message


@lru_cache(maxsize=64)
def _unnamed_error(kind: type[RpcError], message: str | None = None, data: str | None = None) -> bytes:
    """The error for what has no id. Kept, because a client that sends rubbish sends a lot of it, and its next request
    stands behind."""
    return messages.error(None, revision_fields.error_object(kind(message, data=data)))
