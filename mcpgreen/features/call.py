"""`Call`: all that a handler may know about a request, and all that it may say while it works.

It hides era, transport and connection. Progress and log messages of a call go out before its response and never after
it; nothing of a cancelled call goes out at all (the sink checks `is_cancelled` next to the write).
"""

from __future__ import annotations

import time
from binascii import b2a_base64
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import gevent
from gevent.event import Event

from mcpgreen import journal, jsontext
from mcpgreen.features.sink import Line, Sink
from mcpgreen.features.slots import Slot
from mcpgreen.journal import LEVELS
from mcpgreen.protocol import messages, shapes
from mcpgreen.protocol.admission import ClientView, progress_token
from mcpgreen.protocol.questions import client_variables
from mcpgreen.protocol.revisions import Era

if TYPE_CHECKING:
    from mcpgreen.catalog.roots import Roots
    from mcpgreen.features.asking_scripts import AskingScript
    from mcpgreen.features.services import Services
    from mcpgreen.running.deadline import Deadline
    from mcpgreen.running.output_places import OutputPlace
    from mcpgreen.running.scratch import CallFiles

THROTTLE_WINDOW_SECS = 60.0
MAX_KEY_CHARS = 200
LARGE_ARGUMENTS_BYTES = 65536
MAX_NOTICE_BYTES = 1 << 20
URL_SAFE = bytes.maketrans(b"+/", b"-_")


class Throttle:
    """At most so many in any minute. A limit of 0 means no limit."""

    __slots__ = ("_limit", "_sent_at")

    def __init__(self, limit_per_minute: int) -> None:
        self._limit = limit_per_minute
        self._sent_at: deque[float] = deque()

    def admits(self) -> bool:
        if not self._limit:
            return True
        now = time.monotonic()
        while self._sent_at and self._sent_at[0] <= now - THROTTLE_WINDOW_SECS:
            self._sent_at.popleft()
        if len(self._sent_at) >= self._limit:
            return False
        self._sent_at.append(now)
        return True


class Call:
    """One request in progress."""

    __slots__ = (
        "_arguments_json",
        "_attached",
        "_helpers",
        "_last_progress",
        "_log_throttle",
        "_progress_throttle",
        "elicitation_ids",
        "files",
        "greenlet",
        "has_waited",
        "id",
        "is_cancelled",
        "is_finished",
        "is_parked",
        "is_repeat",
        "link",
        "memo",
        "method",
        "output_place",
        "own_state",
        "params",
        "services",
        "sink",
        "slot",
        "target",
        "token",
        "turn",
        "unmet_needs",
        "view",
        "weight_bytes",
    )

    def __init__(
        self,
        request_id: str | int,
        method: str,
        params: dict[str, Any],
        *,
        view: ClientView,
        link: Any,
        sink: Sink,
        services: Services,
    ) -> None:
        self.id = request_id
        self.method = method
        self.params = params
        self.view = view
        self.link = link
        self.sink = sink
        self.services = services
        self.token: str | int | None = None  # of progress, if the client gave one and the call takes time
        self.output_place: OutputPlace | None = None  # of what its script printed
        self.weight_bytes = 0  # of the request, in memory
        self.target: Any = None  # what the request is about, once its feature has found it
        self.greenlet: Any = None
        self.files: CallFiles | None = None
        self.has_waited = False  # for a look at the disk: what was not there then is not there
        self.is_cancelled = False
        self.is_finished = False
        self.is_parked = False  # answered with questions; whoever retries the request takes it up
        self.is_repeat = False  # a retry whose script is gone: it has to be run anew, if it may be
        self.slot: Slot | None = None  # while it runs a script
        self.turn: Slot | None = None  # the same among the calls of one tool, if that has a limit of its own
        self.memo: dict[str, Any] = {}  # answers that the client has brought already, by key
        self.own_state: str | None = None  # of a script that prints its questions and is run again
        self.elicitation_ids: list[str] = []  # of addresses that the person agreed to visit
        self.unmet_needs: list[str] = []  # what a script asked for in vain
        self._arguments_json: bytes | None = None
        self._helpers: set[Any] = set()
        self._attached: Event | None = None
        self._last_progress: float | None = None
        self._progress_throttle: Throttle | None = None
        self._log_throttle: Throttle | None = None

    def __repr__(self) -> str:
        return f"<Call {self.id!r} {self.method}>"

    @property
    def worker_key(self) -> bytes:
        """A file name for the request: base64url of its JSON id, or a digest when that is too long."""
        text = b"%d" % self.id if type(self.id) is int else jsontext.dumps(self.id)
        key = b2a_base64(text, newline=False).rstrip(b"=").translate(URL_SAFE)
        return key if len(key) <= MAX_KEY_CHARS else jsontext.digest_of_chunks([text]).encode("ascii")

    @property
    def roots(self) -> Roots:
        """What is in scope now: what the client named after its handshake, else what is configured."""
        return self.services.roots if self.is_stateless else self.link.roots.current

    @property
    def is_stateless(self) -> bool:
        return self.view.revision.era == Era.STATELESS

    @property
    def about_the_client(self) -> dict[str, str]:
        """Variables for scripts."""
        view = self.view
        if view.variables is None:
            view.variables = client_variables(view.capabilities, view.revision)
        return view.variables

    @property
    def arguments(self) -> Any:
        """What the client sent as arguments."""
        if self._arguments_json is not None:
            return jsontext.loads(self._arguments_json)
        return self.params.get("arguments")

    def keep_arguments_as(self, encoded: bytes) -> None:
        """Large ones need not be in memory twice for as long as a script runs."""
        if len(encoded) > LARGE_ARGUMENTS_BYTES:
            self._arguments_json = encoded
            del self.params["arguments"]

    @property
    def is_retry(self) -> bool:
        """Whether the client comes back with answers."""
        return ("requestState" in self.params or "inputResponses" in self.params) and self.is_stateless

    def may_find_later(self, source: str) -> bool:
        """Whether what is not known may be on disk all the same, where it takes a while to look."""
        return not self.has_waited and self.services.catalog.takes_long(source)

    @property
    def are_roots_known(self) -> bool:
        """Whether nobody has to wait for the client to name its roots."""
        return self.is_stateless or self.link.roots.is_known

    def wait_for_roots(self) -> None:
        """Until the client has named its roots, if it was asked for them."""
        if not self.is_stateless:
            self.link.roots.wait_until_known()

    def progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Tell the client, if it asked: strictly increasing, not too often."""
        if self.token is None or self.is_finished:
            return
        if self._last_progress is not None and progress <= self._last_progress:
            return
        if self._progress_throttle is None:
            self._progress_throttle = Throttle(self.services.settings.max_progress_per_min)
        if not self._progress_throttle.admits():
            return
        self._last_progress = progress
        params: dict[str, Any] = {"progressToken": self.token, "progress": progress}
        if total is not None:
            params["total"] = total
        if message is not None:
            params["message"] = message
        self._notify("notifications/progress", shapes.fit_fields("progress", params, self.view.revision))

    def log(self, level: str, logger: str | None, data: Any) -> None:
        """A log message for the client, if it wants this level."""
        if self.is_finished or not wants_level(self.view, level):
            return
        if self._log_throttle is None:
            self._log_throttle = Throttle(self.services.settings.max_logs_per_min)
        if self._log_throttle.admits():
            self._notify("notifications/message", log_params(level, logger, data))

    def cancel(self) -> None:
        """Unwind the call. From here on nothing of it is written."""
        self._end()
        self.sink.withdraw()

    def finish(self, line: Line) -> None:
        """Answer the request. Whoever agreed to visit an address hears first that this is done."""
        self.is_finished = True
        self.link.forget(self)
        for elicitation_id in self.elicitation_ids:
            params = {"elicitationId": elicitation_id}
            # Not through the sink of a batch, which would take it for an answer.
            self.link.sink.put(messages.notification("notifications/elicitation/complete", params), self)
        self.sink.put(line, self)

    def leave_output_place(self) -> None:
        """When what has been answered is on its way; a client that does not read holds up its own large outputs."""
        if self.output_place is not None:
            if self.output_place.is_held:
                self.sink.wait_for_room()
            self.output_place.release()

    def help_with(self, function: Callable[..., None], *values: Any) -> bool:
        """Do this on the side, at most until the script is over. Whether it was begun."""
        if self.is_cancelled:
            return False  # a script that is being stopped may still ask
        helper = gevent.spawn(function, *values)
        self._helpers.add(helper)
        helper.rawlink(self._helpers.discard)
        return True

    def is_helped_by(self, helper: Any) -> bool:
        """Whether what it does is still wanted: who has been stopped may have one more turn before it notices."""
        return helper in self._helpers

    def stop_helpers(self) -> None:
        for helper in list(self._helpers):
            helper.kill(block=False)
        self._helpers.clear()

    def park(self, line: Line) -> None:
        """Answer the request as it is, and stay. Nothing more is written until another request adopts the call."""
        self.is_parked = self.is_finished = True
        self._attached = Event()
        self.link.park(self)
        self.sink.put(line)  # not as a line of the call: this is to be written also if the script is given up soon

    def adopt(self, retry: Call) -> None:
        """From now on this is the call of another request."""
        self.link.unpark(self)
        self.id, self.link, self.sink, self.view = retry.id, retry.link, retry.sink, retry.view
        self.token = progress_token(retry.params)
        self.memo = {**self.memo, **retry.memo}
        self.is_parked = self.is_finished = False
        self._last_progress = self._progress_throttle = self._log_throttle = None
        self.link.take(self)
        self.sink.expect()
        if self._attached is not None:
            self._attached.set()

    def wait_until_adopted(self) -> None:
        """A script that ends while nobody waits for it keeps its result until somebody does, but no place to run."""
        if self.is_parked:
            for slot in (self.slot, self.turn):
                if slot is not None:
                    slot.leave()
        while self.is_parked and not self.is_cancelled and self._attached is not None:
            self._attached.wait()

    def give_up(self) -> None:
        """Nobody came back: end the script."""
        self.link.unpark(self)
        self._end()

    def _end(self) -> None:
        self.is_cancelled = True
        if self.files is not None:
            self.files.mark_cancelled()
        if self.output_place is not None:
            self.output_place.release()
        if self.greenlet is not None:
            self.greenlet.kill(block=False)

    def _notify(self, method: str, params: dict[str, Any]) -> None:
        line = messages.notification(method, params)
        if len(line) > MAX_NOTICE_BYTES:
            journal.warning("a message of %s is too long for the client (%d bytes); it is dropped", method, len(line))
        else:
            self.sink.put(line, self, is_droppable=True)


class Reports:
    """What a script reports goes to the call, and keeps its deadline away; what it asks is asked."""

    def __init__(self, call: Call, deadline: Deadline) -> None:
        self._call = call
        self._deadline = deadline
        self._asking: AskingScript | None = None
        self.log = call.log

    def progress(self, progress: float, total: float | None, message: str | None) -> None:
        self._deadline.progressed()
        self._call.progress(progress, total, message)

    @property
    def has_room(self) -> bool:
        return self._asking is None or self._asking.has_room

    def ask(self, asked: Any, reply: Any, timeout_secs: float | None, *, size_bytes: int) -> None:
        if self._asking is None:
            self._asking = self._call.services.asking().script_of(self._call, self._deadline)
        self._asking.ask(asked, reply, timeout_secs, size_bytes=size_bytes)


def wants_level(view: ClientView, level: str) -> bool:
    return view.log_level is not None and LEVELS.index(level) >= LEVELS.index(view.log_level)


def log_params(level: str, logger: str | None, data: Any) -> dict[str, Any]:
    params: dict[str, Any] = {"level": level, "data": data}
    if logger:
        params["logger"] = logger
    return params
