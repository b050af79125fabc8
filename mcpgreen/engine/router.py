"""Pass a request to its handler, and answer it with what the handler returns or raises.

Lists, ping and initialize are answered at once, in the reader. A call that runs a script gets a greenlet and waits for
a slot there; the reader never waits. Every exception of a feature ends here.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext, suppress
from functools import cache, cached_property
from importlib import import_module
from time import monotonic
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import gevent

from mcpgreen import journal
from mcpgreen.catalog.snapshot import KINDS
from mcpgreen.engine.changes import ChangeWatch
from mcpgreen.engine.link import Link
from mcpgreen.errors import InputNeeded, InternalError, InvalidParams, OutputTooLarge, RpcError, ToolFailure
from mcpgreen.features.call import Call, Route, Run, Slot, Target
from mcpgreen.features.services import Services
from mcpgreen.links.session import Request, Session
from mcpgreen.links.sink import Sink
from mcpgreen.protocol import messages, revision_fields
from mcpgreen.protocol.admission import admit, progress_token
from mcpgreen.protocol.messages import Line, size_of
from mcpgreen.protocol.revisions import Era
from mcpgreen.running.shares import Places, WaitingLine
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

if TYPE_CHECKING:
    from gevent.lock import Semaphore

    from mcpgreen.engine.call_log import CallLog

# Where the route of each method is declared: the module below `features`, which is imported when it is first needed.
ROUTES = {
    "initialize": ("basics", "INITIALIZE"),
    "server/discover": ("basics", "DISCOVER"),
    "logging/setLevel": ("basics", "SET_LEVEL"),
    "shutdown": ("basics", "SHUTDOWN"),
    "exit": ("basics", "EXIT"),
    **dict.fromkeys(KINDS, ("basics", "LIST")),
    "ping": ("basics", "PING"),
    "tools/call": ("tools", "CALL"),
    "resources/read": ("resources", "READ"),
    "resources/subscribe": ("resources", "SUBSCRIBE"),
    "resources/unsubscribe": ("resources", "UNSUBSCRIBE"),
    "prompts/get": ("prompts", "GET"),
    "skills/get": ("skills", "GET"),
    "resources/directory/read": ("skills", "READ_DIRECTORY"),
    "completion/complete": ("completion", "COMPLETE"),
    **{f"tasks/{name}": ("tasks.wires", name.upper()) for name in ("get", "result", "list", "cancel", "update")},
}
Serve = Callable[[Call, Route[Any], Any], Line | None]


@cache
def route_of(method: str) -> Route[Any]:
    module, name = ROUTES[method]
    route: Route[Any] = getattr(import_module(f"mcpgreen.features.{module}"), name)
    return route


class Router:
    """Dispatches the requests of all links of one server."""

    def __init__(self, services: Services, changes: ChangeWatch) -> None:
        self.services = services
        self._changes = changes
        self._slots = Places(services.settings.max_concurrent_requests)
        self._max_response_bytes = services.settings.max_response_bytes
        self._looking = 0  # requests that wait for a look at the disk
        self._line = Places(1)
        services.serve_call = self.serve_call
        self._gates: WeakValueDictionary[Session, Semaphore] = WeakValueDictionary()  # for calls that wait for a slot
        self._lines: WeakValueDictionary[Any, WaitingLine] = WeakValueDictionary()  # of tasks that wait

    @property
    def running(self) -> int:
        """How many slots are taken."""
        return self._slots.taken

    def _write_log(self, write: Callable[[CallLog], None]) -> None:
        """Write a line about a call. The call is answered even if that fails, as when no file can be opened."""
        try:
            write(self._log)
        except Exception as error:
            journal.error("cannot log a call: %s", error)

    @cached_property
    def _log(self) -> CallLog:
        # Imported late: neither start-up nor a successful call needs it, unless each call is logged.
        from mcpgreen.engine.call_log import CallLog

        return CallLog(self.services)

    def dispatch(
        self, link: Link, request_id: str | int, method: str, params: Json, sink: Sink, weight_bytes: int
    ) -> None:
        """Serve a request now, or start serving it. Never raises, never waits."""
        try:
            view = admit(method, params, link.session.handshake, self.services.offered_for(method))
        except RpcError as error:
            self.refuse(sink, request_id, error, method, params)
            return
        if method == "ping" and not journal.tells_calls:  # nothing to find, to wait for or to log
            sink.respond(messages.response(request_id, b"{}"))
            return
        session = None if view.revision.era == Era.STATELESS else link.session
        call = Call(request_id, method, params, view, session, link.stream, sink, self.services, weight_bytes)
        if journal.tells_calls:
            call.received_at = monotonic()
        try:
            if method == "subscriptions/listen":
                self.services.subscriptions.open(call)
            else:
                self._serve_or_start(call, route_of(method))
        except Exception as error:
            call.leave_stream()
            sink.respond(self._refusal(call, error))

    def refuse(
        self, sink: Sink, id: str | int | None, error: RpcError, method: str = "a request", params: object = None
    ) -> None:
        """Answer a request with an error before it becomes a call."""
        sink.respond(messages.error(id, revision_fields.error_object(error)))
        if journal.tells_failures:
            self._write_log(lambda log: log.refused(method, params, error))

    def _serve_or_start(self, call: Call, route: Route[Target]) -> None:
        """Answer a request that need not wait for anything, or start a greenlet that does the waiting."""
        if call.is_retry and route.may_repeat is not None and self.services.asking.take_up(call):
            return
        if route.uses_catalog:
            self._changes.catch_up()
        if route.uses_catalog and (self._looking or not self._changes.is_current(call.method)):
            # Behind a request that waits for a look at the disk, others wait too: they are answered in order.
            self._start(call, self._find_and_serve, route, None)
            return
        target = self._find(call, route)
        if route.needs_process(call, target):
            self._start(call, self._serve, route, target)
        elif route.waits:
            self._start(call, self._answer, route, target)
        else:
            call.sink.respond(self._answer(call, route, target))

    def _find(self, call: Call, route: Route[Target]) -> Target:
        target = route.find(call)
        if call.interaction.is_repeat and route.may_repeat is not None and not route.may_repeat(call, target):
            raise InvalidParams("This interaction has expired; start again without requestState.")
        return target

    def abandon(self, call: Request) -> None:
        """Cancel a call of a stopping server, and tell the client that it will not be finished."""
        if not call.is_cancelled:
            error = revision_fields.error_object(InternalError("The server is stopping."))
            call.sink.respond(messages.error(call.id, error))
        call.cancel()

    def _start(self, call: Call, serve: Serve, route: Route[Any], target: Any) -> None:
        self.services.waiting.require_place(free_slots=self._slots.free, owner=call.stream.owner)
        call.token = progress_token(call.params)
        call.stream.take(call)
        call.sink.expect()
        self.services.waiting.add(call)
        call.greenlet = gevent.spawn(self._finish, call, serve, route, target)

    def serve_call(self, call: Call) -> None:
        """Serve a call that no client waits for: that of a stored task. Never waits."""
        self.services.waiting.add(call)
        call.greenlet = gevent.spawn(self._finish, call, self._find_and_serve, route_of(call.method), None)

    def _finish(self, call: Call, serve: Serve, route: Route[Any], target: Any) -> None:
        """Answer with what `serve` returns or raises. Runs in the call's own greenlet."""
        try:
            try:
                line = serve(call, route, target)
            except Exception as error:
                line = self._refusal(call, error)
            if line is None:
                return  # it has got another greenlet
            call.sink.wait_for_room_for(size_of(line))
        except gevent.GreenletExit:
            if journal.tells_calls:
                self._write_log(lambda log: log.succeeded(call, "cancelled"))
            return  # no answer
        call.finish(line)

    def _find_and_serve(self, call: Call, route: Route[Target], _: None) -> Line | None:
        """Serve a request that needs a look at the disk, or a hook, first."""
        self._looking += 1
        try:
            target = self._find_after_look(call, route)
        finally:
            self._looking -= 1
        return (
            self._serve(call, route, target) if route.needs_process(call, target) else self._answer(call, route, target)
        )

    def _find_after_look(self, call: Call, route: Route[Target]) -> Target:
        """A list is always up to date. A request for one item waits for a long look only if it is unknown."""
        with self._line:  # so that requests that wait for the same look are answered in order
            is_late = not self._changes.look_for_a_moment(call.method)
            if is_late and call.method not in KINDS:
                with suppress(RpcError):
                    return self._find(call, route)
            elif self._changes.is_current(call.method):
                return self._find(call, route)
        self._changes.bring_up_to_date(call.method)
        return self._find(call, route)

    def _serve(self, call: Call, route: Route[Target], target: Target) -> Line | None:
        """Serve the call in a slot: a task when all before it that need the same places have theirs."""
        if route.prepare is not None and (other := route.prepare(call, target)) is not None:
            return self._answer(call, other, target)
        if call.task is None:
            return self._serve_in_slot(call, route, target)
        if not call.is_cancelled:
            call.greenlet = gevent.Greenlet(self._finish, call, self._serve_in_slot, route, target)
            self._line_of(call, route.turn(call, target)).append(call.greenlet)
        return None

    def _line_of(self, call: Call, turn: Slot | None) -> WaitingLine:
        """Return the tasks that wait for the same places as this one."""
        return self._lines.setdefault((turn and turn.places, call.stream.owner), WaitingLine())

    def _serve_in_slot(self, call: Call, route: Route[Target], target: Target) -> Line:
        """Wait for a slot and serve the call there. It waits for its tool's own turn first, so that it does not hold a
        slot meanwhile, and does not hold a slot while the client does not read."""
        call.wait_for_roots()
        while True:
            call.sink.wait_for_room()
            slot = Slot(self._slots, call.stream.owner, self._gate_of(call))
            call.run = Run(slot, route.turn(call, target))
            with call.run.turn or nullcontext(), call.run.slot:
                if call.is_cancelled:
                    raise gevent.GreenletExit  # it was killed, but got the free place first
                if call.sink.has_room:
                    self.services.waiting.remove(call)
                    if call.task is not None:
                        self._line_of(call, call.run.turn).remove(call.greenlet)
                    return self._answer(call, route, target)

    def _gate_of(self, call: Call) -> Semaphore | None:
        """Return the gate of a session: sessions of one owner take turns, because many people may share an address."""
        if call.session is None or call.stream.owner is None:
            return None
        from gevent.lock import Semaphore  # takes long to import, and a server with one client needs no gate

        return self._gates.setdefault(call.session, Semaphore(1))

    def _answer(self, call: Call, route: Route[Target], target: Target) -> Line:
        """Serve the request and return its response line, whatever the feature returns or raises."""
        failure = None
        try:
            try:
                result = route.serve(call, target)
            finally:
                call.wait_until_adopted()
                if call.promotion is not None:
                    call.promotion.settle()
        except ToolFailure as error:
            failure = error
            result = failure.result
        except InputNeeded as needed:
            result = needed.result
            if journal.tells_calls:
                self._write_log(lambda log: log.succeeded(call, "asks"))
            return messages.response(call.id, self._encoded(call, result, has_limit=True)[0])
        except Exception as error:
            return self._refusal(call, error)
        line: Line = b""
        if isinstance(result, bytes):
            line = messages.response(call.id, result)
        else:
            try:
                fitted = route.fit(result, call.view.revision) if call.task is None else result
                body = self._encoded(call, fitted, has_limit=not route.has_own_limit)
            except RpcError as error:
                return self._refusal(call, error)
            if call.task is not None:
                call.task.complete(result, b"".join(body))
            elif len(body) == 1:
                line = messages.response(call.id, body[0])
            else:
                line = messages.response_in_pieces(call.id, body)
        if journal.tells_calls or (journal.tells_failures and type(result) is dict and result.get("isError")):
            self._write_log(lambda log: log.ended(call, result, failure))
        return line

    def _refusal(self, call: Call, error: Exception) -> bytes:
        """Return the response line for an error. For an unexpected exception, it has no details."""
        if not isinstance(error, RpcError):
            journal.exception("request %r to %s failed unexpectedly", call.id, call.method)
            error = InternalError()
        if journal.tells_failures:
            self._write_log(lambda log: log.failed(call, error))
        body = revision_fields.error_object(error, call.view.revision)
        if call.task is not None:
            call.task.end("failed", error=body)
        return messages.error(call.id, body)

    def _encoded(self, call: Call, result: Json, *, has_limit: bool) -> list[bytes]:
        if call.task is None:
            result = revision_fields.finish(result, call.view.revision, self.services.identity.info)
        else:  # kept for clients of any revision
            result = {"resultType": "complete", **result}
        try:
            body = jsontext.dump_pieces(result)
        except ValueError as error:
            raise InternalError(f"The result cannot be written as JSON: {error}") from error
        limit_bytes = self._max_response_bytes
        if has_limit and sum(map(len, body)) > limit_bytes:
            raise OutputTooLarge(f"Response exceeded response size limit ({limit_bytes} bytes)")
        return body
