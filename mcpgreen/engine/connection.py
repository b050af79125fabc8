"""One client: its handshake, its requests in flight, and the way from a decoded value to a handler.

A transport hands over decoded messages and a sink for replies. Whatever arrives, nothing raises out of `receive`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import gevent
from gevent.event import AsyncResult, Event

from mcpgreen import journal
from mcpgreen.engine.batch import BatchSink, too_long
from mcpgreen.engine.requests import OutgoingRequests
from mcpgreen.errors import InvalidParams, InvalidRequest, ParseError, RpcError
from mcpgreen.features.call import Call, log_params, wants_level
from mcpgreen.features.roots import LinkRoots
from mcpgreen.features.sink import Sink
from mcpgreen.protocol import messages, shapes
from mcpgreen.protocol.admission import Handshake, is_stateless
from mcpgreen.protocol.revisions import Feature
from mcpgreen.running.turns import let_others

if TYPE_CHECKING:
    from mcpgreen.engine.router import Router
    from mcpgreen.protocol.token import RemoteToken

Json = dict[str, Any]

FAULT = "fault"  # the reason for an end that nobody foresaw
MAX_BATCH_MEMBERS = 1000
MEMBERS_A_TURN = 8
ROOM_CHECK_SECS = 0.1
MENTIONED_LINES = 20  # that are not JSON; a client that sends rubbish sends a lot of it


class Connection:
    """The state of one link. `ended` is set, with the reason, when the client or a timer wants it to end. `give_turn`
    is for whoever takes long in the reader: the transport says how others get on meanwhile."""

    def __init__(
        self, router: Router, sink: Sink, *, handshake: Handshake | None = None, token: RemoteToken | None = None
    ) -> None:
        self.sink = sink
        self.handshake = handshake or Handshake()
        self.ended: AsyncResult = AsyncResult()
        self.idle = Event()
        self.idle.set()
        self.requests = OutgoingRequests(sink, has_strangers=token is not None)
        services = router.services
        self.roots = LinkRoots(services.roots, self.requests.ask, services.settings, has_strangers=token is not None)
        self._router = router
        self._token = token
        self._in_flight: dict[str | int, Call] = {}
        self._listens: dict[str | int, Call] = {}  # open as well, but nobody waits for their end
        self._parked: set[Call] = set()  # answered with questions; the client is to come back
        self._shutdown_timer: Any = None
        self._rubbish_lines = 0
        self.give_turn: Callable[[], None] = let_others

    def __repr__(self) -> str:
        view = self.handshake.view
        return f"<Connection {view.revision.name if view else 'no handshake'}, {len(self._in_flight)} in flight>"

    @property
    def is_waited_on(self) -> bool:
        """Whether the client waits for something: the end of a call, a person that it asks for us, or news of what it
        has subscribed to."""
        is_subscribed = self._router.services.subscriptions.has_subscribed(self)
        return bool(self._in_flight or self._listens or self._parked or is_subscribed)

    def wait_for_room(self) -> None:
        """Until requests that wait in line take less memory. Not while we wait for the client: its answer may be what
        they wait for."""
        while self._router.waiting.is_heavy and not self.requests.is_waiting and not self.ended.ready():
            self._router.waiting.wait_for_room(ROOM_CHECK_SECS)

    def receive(self, message: Any, sink: Sink | None = None, *, weight_bytes: int = 0) -> None:
        """Serve one decoded value. Replies go to `sink`, by default the link's own. `weight_bytes` is how much memory
        the value takes."""
        if sink is None:
            sink = self.sink
        if type(message) is dict:
            self._receive_object(message, sink, weight_bytes)
        elif type(message) is list:
            self._receive_batch(message, sink, weight_bytes)
        else:
            self._refuse(sink, None, InvalidRequest("A message must be a JSON object."))

    def receive_rubbish(self, reason: str, id: str | int | None = None) -> None:
        """A line that could not be decoded; who waits for an answer to it, if that much is known, gets one as well."""
        self._rubbish_lines += 1
        if self._rubbish_lines <= MENTIONED_LINES:
            journal.warning("a line cannot be read: %s", reason)
        if self._rubbish_lines == MENTIONED_LINES:
            journal.warning("further lines that cannot be read are not mentioned")
        self._refuse(self.sink, None, ParseError(data=reason))
        if id is not None and id not in self._in_flight:
            self._refuse(self.sink, id, InvalidRequest(f"The request is too large: {reason}"))

    def take(self, call: Call) -> None:
        """From now on the call can be cancelled, and its id is in use."""
        self._in_flight[call.id] = call
        self.idle.clear()

    def forget(self, call: Call) -> None:
        if self._in_flight.get(call.id) is call:
            del self._in_flight[call.id]
        self._router.waiting.remove(call)
        if not self._in_flight:
            self.idle.set()

    def park(self, call: Call) -> None:
        """The request is answered, but its script lives on."""
        self.forget(call)
        self._parked.add(call)

    def unpark(self, call: Call) -> None:
        self._parked.discard(call)

    def open_listen(self, call: Call) -> None:
        self._listens[call.id] = call

    def close_listens(self) -> None:
        """The orderly end of all listens: each gets its result."""
        self._router.services.subscriptions.end_all(self)
        self._listens.clear()

    def begin_shutdown(self) -> None:
        """`shutdown`: the client has a few seconds to say `exit`."""
        self.handshake.is_shutting_down = True
        if self._shutdown_timer is None:
            secs = self._router.services.settings.shutdown_timeout
            self._shutdown_timer = gevent.spawn_later(secs, self.end, "shutdown timeout")

    def end(self, reason: str) -> None:
        self.requests.close()  # the client is going: who waits for its answers need not
        if not self.ended.ready():
            self.ended.set(reason)

    def close(self) -> None:
        """Drop everything in flight; what can still be told is told."""
        if self._shutdown_timer is not None:
            self._shutdown_timer.kill(block=False)
        self.requests.close()
        self.roots.close()
        self.close_listens()
        for call in list(self._in_flight.values()):
            self._router.abandon(call)
            self.forget(call)
        self._router.services.subscriptions.remove_link(self)

    def log(self, level: str, logger: str, text: str) -> None:
        """A message of the server itself, for a handshake client that wants this level."""
        view = self.handshake.view
        if self.handshake.is_ready and view is not None and wants_level(view, level):
            line = messages.notification("notifications/message", log_params(level, logger, text))
            self.sink.put(line, is_droppable=True)

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
        journal.info("a message is refused: %s", error.message)
        if "id" in message:
            self._refuse(sink, messages.normal_id(message["id"]), error)
        return True

    def _receive_odd(self, message: Json, method: Any, sink: Sink) -> None:
        """Neither request nor notification as they should be."""
        if method is None and ("result" in message or "error" in message):
            self.requests.take_answer(message)
        elif method is None or "id" in message:
            what = "Missing method" if method is None else 'jsonrpc must be "2.0" and method a string.'
            self._refuse(sink, messages.normal_id(message.get("id")), InvalidRequest(what))

    def _receive_request(self, message: Json, method: str, sink: Sink, weight_bytes: int) -> None:
        request_id = messages.normal_id(message["id"])
        if request_id is None:
            self._refuse(sink, None, InvalidRequest("id must be a string or an integer."))
            return
        params = message.get("params")
        if params is None:
            params = {}
        if type(params) is not dict:
            self._refuse(sink, request_id, InvalidParams("params must be an object."))
        elif request_id in self._in_flight or request_id in self._listens:
            self._refuse(sink, request_id, InvalidRequest("This id belongs to a request that is still running."))
        else:
            self._router.dispatch(self, request_id, method, params, sink, weight_bytes)

    def _receive_notification(self, method: str, params: Any) -> None:
        if type(params) is not dict:
            params = {}
        if method == "notifications/cancelled":
            self._cancel(params.get("requestId", params.get("id")))
        elif method in ("notifications/initialized", "initialized"):
            self._become_ready()
        elif method == "notifications/roots/list_changed":
            if not self.handshake.is_shutting_down:
                self.roots.changed()
        elif method == "exit":
            if self.handshake.is_shutting_down:
                self.end("exit")
        else:
            journal.debug("ignored notification %s", method)

    def _become_ready(self) -> None:
        view = self.handshake.view
        if view is None or self.handshake.is_ready:
            return
        self.handshake.is_ready = True
        if type(view.capabilities.get("roots")) is dict and "tools" in self._router.services.offered:
            self.roots.begin()

    def _cancel(self, request_id: Any) -> None:
        key = messages.normal_id(request_id)
        if key is None:
            return
        listen, call = self._listens.pop(key, None), self._in_flight.get(key)
        if listen is not None:
            self._router.services.subscriptions.close(listen)
            listen.cancel()
        elif call is not None:
            call.cancel()
            self.forget(call)

    def _receive_batch(self, batch: list[Any], sink: Sink, weight_bytes: int) -> None:
        problem = self._problem_with_batch(batch)
        if problem:
            self._refuse(sink, None, InvalidRequest(problem))
            return
        collected = BatchSink(sink, limit_bytes=self._router.services.settings.max_backlog_bytes)
        for number, member in enumerate(batch, start=1):
            self._receive_member(member, collected, weight_bytes // len(batch))
            if number % MEMBERS_A_TURN == 0:
                self.give_turn()
        collected.seal()

    def _problem_with_batch(self, batch: list[Any]) -> str | None:
        view = self.handshake.view
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
        sink.put(messages.error(request_id, shapes.error_object(error)))
