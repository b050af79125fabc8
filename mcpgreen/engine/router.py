"""From an admitted request to its handler, and from what the handler gives or raises to one line.

Lists, ping and greetings are answered at once, in the reader. What runs a script gets a greenlet and waits for a slot
there; the reader never waits. Whatever a feature raises ends here.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, NamedTuple

import gevent
from gevent.lock import Semaphore

from mcpgreen import journal, jsontext
from mcpgreen.engine.connection import Connection
from mcpgreen.engine.waiting import WaitingCalls
from mcpgreen.errors import InputNeeded, InternalError, InvalidParams, OutputTooLarge, RpcError, ToolFailure
from mcpgreen.features import lifecycle, listing, tools
from mcpgreen.features.call import Call
from mcpgreen.features.services import Services
from mcpgreen.features.sink import Line, Sink
from mcpgreen.features.slots import Slot
from mcpgreen.protocol import messages, questions, shapes
from mcpgreen.protocol.admission import admit, progress_token
from mcpgreen.running.results import failure_result

Json = dict[str, Any]

# What is the same for everybody needs no call. Ping exists in the handshake era only, where nothing may be added.
ANSWERS = {"ping": b"{}"}

NO_TURN = nullcontext()


def _unfitted(call: Call, result: Json) -> Json:
    return result


def _at_once(call: Call) -> None:
    return None


def _never(call: Call) -> bool:
    return False


def _always(call: Call) -> bool:
    return True


def _later(module: str, function: str) -> Callable[..., Any]:
    """A function of a feature that is imported when it is first used: start-up does not need it."""

    def load_and_run(*values: Any) -> Any:
        from importlib import import_module

        return getattr(import_module(f"mcpgreen.features.{module}"), function)(*values)

    return load_and_run


class Route(NamedTuple):
    """How a method is served: its handler; whether this request runs a script, for which its target is found first;
    whether it is about items of the catalog; what it waits for besides a slot; how its result is fitted;
    and whether the handler sees to it itself that a result is not too large."""

    handler: Callable[[Call], Json | bytes]
    runs_script: Callable[[Call], bool] = _never
    uses_catalog: bool = False
    may_repeat: Callable[[Call], bool] | None = None  # for what may ask: whether it may be run twice
    turn: Callable[[Call], Slot | None] = _at_once
    fit: Callable[[Call, Json], Json] = _unfitted
    has_own_limit: bool = False


ROUTES = {
    "initialize": Route(lifecycle.initialize),
    "server/discover": Route(lifecycle.discover),
    "logging/setLevel": Route(lifecycle.set_level),
    "shutdown": Route(lifecycle.shutdown),
    "exit": Route(lifecycle.leave),
    "tools/list": Route(listing.list_tools, uses_catalog=True),
    "tools/call": Route(
        tools.call_tool,
        tools.runs_script,
        uses_catalog=True,
        may_repeat=tools.may_repeat,
        turn=tools.turn,
        fit=tools.fit_result,
    ),
    "resources/list": Route(listing.list_resources, uses_catalog=True),
    "resources/templates/list": Route(listing.list_resource_templates, uses_catalog=True),
    "resources/read": Route(
        _later("resources", "read_resource"),
        _later("resources", "runs_script"),
        uses_catalog=True,
        may_repeat=_always,
        fit=_later("resources", "fit_result"),
        has_own_limit=True,  # of the content, which is longer once it is written as JSON
    ),
    "resources/subscribe": Route(
        _later("subscriptions", "subscribe"), _later("resources", "runs_script"), uses_catalog=True
    ),
    "resources/unsubscribe": Route(_later("subscriptions", "unsubscribe")),
    "prompts/list": Route(listing.list_prompts, uses_catalog=True),
    "prompts/get": Route(
        _later("prompts", "get_prompt"),
        _later("prompts", "runs_script"),
        uses_catalog=True,
        may_repeat=_always,
        fit=_later("prompts", "fit_result"),
    ),
    "completion/complete": Route(
        _later("completion", "complete"), _later("completion", "runs_script"), uses_catalog=True
    ),
}


class Router:
    """Dispatches the requests of all links of one server."""

    listen_methods = frozenset({"subscriptions/listen"})

    def __init__(self, services: Services) -> None:
        self.services = services
        self._slots = Semaphore(services.settings.max_concurrent_requests)
        self.waiting = WaitingCalls(  # for a slot; a link that forgets a call takes it out
            max_calls=services.settings.max_queued_requests, max_bytes=services.settings.max_queued_bytes
        )

    def dispatch(
        self, link: Connection, request_id: str | int, method: str, params: Json, sink: Sink, weight_bytes: int
    ) -> None:
        """Serve a request now, or start serving it. Never raises, never waits."""
        try:
            view = admit(method, params, link.handshake, self.services.offered)
        except RpcError as error:
            sink.put(messages.error(request_id, shapes.error_object(error)))
            return
        if method in ANSWERS:
            sink.put(messages.response(request_id, ANSWERS[method]))
            return
        call = Call(request_id, method, params, view=view, link=link, sink=sink, services=self.services)
        if method in self.listen_methods:
            self._listen(call)
            return
        route = ROUTES[method]
        if self._is_answered(call, route):
            return
        try:
            self.waiting.require_place(free_slots=self._slots.counter)
        except InternalError as busy:
            sink.put(messages.error(request_id, shapes.error_object(busy)))
        else:
            call.weight_bytes = weight_bytes
            self._start(call, route)

    def _is_answered(self, call: Call, route: Route) -> bool:
        """Answer a request that need not wait for anything."""
        try:
            if call.is_retry and route.may_repeat is not None and self.services.asking().take_up(call):
                return True
            if route.uses_catalog and not self.services.is_ready(call.method):
                return False  # a hook has to be run first, or a long look to be taken
            if self._runs_script(call, route):
                return False
        except Exception as error:
            call.sink.put(self._refusal(call, error))
        else:
            call.sink.put(self._answer(call, route))
        return True

    def _runs_script(self, call: Call, route: Route) -> bool:
        """Find what the request is about, and say whether that takes a script."""
        runs_script = route.runs_script(call)
        if call.is_repeat and route.may_repeat is not None and not route.may_repeat(call):
            raise InvalidParams("This interaction has expired; start again without requestState.")
        return runs_script

    def abandon(self, call: Call) -> None:
        """The server is going: tell the client that this request will not be finished."""
        if not call.is_cancelled:
            line = messages.error(call.id, shapes.error_object(InternalError("The server is stopping.")))
            call.sink.put(line)
            call.cancel()

    def _start(self, call: Call, route: Route) -> None:
        call.token = progress_token(call.params)
        call.link.take(call)
        call.sink.expect()
        self.waiting.add(call)
        call.greenlet = gevent.spawn(self._serve, call, route)

    def _listen(self, call: Call) -> None:
        try:
            self.services.subscriptions.open(call)
        except Exception as error:
            call.sink.put(self._refusal(call, error))
        else:
            call.link.open_listen(call)

    def _serve(self, call: Call, route: Route) -> None:
        try:
            if route.uses_catalog and call.target is None:
                # A hook had to be run first. Another call may have done it by now; the target is still to be found.
                self.services.make_ready(call.method)
                call.has_waited = True
                if not self._runs_script(call, route):
                    call.finish(self._answer(call, route))
                    return
            call.wait_for_roots()
            # Its own turn first: who waits for that must not hold a slot. Room last: it may be gone by then.
            call.turn, call.slot = route.turn(call), Slot(self._slots)
            with call.turn or NO_TURN, call.slot:
                call.sink.wait_for_room()
                self.waiting.remove(call)
                line = self._answer(call, route)
        except gevent.GreenletExit:
            return  # cancelled: no answer
        except Exception as error:
            line = self._refusal(call, error)
        call.finish(line)
        call.leave_output_place()

    def _answer(self, call: Call, route: Route) -> Line:
        """The response line for whatever the handler does."""
        try:
            try:
                result = route.handler(call)
            finally:
                call.wait_until_adopted()
        except ToolFailure as failure:
            result = failure_result(failure)
        except InputNeeded as needed:
            result = questions.input_required(needed.questions, needed.state)
            return messages.response(call.id, self._encoded(call, result, has_limit=True)[0])
        except Exception as error:
            return self._refusal(call, error)
        if isinstance(result, bytes):
            return messages.response(call.id, result)
        try:
            body = self._encoded(call, route.fit(call, result), has_limit=not route.has_own_limit)
        except RpcError as error:
            return self._refusal(call, error)
        return messages.response(call.id, body[0]) if len(body) == 1 else messages.response_in_pieces(call.id, body)

    def _refusal(self, call: Call, error: Exception) -> bytes:
        """What a client hears of an error: of one that nobody foresaw, only that there was one."""
        if not isinstance(error, RpcError):
            journal.exception("request %r to %s failed unexpectedly", call.id, call.method)
            error = InternalError()
        return messages.error(call.id, shapes.error_object(error, call.view.revision))

    def _encoded(self, call: Call, result: Json, *, has_limit: bool) -> list[bytes]:
        finished = shapes.finish(result, call.view.revision, self.services.identity.info)
        try:
            body = jsontext.dump_pieces(finished)
        except ValueError as error:
            raise InternalError(f"The result cannot be written as JSON: {error}") from error
        limit_bytes = self.services.settings.max_response_bytes
        if has_limit and limit_bytes and sum(map(len, body)) > limit_bytes:
            raise OutputTooLarge(f"Response exceeded response size limit ({limit_bytes} bytes)")
        return body
