"""Receive the decoded messages of one stream, and pass requests on to the router.

A transport hands over decoded messages and a sink for what goes back. `receive` never raises, whatever arrives.

Messages that came together and take long are postponed, and served in turns with everything else: sixty kilobytes hold
seven hundred requests, and each may need a look at the disk. Meanwhile the reader goes on, and serves urgent messages,
such as a ping, at once.

Rule: while one message waits or is being served, those that are not urgent wait behind it: clients rely on the order.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import gevent
from gevent.event import Event

from mcpgreen import journal
from mcpgreen.errors import InvalidParams, InvalidRequest, ParseError, RpcError
from mcpgreen.links.session import MAX_QUEUED_BYTES, Session, Stream
from mcpgreen.links.sink import MAX_BACKLOG_BYTES, BatchSink, Sink, too_long
from mcpgreen.protocol import messages, revision_fields
from mcpgreen.protocol.admission import LIFECYCLE_REQUESTS, is_stateless
from mcpgreen.protocol.messages import normal_id
from mcpgreen.protocol.revisions import Feature
from mcpgreen.running.shares import Turns, let_others
from mcpgreen.text.json_types import Json

if TYPE_CHECKING:
    from mcpgreen.engine.router import Router
    from mcpgreen.features.watching.subscriptions import Subscriptions
    from mcpgreen.protocol.token import RemoteToken

FAULT = "fault"  # the reason for the end of a session after an unexpected error
MAX_BATCH_MEMBERS = 1000
MEMBERS_A_TURN = 8
HEAVY_BYTES_A_SEC = 65536 / 0.025  # how fast to read while waiting requests take much memory; a pipe holds 65536
URGENT = ("ping", "notifications/cancelled")
SERVED_BEFORE_READY = LIFECYCLE_REQUESTS | {"initialize"}
DROPPED: Any = object()  # the only key of a postponed request that was cancelled; no client can send it
Serve = Callable[[object, Sink, int], None]  # a message, the sink for its answers, and its weight in bytes
MENTIONED_LINES = 20  # that are not JSON; a client that sends one often sends many


class PostponedMessages:
    """The postponed messages of one link. `greenlet` serves them, while there are any."""

    def __init__(self, sink: Sink, *, max_bytes: int) -> None:
        self._sink = sink
        self._max_bytes = max_bytes
        self._waiting: deque[tuple[object, int]] = deque()  # with their weights
        self._by_id: dict[str | int, Json] = {}  # the requests among them, and those in batches
        self._bytes = 0
        self._room = Event()
        self._room.set()
        self.greenlet: gevent.Greenlet | None = None

    def add(self, message: object, weight_bytes: int, serve: Serve, on_fault: Callable[[Any], object]) -> None:
        """Postpone a message. `serve` should never raise; if it does, `on_fault` is called. Neither is kept for longer
        than there are messages, so that there is no reference cycle."""
        self._waiting.append((message, weight_bytes))
        self._by_id.update(_requests_in(message))
        self._bytes += weight_bytes
        if self._bytes > self._max_bytes:
            self._room.clear()
        if self.greenlet is None:
            self.greenlet = gevent.spawn(self._run, serve)
            self.greenlet.link_exception(on_fault)

    def drop(self, request_id: str | int) -> None:
        """Cancel the request with this id, the latest if there are several. If there is none, do nothing."""
        request = self._by_id.pop(request_id, None)
        if request is not None:
            request.clear()
            request[DROPPED] = True

    def wait_for_room(self) -> None:
        """Wait until they take less memory."""
        self._room.wait()

    def wait_until_served(self) -> None:
        if self.greenlet is not None:
            self.greenlet.join()

    def close(self) -> None:
        """Forget all messages."""
        greenlet, self.greenlet = self.greenlet, None
        if greenlet is not None:
            greenlet.kill(block=False)
        self._waiting.clear()
        self._by_id.clear()
        self._room.set()

    def _run(self, serve: Serve) -> None:
        turns = Turns()
        while self._waiting:
            message, weight_bytes = self._waiting.popleft()
            if not _is_dropped(message):
                requests = dict(_requests_in(message))
                serve(message, self._sink, weight_bytes)
                for request_id, request in requests.items():
                    if self._by_id.get(request_id) is request:
                        del self._by_id[request_id]
                self._sink.wait_for_room()
            self._bytes -= weight_bytes
            if self._bytes <= self._max_bytes:
                self._room.set()
            turns.pause()
        self.greenlet = None


class Link:
    """A stream and its session. The transport sets `give_turn`, which is called between the steps of long work in the
    reader, so that others are served meanwhile."""

    def __init__(
        self, router: Router, session: Session, stream: Stream, *, owns_session: bool, token: RemoteToken | None
    ) -> None:
        self.session = session
        self.stream = stream
        self.owns_session = owns_session
        self._router = router
        self._token = token
        self._rubbish_lines = 0
        self._postponed = PostponedMessages(stream.sink, max_bytes=MAX_QUEUED_BYTES)
        self._is_closed = False
        self.give_turn: Callable[[], None] = let_others

    @property
    def is_waited_on(self) -> bool:
        """Whether the client waits for a call, for a person who answers, for news of a subscription, or for a task."""
        services, stream = self._router.services, self.stream
        is_subscribed = services.subscriptions.has_subscribed(self.session)
        is_serving = bool(stream.in_flight or stream.listens or self._postponed.greenlet is not None)
        return is_serving or services.has_parked or services.has_tasks or is_subscribed

    def wait_for_room(self, read_bytes: int) -> None:
        """Wait after a read of this size if waiting requests take too much memory. That may last long, so reading
        goes on slowly meanwhile: the next message may be a ping, a cancellation, or an answer that they wait for."""
        self._postponed.wait_for_room()
        waiting = self._router.services.waiting
        if waiting.is_heavy:
            waiting.wait_for_room(read_bytes / HEAVY_BYTES_A_SEC)

    def wait_until_served(self) -> None:
        self._postponed.wait_until_served()

    def receive(
        self, message: object, sink: Sink | None = None, *, weight_bytes: int = 0, may_wait: bool = False
    ) -> None:
        """Serve one decoded message. Answers go to `sink`, by default the stream's own. `weight_bytes` is how much
        memory the message takes. A message that may wait and is not urgent is served later, in order and in turns with
        other clients."""
        if sink is None:
            sink = self.stream.sink
            if (may_wait or self._postponed.greenlet is not None) and not _is_urgent(message):
                self._postponed.add(message, weight_bytes, self._serve, self._end_after_fault)
                return
        self._serve(message, sink, weight_bytes)

    def _serve(self, message: object, sink: Sink, weight_bytes: int) -> None:
        if type(message) is dict:
            self._receive_object(message, sink, weight_bytes)
        elif type(message) is list:
            self._receive_batch(message, sink, weight_bytes)
        else:
            sink.respond(_unnamed_error(InvalidRequest, "A message must be a JSON object."))

    def _end_after_fault(self, failed: gevent.Greenlet) -> None:
        self.session.end(FAULT)
        journal.error("serving failed unexpectedly; the server is stopping: %r", failed.exception)

    def receive_rubbish(self, reason: str, ids: Sequence[str | int] = ()) -> None:
        """Answer a line that is not JSON. `ids` are those of requests in it that could still be read."""
        self._mention_rubbish(reason)
        free_ids = [id for id in ids if not self.stream.is_used(id)]
        for id in free_ids:
            self._router.refuse(self.stream.sink, id, ParseError(data=reason))
        if not free_ids:
            self.stream.sink.respond(_unnamed_error(ParseError, data=reason))

    def receive_too_large(self, reason: str, id: str | int | None) -> None:
        """Answer a line that is too large to decode. `id` is that of its request, if it could be read: that request
        gets an error of its own as well."""
        self._mention_rubbish(reason)
        self.stream.sink.respond(_unnamed_error(ParseError, data=reason))
        if id is not None and not self.stream.is_used(id):
            self._router.refuse(self.stream.sink, id, InvalidRequest(f"The request is too large: {reason}"))

    def _mention_rubbish(self, reason: str) -> None:
        self._rubbish_lines += 1
        if self._rubbish_lines <= MENTIONED_LINES:
            journal.warning("cannot read a line from the client: %s", reason)
        if self._rubbish_lines == MENTIONED_LINES:
            journal.warning("further unreadable lines are not logged")

    def close_listens(self) -> None:
        """End all listens in good order: each gets its result."""
        self._router.services.subscriptions.end_all(self.stream)

    def drop(self) -> None:
        """Cancel everything in flight without an answer: the client is gone."""
        stop_stream(self.stream, self._router.services.subscriptions)

    def close(self) -> None:
        """Cancel everything in flight, and inform the client as far as possible."""
        self._is_closed = True
        self.session.streams.discard(self.stream)
        self._postponed.close()
        self.close_listens()
        for call in list(self.stream.in_flight.values()):
            self._router.abandon(call)

    def _receive_object(self, message: Json, sink: Sink, weight_bytes: int, *, is_member: bool = False) -> None:
        method = message.get("method")
        if type(method) is not str or message.get("jsonrpc") != "2.0":
            self._receive_odd(message, method, sink)
        elif self._token is not None and not self._take_token(message, sink, self._token):
            return
        elif "id" not in message:
            self._receive_notification(method, message.get("params"))
        elif is_member and (method == "initialize" or is_stateless(message.get("params"))):
            reason = "Neither initialize nor a stateless request can be part of a batch."
            self._router.refuse(sink, normal_id(message["id"]), InvalidRequest(reason))
        else:
            self._receive_request(message, method, sink, weight_bytes)

    def _take_token(self, message: Json, sink: Sink, token: RemoteToken) -> bool:
        """Take the remote token out of a message. If it is wrong, refuse or drop the message, and return False."""
        if token.take(message.get("params")):
            return True
        error = token.refusal(time.monotonic())
        if "id" not in message:
            journal.info("rejected a message: %s", error.message)
        else:
            self._router.refuse(sink, normal_id(message["id"]), error)
        return False

    def _receive_odd(self, message: Json, method: object, sink: Sink) -> None:
        """Take a response, or refuse a message that is neither a request nor a notification."""
        if method is None and ("result" in message or "error" in message):
            self.session.requests.take_answer(message)
        elif method is None or "id" in message:
            what = "Missing method" if method is None else 'jsonrpc must be "2.0" and method a string.'
            request_id = normal_id(message.get("id"))
            if request_id is None:
                sink.respond(_unnamed_error(InvalidRequest, what))
            else:
                self._router.refuse(sink, request_id, InvalidRequest(what))

    def _receive_request(self, message: Json, method: str, sink: Sink, weight_bytes: int) -> None:
        request_id = normal_id(message["id"])
        if request_id is None:
            sink.respond(_unnamed_error(InvalidRequest, "id must be a string or an integer."))
            return
        params = message.get("params")
        if params is None:
            params = {}
        if type(params) is not dict:
            self._router.refuse(sink, request_id, InvalidParams("params must be an object."))
        elif self.stream.is_used(request_id):
            self._router.refuse(sink, request_id, InvalidRequest("This id belongs to a request that is still running."))
        else:
            if not self.session.waits_for_initialized and method not in SERVED_BEFORE_READY:
                self._become_ready()
            self._router.dispatch(self, request_id, method, params, sink, weight_bytes)

    def _become_ready(self) -> None:
        self.session.become_ready(needs_roots="tools" in self._router.services.offered)

    def _receive_notification(self, method: str, params: object) -> None:
        if type(params) is not dict:
            params = {}
        if method == "notifications/cancelled":
            self._cancel(params.get("requestId", params.get("id")))
        elif method in ("notifications/initialized", "initialized"):
            self._become_ready()
        elif method == "notifications/roots/list_changed":
            if not self.session.handshake.is_shutting_down:
                self.session.roots.changed()
        elif method == "exit":
            if self.session.handshake.is_shutting_down:
                self.session.end("exit")
        else:
            journal.debug("ignored notification %s", method)

    def _cancel(self, request_id: object) -> None:
        """Cancel the request, on any stream of the session."""
        key = normal_id(request_id)
        if key is None:
            return
        for stream in (self.stream, *(self.session.streams - {self.stream})):
            if key in stream.listens:
                self._router.services.subscriptions.close(stream.listens[key])
                return
            if key in stream.in_flight:
                stream.in_flight[key].cancel(by="client")
                return
        self._postponed.drop(key)

    def _receive_batch(self, batch: list[object], sink: Sink, weight_bytes: int) -> None:
        problem = self._problem_with_batch(batch)
        if problem:
            sink.respond(_unnamed_error(InvalidRequest, problem))
            return
        collected = BatchSink(sink, limit_bytes=MAX_BACKLOG_BYTES)
        for number, member in enumerate(batch, start=1):
            if not _is_dropped(member):
                self._receive_member(member, collected, weight_bytes // len(batch))
            if number % MEMBERS_A_TURN == 0:
                self.give_turn()
                if self._is_closed:
                    break
        collected.seal()

    def _problem_with_batch(self, batch: list[object]) -> str | None:
        view = self.session.handshake.view
        allows = view is not None and Feature.BATCHES in view.revision.features
        if not batch:
            return "The batch is empty."
        if not (allows or self._router.services.settings.compat_batches):
            return "This protocol revision does not support batches."
        if len(batch) > MAX_BATCH_MEMBERS:
            return f"A batch may have at most {MAX_BATCH_MEMBERS} members; send several batches."
        return None

    def _receive_member(self, member: object, collected: BatchSink, weight_bytes: int) -> None:
        if type(member) is not dict:
            error: RpcError = InvalidRequest("A member of a batch must be an object.")
            if self._token is not None:
                error = self._token.refusal(time.monotonic())  # only an object can contain the token
            self._router.refuse(collected, None, error)
        elif collected.is_full and "id" in member:
            self._router.refuse(collected, normal_id(member["id"]), too_long())
        else:
            self._receive_object(member, collected, weight_bytes, is_member=True)


def stop_stream(stream: Stream, subscriptions: Subscriptions) -> None:
    """End everything on a stream without an answer."""
    for call in list(stream.listens.values()):
        subscriptions.close(call)
    for call in list(stream.in_flight.values()):
        call.cancel(by="disconnect")


def _is_urgent(message: object) -> bool:
    """Tell whether a message need not wait for earlier ones: it takes no time, and does not depend on them. That is
    also true of responses, and of values that are not messages."""
    if type(message) is dict:
        return "method" not in message or message["method"] in URGENT
    return type(message) is not list or not message


@lru_cache(maxsize=64)
def _unnamed_error(kind: type[RpcError], message: str | None = None, data: str | None = None) -> bytes:
    """Encode the error for a message without an id. Cached: a client that sends one often sends many."""
    return messages.error(None, revision_fields.error_object(kind(message, data=data)))


def _is_dropped(message: object) -> bool:
    return type(message) is dict and DROPPED in message


def _requests_in(message: object) -> Iterator[tuple[str | int, Json]]:
    """Yield the requests that can be cancelled, with their ids: the message itself, or members of a batch."""
    for each in message if type(message) is list else (message,):
        if type(each) is dict and each.get("method") != "initialize":
            request_id = normal_id(each.get("id"))
            if request_id is not None:
                yield request_id, each
