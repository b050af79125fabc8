"""`Call`: everything that a handler may know about a request, and everything that it may send while it works; and
`Route`, which says how a method is served.

A call hides era and transport. Its progress and log messages go out before its response and never after it; nothing of
a cancelled call goes out at all (the sink checks `is_cancelled` next to the write). While its script runs, a call has a
`Run`: places, files, helper greenlets, and room in memory for what the script prints. Its `Interaction` is what it and
its client tell each other besides the result.

Rules: a place that is taken is given back exactly once, whatever happens to the call: see `Slot`. Only the transitions
of `TRANSITIONS` can happen; any other one is a fault of the server.
"""

from __future__ import annotations

from binascii import b2a_base64
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import gevent

from mcpgreen import journal
from mcpgreen.links.session import Session, Stream, Throttle, log_params, wants_level
from mcpgreen.links.sink import Sink
from mcpgreen.protocol import messages, revision_fields
from mcpgreen.protocol.admission import ClientView, progress_token
from mcpgreen.protocol.messages import Line
from mcpgreen.protocol.revisions import Revision
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

if TYPE_CHECKING:
    from gevent.event import Event as Bell
    from gevent.lock import Semaphore

    from mcpgreen.features.services import Services
    from mcpgreen.features.tasks.running import RunningTask
    from mcpgreen.features.tools import Promotion
    from mcpgreen.links.principal import Principal
    from mcpgreen.project.roots import Roots
    from mcpgreen.running.processes.pipes import Capture, OutputPlace
    from mcpgreen.running.processes.process import Child
    from mcpgreen.running.processes.run import Deadline, Outcome
    from mcpgreen.running.resident.process import Exchange
    from mcpgreen.running.scripts.scratch import CallFiles
    from mcpgreen.running.shares import Places

MAX_KEY_CHARS = 200
URL_SAFE = bytes.maketrans(b"+/", b"-_")  # in base64
LARGE_ARGUMENTS_BYTES = 65536
MAX_NOTICE_BYTES = 1 << 20
STDERR_END_BYTES = 65_536

Target = TypeVar("Target")  # what a request is about: a tool, a prompt, a resource; None for a method without one


class State:
    RUNNING = "running"
    ASKING = "asking"  # by requests of the server, whose answers are waited for
    PARKED = "parked"  # its request is answered with input requests, and the next one may adopt it
    ADOPTED = "adopted"  # it goes on as the call of the request that brought the answers
    GIVEN_UP = "given up"  # the client did not come back
    TASK = "task"  # its request is answered with a task, which gets the result
    CANCELLED = "cancelled"
    FINISHED = "finished"


class Event:
    ASK = "ask"
    STOP_ASKING = "stop asking"
    PARK = "park"
    ADOPT = "adopt"
    GIVE_UP = "give up"
    DETACH = "detach"
    CANCEL = "cancel"
    FINISH = "finish"


HEARD = frozenset({State.RUNNING, State.ASKING, State.ADOPTED})  # messages of the call go to its client
ENDED_EARLY = frozenset({State.CANCELLED, State.GIVEN_UP})
# A greenlet that is being killed may run once more, and a stopping server cancels every call.
STAYS_ENDED = {state: state for state in ENDED_EARLY}
# Where each event leads to, from each state in which it can happen.
TRANSITIONS: dict[str, dict[str, str]] = {
    Event.ASK: {State.RUNNING: State.ASKING, State.TASK: State.TASK},
    Event.STOP_ASKING: {  # the script has ended, and may have asked nothing
        **{state: state for state in (*HEARD, *ENDED_EARLY, State.PARKED, State.TASK, State.FINISHED)},
        State.ASKING: State.RUNNING,
    },
    Event.PARK: dict.fromkeys((State.RUNNING, State.ADOPTED), State.PARKED),
    Event.ADOPT: {State.PARKED: State.ADOPTED},
    Event.GIVE_UP: {State.PARKED: State.GIVEN_UP},
    Event.DETACH: dict.fromkeys((State.RUNNING, State.ADOPTED), State.TASK),
    Event.CANCEL: dict.fromkeys((*HEARD, State.TASK), State.CANCELLED) | STAYS_ENDED,
    Event.FINISH: dict.fromkeys((*HEARD, State.TASK), State.FINISHED) | STAYS_ENDED,
}


class IllegalTransition(Exception):
    """A transition that is not in the table: a fault of the server."""


class Interaction:
    """The state of one call, and what it and its client tell each other besides the result."""

    def __init__(self) -> None:
        self.state = State.RUNNING
        self.answers: Json = {}  # of the client so far, by key
        self.own_state: str | None = None  # of a script that prints its input requests and is run again
        self.elicitation_ids: list[str] = []  # of URLs that the user agreed to visit
        self.unmet_needs: list[str] = []  # capabilities that a script needed and the client lacks
        self.is_repeat = False  # a retry whose script has ended, so that it has to be run again
        self.adopted: Bell | None = None  # rings when a parked call is adopted

    def on(self, event: str) -> None:
        """Go to the next state. Raises IllegalTransition if the event cannot happen in this one."""
        try:
            self.state = TRANSITIONS[event][self.state]
        except KeyError:
            raise IllegalTransition(f"{event} while {self.state}") from None


class Call:
    """One request in progress. `session` is None for a stateless one. The response goes to `sink`: the stream's own, or
    that of a batch. The request takes `weight_bytes` of memory. `reported` is the progress of its script."""

    reported: tuple[float, float | None, str | None] | None = None

    def __init__(
        self,
        id: str | int,
        method: str,
        params: Json,
        view: ClientView,
        session: Session | None,
        stream: Stream,
        sink: Sink,
        services: Services,
        weight_bytes: int = 0,
    ) -> None:
        self.id = id
        self.method = method
        self.params = params
        self.view = view
        self.session = session
        self.stream = stream
        self.sink = sink
        self.services = services
        self.weight_bytes = weight_bytes
        self.serial = services.next_serial()  # marks the files and processes of its script
        self.interaction = Interaction()
        self.run: Run | None = None  # while it has a script
        self.promotion: Promotion | None = None  # if it may become a task
        self.task: RunningTask | None = None  # if it has become one
        self.own_roots: Roots | None = None  # of a task that was stored with them
        self.token: str | int | None = None  # for progress, if the client gave one and the call has a greenlet
        self.received_at = 0.0  # set if the journal shows calls
        self.required_scopes: Sequence[str] = ()  # that the caller needs; set when the target is found
        self.greenlet: gevent.Greenlet | None = None
        self._arguments_json: bytes | None = None
        self._last_progress: float | None = None
        self._progress_throttle: Throttle | None = None
        self._log_throttle: Throttle | None = None

    def __repr__(self) -> str:
        return f"<Call {self.id!r} {self.method}>"

    @property
    def worker_key(self) -> bytes:
        """A file name for the request: base64url of its JSON id, or a digest if that is too long."""
        text = b"%d" % self.id if type(self.id) is int else jsontext.dumps(self.id)
        key = b2a_base64(text, newline=False).rstrip(b"=").translate(URL_SAFE)
        return key if len(key) <= MAX_KEY_CHARS else jsontext.digest_of_chunks([text]).encode("ascii")

    @property
    def roots(self) -> Roots:
        """Return the roots in force now: the client's, or else those in the settings."""
        return self.own_roots or (self.services.roots if self.session is None else self.session.roots.current)

    @property
    def principal(self) -> Principal | None:
        """The caller; None if the transport does not tell callers apart."""
        return self.stream.principal

    @property
    def auth_json(self) -> str:
        """The claims of the caller for scripts; empty without a principal."""
        return "" if self.principal is None else self.principal.claims_json

    def require_scopes(self, scopes: Sequence[str]) -> None:
        """Remember what scopes the target needs. Raises InsufficientScope if the caller does not have them."""
        self.required_scopes = scopes
        if self.principal is not None:
            self.principal.require(scopes)

    @property
    def is_cancelled(self) -> bool:
        return self.interaction.state in ENDED_EARLY

    @property
    def is_stateless(self) -> bool:
        return self.session is None

    @property
    def client_variables(self) -> dict[str, str]:
        """What scripts may know of the client."""
        view = self.view
        if view.variables is None:
            from mcpgreen.protocol.input import requests  # needed with the first script

            view.variables = requests.client_variables(view.capabilities, view.revision, self.stream.transport)
        return view.variables

    @property
    def arguments(self) -> Any:
        """The arguments as the client sent them."""
        if self._arguments_json is not None:
            return jsontext.loads(self._arguments_json)
        return self.params.get("arguments")

    def keep_arguments_as(self, encoded: bytes) -> None:
        """Keep large arguments only as JSON, so that they are not in memory twice while a script runs."""
        if len(encoded) > LARGE_ARGUMENTS_BYTES:
            self._arguments_json = encoded
            del self.params["arguments"]

    @property
    def is_retry(self) -> bool:
        """Whether the client repeats a request with its answers."""
        return ("requestState" in self.params or "inputResponses" in self.params) and self.is_stateless

    @property
    def are_roots_known(self) -> bool:
        """Whether the client has named its roots, or need not be asked for them."""
        return self.session is None or bool(self.session.roots.known.is_set())

    def wait_for_roots(self) -> None:
        """Wait until the client has named its roots, if it was asked for them."""
        if self.session is not None and not self.session.roots.known.is_set():
            self.session.roots.wait_until_known(self.stream.sink)

    def progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Send progress to a client that asked for it: only if it has increased, and not too often."""
        self.reported = progress, total, message
        if self.token is None or not (self.task is not None or self.interaction.state in HEARD):
            return
        if self._last_progress is not None and progress <= self._last_progress:
            return
        if self._progress_throttle is None:
            self._progress_throttle = Throttle(self.services.settings.max_progress_per_min)
        if not self._progress_throttle.count():
            return
        self._last_progress = progress
        params: Json = {"progressToken": self.token, "progress": progress}
        if total is not None:
            params["total"] = total
        if message is not None:
            params["message"] = message
        if self.task is not None:
            params["_meta"] = revision_fields.about_task(self.task.id)
        self._notify("notifications/progress", revision_fields.fit_fields("progress", params, self.view.revision))

    def log(self, level: str, logger: str | None, data: object) -> None:
        """Send a log message to the client, if it wants this level."""
        if self.interaction.state not in HEARD or not wants_level(self.view, level):
            return
        if self._log_throttle is None:
            self._log_throttle = Throttle(self.services.settings.max_logs_per_min)
        if self._log_throttle.count():
            self._notify("notifications/message", log_params(level, logger, data))

    def cancel(self) -> None:
        """End the call without an answer. From here on nothing of it is written."""
        self.end_early(Event.CANCEL)
        self.leave_stream()
        self.sink.withdraw()

    def end_early(self, event: str) -> None:
        """Stop the script and the greenlet of the call, which will have no result."""
        self.interaction.on(event)
        if self.promotion is not None:
            self.promotion.close()
        if self.run is not None:
            self.run.end()
        if self.greenlet is not None:
            self.greenlet.kill(block=False)

    def finish(self, line: Line) -> None:
        """Answer the request. A client whose user agreed to visit a URL hears first that this is done."""
        self.interaction.on(Event.FINISH)
        self.leave_stream()
        for elicitation_id in self.interaction.elicitation_ids:
            notice = messages.notification("notifications/elicitation/complete", {"elicitationId": elicitation_id})
            self.sink.notify(notice, self, is_droppable=False)
        self.sink.respond(line, self)
        if self.run is not None and self.run.output_place is not None:
            # Only when the answer has been sent: a client that does not read holds up its own large outputs.
            if self.run.output_place.is_held:
                self.sink.wait_for_room()
            self.run.output_place.release()

    def detach(self, task: RunningTask, line: Line) -> None:
        """Answer the request with a task, to which the call belongs from now on. What runs for it goes on."""
        self.interaction.on(Event.DETACH)
        self.stream.forget(self)
        self.sink.respond(line, task)  # not as a line of the call, which may be cancelled before it is read
        self.task, self.stream, self.sink = task, task.stream, task.stream.sink
        if self.session is None:
            self.token = None  # the extension has no progress messages

    def leave_stream(self) -> None:
        """Free the id of the call on its stream."""
        self.stream.forget(self)
        self.services.waiting.remove(self)

    def continue_as(self, retry: Call) -> None:
        """Go on as the call of another request."""
        self.id, self.session, self.stream = retry.id, retry.session, retry.stream
        self.sink, self.view = retry.sink, retry.view
        self.token = progress_token(retry.params)
        self.interaction.answers = {**self.interaction.answers, **retry.interaction.answers}
        self._last_progress = self._progress_throttle = self._log_throttle = None
        self.stream.take(self)
        self.sink.expect()

    def step_aside(self) -> None:
        """Leave the places to others and count as waiting: the call waits for something else than its script."""
        if self.run is not None and not self.is_cancelled:
            self.services.waiting.add(self)
            self.run.leave_places()

    def step_in(self) -> None:
        """Take back the places if the call has left them. May wait."""
        if self.run is not None:
            self.run.take_places()
            self.services.waiting.remove(self)

    def wait_until_adopted(self) -> None:
        """Wait until the client of a parked call is back. The result is kept meanwhile, but no place."""
        if self.interaction.state == State.PARKED and self.run is not None:
            self.run.leave_places()
        while self.interaction.state == State.PARKED and self.interaction.adopted is not None:
            self.interaction.adopted.wait()

    def stop_helpers(self) -> None:
        """End the helper greenlets of a script that is over."""
        if self.run is not None:
            self.run.stop_helpers()
        self.interaction.on(Event.STOP_ASKING)

    def _notify(self, method: str, params: Json) -> None:
        line = messages.notification(method, params)
        if len(line) > MAX_NOTICE_BYTES:
            journal.warning("dropped a message from %s: it is too long for the client (%d bytes)", method, len(line))
        else:
            self.sink.notify(line, self)


class Slot:
    """A call's claim to one of the places in which scripts run; held inside of `with`. A call that waits for an answer
    leaves the place to others.

    With a `gate`, only one of the calls that share it waits for a place, and the others wait for the gate: so each of
    an owner's sessions queues only once, however many calls it has. A place that `is_kept` is left at the end only: a
    resident process serves no other call while it waits for an answer."""

    def __init__(
        self, places: Places, owner: Hashable = None, gate: Semaphore | None = None, *, is_kept: bool = False
    ) -> None:
        self.places = places
        self.owner = owner
        self.gate = gate
        self._is_held = False
        self._is_over = False
        self._is_kept = is_kept

    def leave(self) -> None:
        if self._is_held and (self._is_over or not self._is_kept):
            self._is_held = False
            self.places.release(self.owner)

    def take(self) -> None:
        """Take a place, unless the call holds one. May wait."""
        if self._is_held:
            return
        if self.gate is None:
            self.places.acquire(self.owner)
        else:
            with self.gate:
                self.places.acquire(self.owner)
        if self._is_over:
            self.places.release(self.owner)  # the call has ended while its helper waited here
        else:
            self._is_held = True

    __enter__ = take

    def __exit__(self, *_: object) -> None:
        self._is_over = True
        self.leave()


class Run:
    """What a call has while its script runs. `turn` is its place among the calls of one tool, if that tool has a limit.
    `child`, `ended_by` and `stderr_end` are for the journal and the task, and set when the script is over."""

    def __init__(self, slot: Slot, turn: Slot | None) -> None:
        self.slot = slot
        self.turn = turn
        self.files: CallFiles | None = None
        self.output_place: OutputPlace | None = None
        self.child: Child | Exchange | None = None
        self.ended_by = ""
        self.stderr_end = b""
        self.deadline: Deadline | None = None  # of the script that runs
        self.stderr_so_far: Callable[[], bytes] = bytes  # the end of what the script has written there
        self._helpers: dict[gevent.Greenlet, None] = {}

    def hear_stderr(self, stderr: Capture) -> None:
        self.stderr_so_far = stderr.end

    def note_end(self, outcome: Outcome) -> None:
        """Remember how the script ended, but not its output, which may be large."""
        self.child = outcome.child
        self.ended_by = outcome.ended_by
        if outcome.stderr:
            self.stderr_end = outcome.stderr[-STDERR_END_BYTES:]

    def leave_places(self) -> None:
        self.slot.leave()
        if self.turn is not None:
            self.turn.leave()

    def take_places(self) -> None:
        """Take back the places that were left. May wait. The turn comes first, so that no slot is held meanwhile."""
        if self.turn is not None:
            self.turn.take()
        self.slot.take()

    def help_with(self, function: Callable[..., None], *values: object) -> None:
        """Call the function in a greenlet of its own, which ends with the script at the latest."""
        helper = gevent.spawn(function, *values)
        self._helpers[helper] = None
        helper.rawlink(lambda each: self._helpers.pop(each, None))

    def is_helped_by(self, helper: object) -> bool:
        """Tell whether this helper has not been stopped: a stopped greenlet may run once more before it notices."""
        return helper in self._helpers

    def stop_helpers(self) -> None:
        for helper in list(self._helpers):
            helper.kill(block=False)
        self._helpers.clear()

    def end(self) -> None:
        """Tell the script that its call ends, and keep nothing of its output."""
        if self.files is not None:
            self.files.mark_cancelled()
        if self.output_place is not None:
            self.output_place.release()


class Route(Generic[Target]):
    """How one method is served. `find` raises RpcError for a target that does not exist."""

    def __init__(
        self,
        find: Callable[[Call], Target],
        serve: Callable[[Call, Target], Json | bytes],
        *,
        needs_process: Callable[[Call, Target], bool] = lambda call, target: False,  # or anything else to wait for
        uses_catalog: bool = True,
        may_repeat: Callable[[Call, Target], bool] | None = None,  # if it may ask: whether it may be run twice
        turn: Callable[[Call, Target], Slot | None] = lambda call, target: None,  # to wait for besides a slot
        fit: Callable[[Json, Revision], Json] = lambda result, revision: result,
        has_own_limit: bool = False,  # `serve` bounds the result itself
        prepare: Callable[[Call, Target], Route[Target] | None] | None = None,  # may return another one
        waits: bool = False,  # `serve` waits, but needs no slot
    ) -> None:
        self.find = find
        self.serve = serve
        self.needs_process = needs_process
        self.uses_catalog = uses_catalog
        self.may_repeat = may_repeat
        self.turn = turn
        self.fit = fit
        self.has_own_limit = has_own_limit
        self.prepare = prepare
        self.waits = waits


def without_target(serve: Callable[[Call], Json | bytes], *, uses_catalog: bool = False) -> Route[None]:
    return Route(lambda call: None, lambda call, target: serve(call), uses_catalog=uses_catalog)
