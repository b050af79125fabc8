"""From an admitted request to its handler, and from what the handler gives or raises to one line.

Lists, ping and initialize are answered at once, in the reader. What runs a script gets a greenlet and waits for a slot
there; the reader never waits. Whatever a feature raises ends here.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextlib import nullcontext
from functools import cached_property
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakValueDictionary

import gevent
from gevent.lock import Semaphore

from mcpgreen import journal
from mcpgreen.catalog.lists.pages import KINDS
from mcpgreen.engine.changes import ChangeWatch
from mcpgreen.engine.link import Link
from mcpgreen.errors import InputNeeded, InternalError, InvalidParams, OutputTooLarge, RpcError, ToolFailure
from mcpgreen.features import lifecycle, listing, tools
from mcpgreen.features.call import Call
from mcpgreen.features.run import Run, Slot
from mcpgreen.features.services import Services
from mcpgreen.links.sink import Line, Sink
from mcpgreen.links.stream import Request
from mcpgreen.protocol import messages, revision_fields
from mcpgreen.protocol.admission import admit, progress_token
from mcpgreen.protocol.input import requests
from mcpgreen.protocol.revisions import Era, Revision
from mcpgreen.running.scripts.results import failure_result
from mcpgreen.text import jsontext

if TYPE_CHECKING:
    from mcpgreen.engine.call_log import CallLog

Json = dict[str, Any]

# What is the same for everybody needs no call. Ping exists in the handshake era only, where nothing may be added.
ANSWERS = {"ping": b"{}"}

NO_TURN = nullcontext()


def _later(module: str, function: str) -> Callable[..., Any]:
    """A function of a feature that is imported when it is first used: start-up does not need it."""

    def load_and_run(*values: Any) -> Any:
        from importlib import import_module

        return getattr(import_module(f"mcpgreen.features.{module}"), function)(*values)

    return load_and_run


class Route(NamedTuple):
    """How a method is served."""

    handler: Callable[[Call], Json | bytes]
    runs_script: Callable[[Call], bool] | None = None  # whether this request does, for which its target is found first
    uses_catalog: bool = False
    may_repeat: Callable[[Call], bool] | None = None  # for what may ask: whether it may be run twice
    turn: Callable[[Call], Slot | None] | None = None  # what a request waits for besides a slot
    fit: Callable[[Json, Revision], Json] | None = None
    has_own_limit: bool = False  # the handler sees to it itself that a result is not too large


ROUTES = {
    "initialize": Route(lifecycle.initialize),
    "server/discover": Route(lifecycle.discover),
    "logging/setLevel": Route(lifecycle.set_level),
    "shutdown": Route(lifecycle.shutdown),
    "exit": Route(lifecycle.leave),
    **dict.fromkeys(KINDS, Route(listing.list_page, uses_catalog=True)),
    "tools/call": Route(
        tools.call_tool,
        tools.runs_script,
        uses_catalog=True,
        may_repeat=tools.may_repeat,
        turn=tools.turn,
        fit=revision_fields.fit_call_result,
    ),
    "resources/read": Route(
        _later("resources", "read_resource"),
        _later("resources", "runs_script"),
        uses_catalog=True,
        may_repeat=lambda call: True,
        fit=revision_fields.fit_contents,
        has_own_limit=True,  # of the content, which is longer once it is written as JSON
    ),
    "resources/subscribe": Route(
        lambda call: call.services.subscriptions.subscribe(call), _later("resources", "runs_script"), uses_catalog=True
    ),
    "resources/unsubscribe": Route(lambda call: call.services.subscriptions.unsubscribe(call)),
    "prompts/get": Route(
        _later("prompts.prompts", "get_prompt"),
        _later("prompts.prompts", "runs_script"),
        uses_catalog=True,
        may_repeat=lambda call: True,
        fit=revision_fields.fit_prompt_result,
    ),
    "completion/complete": Route(
        _later("completion.completion", "complete"), _later("completion.completion", "runs_script"), uses_catalog=True
    ),
}


class Router:
    """Dispatches the requests of all links of one server."""

    def __init__(self, services: Services, changes: ChangeWatch) -> None:
        self.services = services
        self._changes = changes
        self._slots = Semaphore(services.settings.max_concurrent_requests)
        self._gates: WeakValueDictionary[Hashable, Semaphore] = WeakValueDictionary()  # of clients that wait for one

    @property
    def running(self) -> int:
        """How many places are taken."""
        free: int = self._slots.counter
        return int(self.services.settings.max_concurrent_requests) - free

    def tell(self, what: str, *values: Any) -> None:
        """A line about a call in the log, by one of its methods. Whatever is wrong there, as when nothing can be opened
        any more, costs no answer."""
        try:
            getattr(self._log, what)(*values)
        except Exception as error:
            journal.error("a call cannot be told of: %s", error)

    @cached_property
    def _log(self) -> CallLog:
        # Start-up does not need it, nor does a call that succeeds, unless somebody wants a line of each.
        from mcpgreen.engine.call_log import CallLog

        return CallLog(self.services)

    def dispatch(
        self, link: Link, request_id: str | int, method: str, params: Json, sink: Sink, weight_bytes: int
    ) -> None:
        """Serve a request now, or start serving it. Never raises, never waits."""
        try:
            view = admit(method, params, link.session.handshake, self.services.offered)
        except RpcError as error:
            sink.respond(messages.error(request_id, revision_fields.error_object(error)))
            if journal.tells_failures:
                self.tell("refused", method, params, error)
            return
        if method in ANSWERS:
            sink.respond(messages.response(request_id, ANSWERS[method]))
            if journal.tells_calls:
                self.tell("answered", method)
            return
        session = None if view.revision.era == Era.STATELESS else link.session
        call = Call(
            request_id,
            method,
            params,
            view=view,
            session=session,
            stream=link.stream,
            sink=sink,
            services=self.services,
        )
        call.weight_bytes = weight_bytes
        if journal.tells_calls:
            call.received_at = monotonic()
        try:
            if method == "subscriptions/listen":
                self.services.subscriptions.open(call)
            elif not self._is_answered(call, ROUTES[method]):
                self.services.waiting.require_place(free_slots=self._slots.counter, owner=link.stream.owner)
                self._start(call, ROUTES[method])
        except Exception as error:
            call.leave_stream()
            sink.respond(self._refusal(call, error))

    def _is_answered(self, call: Call, route: Route) -> bool:
        """Answer a request that need not wait for anything."""
        if call.is_retry and route.may_repeat is not None and self.services.asking.take_up(call):
            return True
        if route.uses_catalog and not self._changes.is_ready(call.method):
            return False  # a hook has to be run first, or a long look to be taken
        if self._runs_script(call, route):
            return False
        call.sink.respond(self._answer(call, route))
        return True

    def _runs_script(self, call: Call, route: Route) -> bool:
        """Find what the request is about, and say whether that takes a script."""
        runs_script = route.runs_script is not None and route.runs_script(call)
        if call.interaction.is_repeat and route.may_repeat is not None and not route.may_repeat(call):
            raise InvalidParams("This interaction has expired; start again without requestState.")
        return runs_script

    def abandon(self, call: Request) -> None:
        """The server is going: tell the client that this request will not be finished."""
        if not call.is_cancelled:
            call.sink.respond(
                messages.error(call.id, revision_fields.error_object(InternalError("The server is stopping.")))
            )
        call.cancel()

    def _start(self, call: Call, route: Route) -> None:
        call.token = progress_token(call.params)
        call.stream.take(call)
        call.sink.expect()
        self.services.waiting.add(call)
        call.greenlet = gevent.spawn(self._serve, call, route)

    def _serve(self, call: Call, route: Route) -> None:
        try:
            if route.uses_catalog and call.target is None:
                # A hook had to be run first. Another call may have done it by now; the target is still to be found.
                self._changes.make_ready(call.method)
                call.has_waited = True
                if not self._runs_script(call, route):
                    call.finish(self._answer(call, route))
                    return
            call.wait_for_roots()
            line = self._run(call, route)
        except gevent.GreenletExit:
            if journal.tells_calls:
                self.tell("cancelled", call)
            return  # no answer
        except Exception as error:
            line = self._refusal(call, error)
        call.finish(line)

    def _run(self, call: Call, route: Route) -> Line:
        """In a slot, for which the call has to wait. Its own turn comes first, because whoever waits for that must not
        hold a slot; and nobody holds one whose client does not read."""
        while True:
            call.sink.wait_for_room()
            call.run = Run(Slot(self._slots, self._gate_of(call)), None if route.turn is None else route.turn(call))
            with call.run.turn or NO_TURN, call.run.slot:
                if call.is_cancelled:
                    raise gevent.GreenletExit  # which is on its way: a place that was free came first
                if call.sink.has_room:
                    self.services.waiting.remove(call)
                    return self._answer(call, route)

    def _gate_of(self, call: Call) -> Semaphore | None:
        owner = call.stream.owner
        if owner is None:
            return None
        gate = self._gates.get(owner)
        if gate is None:
            gate = self._gates[owner] = Semaphore(1)
        return gate

    def _answer(self, call: Call, route: Route) -> Line:
        """The response line for whatever the handler does."""
        failure = None
        try:
            try:
                result = route.handler(call)
            finally:
                call.wait_until_adopted()
        except ToolFailure as error:
            failure = error
            result = failure_result(failure)
        except InputNeeded as needed:
            result = requests.input_required(needed.questions, needed.state)
            if journal.tells_calls:
                self.tell("asks", call)
            return messages.response(call.id, self._encoded(call, result, has_limit=True)[0])
        except Exception as error:
            return self._refusal(call, error)
        line: Line
        if isinstance(result, bytes):
            line = messages.response(call.id, result)
        else:
            try:
                fitted = result if route.fit is None else route.fit(result, call.view.revision)
                body = self._encoded(call, fitted, has_limit=not route.has_own_limit)
            except RpcError as error:
                return self._refusal(call, error)
            line = messages.response(call.id, body[0]) if len(body) == 1 else messages.response_in_pieces(call.id, body)
        if journal.tells_calls or (journal.tells_failures and type(result) is dict and result.get("isError")):
            self.tell("ended", call, result, failure)
        return line

    def _refusal(self, call: Call, error: Exception) -> bytes:
        """What a client hears of an error: of one that nobody foresaw, only that there was one."""
        if not isinstance(error, RpcError):
            journal.exception("request %r to %s failed unexpectedly", call.id, call.method)
            error = InternalError()
        if journal.tells_failures:
            self.tell("failed", call, error)
        return messages.error(call.id, revision_fields.error_object(error, call.view.revision))

    def _encoded(self, call: Call, result: Json, *, has_limit: bool) -> list[bytes]:
        finished = revision_fields.finish(result, call.view.revision, self.services.identity.info)
        try:
            body = jsontext.dump_pieces(finished)
        except ValueError as error:
            raise InternalError(f"The result cannot be written as JSON: {error}") from error
        limit_bytes = self.services.settings.max_response_bytes
        if has_limit and limit_bytes and sum(map(len, body)) > limit_bytes:
            raise OutputTooLarge(f"Response exceeded response size limit ({limit_bytes} bytes)")
        return body
