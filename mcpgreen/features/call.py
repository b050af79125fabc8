"""`Call`: all that a handler may know about a request, and all that it may say while it works.

It hides era and transport. Progress and log messages of a call go out before its response and never after it; nothing
of a cancelled call goes out at all (the sink checks `is_cancelled` next to the write).
"""

from __future__ import annotations

import time
from binascii import b2a_base64
from collections import deque
from typing import TYPE_CHECKING, Any

from mcpgreen import journal
from mcpgreen.features.asking.interaction import ENDED_EARLY, HEARD, Event, Interaction, State
from mcpgreen.links.session import Session, log_params, wants_level
from mcpgreen.links.sink import Line, Sink
from mcpgreen.links.stream import Stream
from mcpgreen.protocol import messages, revision_fields
from mcpgreen.protocol.admission import ClientView, progress_token
from mcpgreen.protocol.input.requests import client_variables
from mcpgreen.text import jsontext

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcpgreen.features.asking.scripts import AskingScript
    from mcpgreen.features.run import Run
    from mcpgreen.features.services import Services
    from mcpgreen.links.principal import Principal
    from mcpgreen.project.roots import Roots
    from mcpgreen.running.processes.deadline import Deadline

THROTTLE_WINDOW_SECS = 60.0
MAX_KEY_CHARS = 200
LARGE_ARGUMENTS_BYTES = 65536
MAX_NOTICE_BYTES = 1 << 20
URL_SAFE = bytes.maketrans(b"+/", b"-_")


class Throttle:
    """At most so many in any minute. A limit of 0 means no limit."""

    __slots__ = ("_sent_at",)

    def __init__(self, limit_per_minute: int) -> None:
        self._sent_at: deque[float] = deque(maxlen=limit_per_minute)

    def admits(self) -> bool:
        sent_at, now = self._sent_at, time.monotonic()
        if sent_at and len(sent_at) == sent_at.maxlen and sent_at[0] > now - THROTTLE_WINDOW_SECS:
            return False
        sent_at.append(now)
        return True


class Call:
    """One request in progress. `session` is None for a stateless one."""

    __slots__ = (
        "_arguments_json",
        "_last_progress",
        "_log_throttle",
        "_progress_throttle",
        "greenlet",
        "has_waited",
        "id",
        "interaction",
        "method",
        "params",
        "received_at",
        "required_scopes",
        "run",
        "serial",
        "services",
        "session",
        "sink",
        "stream",
        "target",
        "token",
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
        session: Session | None,
        stream: Stream,
        sink: Sink,
        services: Services,
    ) -> None:
        self.id = request_id
        self.method = method
        self.params = params
        self.view = view
        self.session = session
        self.stream = stream
        self.sink = sink  # for its answer: the stream's own, or that of a batch
        self.services = services
        self.serial = services.runner.next_serial()  # of what it runs: in the names of its files, and as a mark
        self.interaction = Interaction()
        self.run: Run | None = None  # while it has a script
        self.token: str | int | None = None  # of progress, if the client gave one and the call takes time
        self.weight_bytes = 0  # of the request, in memory
        self.received_at = 0.0  # if the log wants to know
        self.target: Any = None  # what the request is about, once its feature has found it
        self.required_scopes: Sequence[str] = ()  # of whoever calls, once the target is found
        self.greenlet: Any = None
        self.has_waited = False  # for a look at the disk: what was not there then is not there
        self._arguments_json: bytes | None = None
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
        return self.services.roots if self.session is None else self.session.roots.current

    @property
    def principal(self) -> Principal | None:
        """Who calls; None where the transport does not tell callers apart."""
        return self.stream.principal

    @property
    def auth_json(self) -> str:
        """What scripts may know of who calls; empty for nobody in particular. Not part of `about_the_client`, which is
        kept for a session: its client may come with another token."""
        return "" if self.principal is None else self.principal.claims_json

    def require_scopes(self, scopes: Sequence[str]) -> None:
        """Raises InsufficientScope if the target needs scopes that the caller does not have."""
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
    def about_the_client(self) -> dict[str, str]:
        """Variables for scripts."""
        view = self.view
        if view.variables is None:
            view.variables = client_variables(view.capabilities, view.revision, self.stream.transport)
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
        return self.session is None or self.session.roots.is_known

    def wait_for_roots(self) -> None:
        """Until the client has named its roots, if it was asked for them."""
        if self.session is not None:
            self.session.roots.wait_until_known(self.stream.sink)

    def progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Tell the client, if it asked: strictly increasing, not too often."""
        if self.token is None or self.interaction.state not in HEARD:
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
        self._notify("notifications/progress", revision_fields.fit_fields("progress", params, self.view.revision))

    def log(self, level: str, logger: str | None, data: Any) -> None:
        """A log message for the client, if it wants this level."""
        if self.interaction.state not in HEARD or not wants_level(self.view, level):
            return
        if self._log_throttle is None:
            self._log_throttle = Throttle(self.services.settings.max_logs_per_min)
        if self._log_throttle.admits():
            self._notify("notifications/message", log_params(level, logger, data))

    def cancel(self) -> None:
        """Unwind the call. From here on nothing of it is written."""
        self.end_early(Event.CANCEL)
        self.leave_stream()
        self.sink.withdraw()

    def end_early(self, event: str) -> None:
        """Without a result. The script is told, and stopped."""
        self.interaction.on(event)
        if self.run is not None:
            self.run.end()
        if self.greenlet is not None:
            self.greenlet.kill(block=False)

    def finish(self, line: Line) -> None:
        """Answer the request. Whoever agreed to visit a URL hears first that this is done."""
        self.interaction.on(Event.FINISH)
        self.leave_stream()
        for elicitation_id in self.interaction.elicitation_ids:
            notice = messages.notification("notifications/elicitation/complete", {"elicitationId": elicitation_id})
            self.sink.notify(notice, self, is_droppable=False)
        self.sink.respond(line, self)
        if self.run is not None and self.run.output_place is not None:
            # When it is on its way; a client that does not read holds up its own large outputs.
            if self.run.output_place.is_held:
                self.sink.wait_for_room()
            self.run.output_place.release()

    def leave_stream(self) -> None:
        """Its id is free again."""
        self.stream.forget(self)
        self.services.waiting.remove(self)

    def continue_as(self, retry: Call) -> None:
        """From now on this is the call of another request."""
        self.id, self.session, self.stream = retry.id, retry.session, retry.stream
        self.sink, self.view = retry.sink, retry.view
        self.token = progress_token(retry.params)
        self.interaction.answers = {**self.interaction.answers, **retry.interaction.answers}
        self._last_progress = self._progress_throttle = self._log_throttle = None
        self.stream.take(self)
        self.sink.expect()

    def wait_until_adopted(self) -> None:
        """A script that ends while the call is parked keeps its result until the client is back, but no place."""
        if self.interaction.state == State.PARKED and self.run is not None:
            self.run.leave_places()
        while self.interaction.state == State.PARKED and self.interaction.adopted is not None:
            self.interaction.adopted.wait()

    def stop_helpers(self) -> None:
        """The script is over, and with it whatever was done for it on the side."""
        if self.run is not None:
            self.run.stop_helpers()
        self.interaction.on(Event.STOP_ASKING)

    def _notify(self, method: str, params: dict[str, Any]) -> None:
        line = messages.notification(method, params)
        if len(line) > MAX_NOTICE_BYTES:
            journal.warning("a message of %s is too long for the client (%d bytes); it is dropped", method, len(line))
        else:
            self.sink.notify(line, self)


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

    def asking_script(self) -> AskingScript:
        """Who asks for the script, in whatever way that does it: its questions take turns."""
        if self._asking is None:
            self._asking = self._call.services.asking.script_of(self._call, self._deadline)
        return self._asking

    def ask(self, asked: Any, reply: Any, timeout_secs: float | None, *, size_bytes: int) -> None:
        self.asking_script().ask(asked, reply, timeout_secs, size_bytes=size_bytes)
