"""Sessions and streams, our requests to clients, and the calls that wait for a slot.

A session is what the client and the server have agreed on: the result of `initialize`, the log level, roots, our
requests. A stream is where the frames of its requests go, and which of their ids are in use. A session may have several
streams, one after the other or at the same time. Stateless requests have a stream and no session.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

import gevent
from gevent.event import AsyncResult, Event

from mcpgreen import journal
from mcpgreen.errors import AnswerOverdue, InternalError, LinkClosed, MethodNotFound, RefusedByClient
from mcpgreen.links.roots import SessionRoots
from mcpgreen.links.sink import Answerable, Sink
from mcpgreen.project.roots import Roots
from mcpgreen.protocol import messages
from mcpgreen.protocol.admission import ClientView, Handshake
from mcpgreen.running.shares import Shares
from mcpgreen.settings.settings import Settings
from mcpgreen.text.json_types import Json

if TYPE_CHECKING:
    from mcpgreen.links.principal import Principal

ID_BYTES = 16
THROTTLE_WINDOW_SECS = 60.0
MAX_REASON_CHARS = 1000  # of the message in a client's error, which a script gets
MAX_QUEUED_REQUESTS = 4096
MAX_QUEUED_BYTES = 16 << 20  # of memory, roughly
REFUSED_FACTOR = 2  # times the memory beyond which reading is slow


class Request(Answerable, Protocol):
    """A call, as the stream of its answer knows it."""

    number: int
    method: str
    sink: Sink
    stream: Stream
    weight_bytes: int

    def cancel(self, by: str = ...) -> None: ...


class Stream:
    """A pipe is one stream. Over HTTP each request has a stream of its own, so equal ids do not meet. `idle` is set
    while no request is in flight. `transport` is the name that scripts see; `principal` is the caller, if the transport
    knows it. Calls of one `owner` take turns with the calls of other owners."""

    def __init__(
        self, sink: Sink, *, transport: str, principal: Principal | None = None, owner: Hashable = None
    ) -> None:
        self.sink = sink
        self.transport = transport
        self.principal = principal
        self.owner = owner
        self.link = 0  # the number of its client, once that is known
        self.met: object = None  # the client that was told of, if it has no session
        self.in_flight: dict[str | int, Request] = {}
        self.listens: dict[str | int, Request] = {}  # open subscriptions, which end with the client
        self.idle = Event()
        self.idle.set()

    def is_used(self, request_id: str | int) -> bool:
        return request_id in self.in_flight or request_id in self.listens

    def take(self, call: Request) -> None:
        """Register a call: from now on it can be cancelled, and its id is in use."""
        self.in_flight[call.id] = call
        self.idle.clear()

    def forget(self, call: Request) -> None:
        if self.in_flight.get(call.id) is call:
            del self.in_flight[call.id]
        if not self.in_flight:
            self.idle.set()


class Session:
    """Frames that belong to no request go to `sink`. `ended` is set to the reason when the session should end.
    `needs_token`: messages have to carry a token, because others than the client may write to us. Only the `principal`
    that opened the session may use it. `waits_for_initialized`: requests are refused before
    `notifications/initialized`; otherwise the first request counts as that notification."""

    def __init__(
        self,
        sink: Sink,
        settings: Settings,
        configured: Roots,
        handshake: Handshake | None = None,
        *,
        needs_token: bool = False,
        principal: Principal | None = None,
        waits_for_initialized: bool = True,
    ) -> None:
        self.sink = sink
        self.waits_for_initialized = waits_for_initialized
        self.principal = principal
        self.link = 0  # its number
        self.task_owner = ""  # to whom its tasks belong, if its client has no name
        self.handshake = handshake or Handshake()
        self.requests = OutgoingRequests(needs_token=needs_token)
        self.roots = SessionRoots(configured, self.requests, sink, settings, needs_token=needs_token)
        self.streams: set[Stream] = set()
        self.ended: AsyncResult = AsyncResult()
        self._shutdown_secs: float = settings.shutdown_timeout
        self._shutdown_timer: gevent.Greenlet | None = None

    def become_ready(self, *, needs_roots: bool) -> None:
        """Handle `notifications/initialized`."""
        view = self.handshake.view
        if view is None or self.handshake.is_ready:
            return
        self.handshake.is_ready = True
        if needs_roots and type(view.capabilities.get("roots")) is dict:
            self.roots.begin()

    def begin_shutdown(self) -> None:
        """Handle `shutdown`: the client has a few seconds to send `exit`."""
        self.handshake.is_shutting_down = True
        if self._shutdown_timer is None:
            self._shutdown_timer = gevent.spawn_later(self._shutdown_secs, self.end, "shutdown timeout")

    def end(self, reason: str) -> None:
        self.requests.close()  # the client is going, and will answer nothing any more
        if not self.ended.ready():
            self.ended.set(reason)

    def close(self) -> None:
        if self._shutdown_timer is not None:
            self._shutdown_timer.kill(block=False)
        self.requests.close()
        self.roots.close()

    def log(self, level: str, logger: str, text: str) -> None:
        """Send a log message of the server itself, if the client wants this level."""
        view = self.handshake.view
        if self.handshake.is_ready and view is not None and wants_level(view, level):
            self.sink.notify(messages.notification("notifications/message", log_params(level, logger, text)))


def wants_level(view: ClientView, level: str) -> bool:
    return view.log_level is not None and journal.LEVELS.index(level) >= journal.LEVELS.index(view.log_level)


def log_params(level: str, logger: str | None, data: object) -> Json:
    params: Json = {"level": level, "data": data}
    if logger:
        params["logger"] = logger
    return params


class Throttle:
    """Lets through at most `limit_per_minute` messages in any minute. A limit of 0 means no limit."""

    def __init__(self, limit_per_minute: int) -> None:
        self._sent_at: deque[float] = deque(maxlen=limit_per_minute)

    def count(self) -> bool:
        """Count one more message; return False if it is one too many."""
        sent_at, now = self._sent_at, time.monotonic()
        if sent_at and len(sent_at) == sent_at.maxlen and sent_at[0] > now - THROTTLE_WINDOW_SECS:
            return False
        sent_at.append(now)
        return True


class OutgoingRequests:
    """Our requests to the client of one session, and the greenlets that wait for its answers. In the stateless era a
    server sends no requests. Callers check that the client has declared the capability that a request needs.

    Ids are integers from 1, which all clients understand; each direction has its own ids. `needs_token`: messages have
    to carry a token. Responses cannot, as no revision has a place for one, so ids are unguessable strings.

    Rule: a request leaves nothing behind, however it ends. Its entry lives exactly as long as a greenlet waits for the
    answer, and an answer without an entry (late, a second one, to nothing) is ignored.
    """

    def __init__(self, *, needs_token: bool = False) -> None:
        self._needs_token = needs_token
        self._last_id = 0
        self._pending: dict[str | int, AsyncResult] = {}
        self._is_closed = False

    def ask(self, sink: Sink, method: str, params: Json | None = None, *, timeout_secs: float) -> Any:
        """Send a request by this sink and wait for its result, which may be any JSON value.

        Raises `RefusedByClient`, `AnswerOverdue` or `LinkClosed`. When the wait ends without an answer, also because
        the waiting greenlet is killed, the request is cancelled.
        """
        if self._is_closed:
            raise LinkClosed(f"{method} cannot be sent: the connection is closed")
        if not sink.carries_requests:
            reason = "The client cannot be asked: it does not accept a stream in response to this request."
            raise RefusedByClient(reason, code=MethodNotFound.code)
        self._last_id += 1
        request_id = os.urandom(ID_BYTES).hex() if self._needs_token else self._last_id
        answer = self._pending[request_id] = AsyncResult()
        sink.request(messages.request(request_id, method, params))
        try:
            answer.wait(timeout_secs)
        finally:
            if self._pending.pop(request_id, None) is not None:
                withdrawn = {"requestId": request_id, "reason": "The answer is no longer needed."}
                sink.notify(messages.notification("notifications/cancelled", withdrawn))
        if not answer.ready():
            raise AnswerOverdue(f"no answer to {method} within {timeout_secs:g} s")
        return answer.get()

    def take_answer(self, message: Json) -> None:
        """Hand a response to the greenlet that waits for it. A response to nothing is ignored."""
        request_id = messages.normal_id(message.get("id"))
        answer = None if request_id is None else self._pending.pop(request_id, None)
        if answer is None:
            journal.debug("ignored a response that matches no open request")
        elif message.get("error") is not None or "result" not in message:
            answer.set_exception(_refusal(message.get("error")))
        else:
            answer.set(message["result"])

    def close(self) -> None:
        """No answer will come any more: raise LinkClosed where greenlets wait for one."""
        self._is_closed = True
        for answer in self._pending.values():
            answer.set_exception(LinkClosed("the connection is closed"))
        self._pending.clear()


def _refusal(error: object) -> RefusedByClient:
    """Return the error of a client as an exception, whatever its shape."""
    if type(error) is not dict:
        error = {}
    code, message = error.get("code"), error.get("message")
    return RefusedByClient(
        message[:MAX_REASON_CHARS] if type(message) is str and message else "The client gave no reason.",
        code=code if type(code) is int else None,
    )


class WaitingCalls:
    """The calls of one server that wait for a place to run: how many there are, and how much memory they take.

    Both are limited, and each caller has a share of both. Beyond the number, requests are refused. Beyond the memory, a
    transport reads slowly, which makes the client wait; beyond twice the memory, requests are refused. Reading never
    stops, because then nothing could be cancelled.
    """

    def __init__(self, *, max_calls: int, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._calls: dict[Request, Hashable] = {}  # with their owners
        self._places = Shares(max_calls)
        self._bytes = Shares(REFUSED_FACTOR * max_bytes)
        self._room = Event()
        self._room.set()

    def __len__(self) -> int:
        return len(self._calls)

    def __iter__(self) -> Iterator[Request]:
        """The calls in the order of their arrival."""
        return iter(self._calls)

    @property
    def is_heavy(self) -> bool:
        """Whether transports should read slowly."""
        return self._bytes.held > self._max_bytes

    def wait_for_room(self, secs: float) -> None:
        """Wait until the requests take less memory, or the time is up."""
        self._room.wait(secs)

    def require_place(self, *, free_slots: int, owner: Hashable = None) -> None:
        """Raises InternalError if no more calls can wait, of all callers or of this one."""
        for whose, what in ((None, "requests"), (owner, "of your requests")):
            if not (self._places.has_room(whose, spare=free_slots) and self._bytes.has_room(whose, 0)):
                raise InternalError(f"Too many {what} are waiting; try again later.")

    def add(self, call: Request) -> None:
        owner = self._calls[call] = call.stream.owner
        self._places.take(owner)
        self._bytes.take(owner, call.weight_bytes)
        if self.is_heavy:
            self._room.clear()

    def remove(self, call: Request) -> None:
        """The call runs now, or never will. If it was not waiting, do nothing."""
        if call in self._calls:
            owner = self._calls.pop(call)
            self._places.give_back(owner)
            self._bytes.give_back(owner, call.weight_bytes)
            if not self.is_heavy:
                self._room.set()
