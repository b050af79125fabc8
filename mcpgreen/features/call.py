"""`Call`: all that a handler may know about a request, and all that it may say while it works.

It hides era, transport and connection. Progress and log messages of a call go out before its response and never after
it; nothing of a cancelled call goes out at all (the sink checks `is_cancelled` next to the write).
"""

from __future__ import annotations

import time
from binascii import b2a_base64
from collections import deque
from typing import TYPE_CHECKING, Any, Protocol

from mcpgreen import jsontext
from mcpgreen.journal import LEVELS
from mcpgreen.protocol import messages, shapes
from mcpgreen.protocol.admission import ClientView
from mcpgreen.protocol.revisions import Era

if TYPE_CHECKING:
    from mcpgreen.catalog.roots import Roots
    from mcpgreen.features.services import Services
    from mcpgreen.running.deadline import Deadline
    from mcpgreen.running.scratch import CallFiles

THROTTLE_WINDOW_SECS = 60.0
MAX_KEY_CHARS = 200
URL_SAFE = str.maketrans("+/", "-_")

Line = bytes | list[bytes]  # a large one comes in pieces


class Sink(Protocol):
    """Where replies go. `put` never blocks; a droppable line may be lost when the client does not read."""

    def put(self, line: Line, call: Call | None = None, *, is_droppable: bool = False) -> None: ...

    def wait_for_room(self) -> None: ...

    def expect(self) -> None:
        """An answer to one request will come later, by `put` with its call."""

    def withdraw(self) -> None:
        """It will not come."""


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
        "_last_progress",
        "_log_throttle",
        "_progress_throttle",
        "files",
        "greenlet",
        "id",
        "is_cancelled",
        "is_finished",
        "link",
        "method",
        "params",
        "services",
        "sink",
        "target",
        "token",
        "view",
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
        self.target: Any = None  # what the request is about, once its feature has found it
        self.greenlet: Any = None
        self.files: CallFiles | None = None
        self.is_cancelled = False
        self.is_finished = False
        self._last_progress: float | None = None
        self._progress_throttle: Throttle | None = None
        self._log_throttle: Throttle | None = None

    def __repr__(self) -> str:
        return f"<Call {self.id!r} {self.method}>"

    @property
    def worker_key(self) -> str:
        """A file name for the request: base64url of its JSON id, or a digest when that is too long."""
        text = jsontext.dumps(self.id)
        key = b2a_base64(text, newline=False).decode("ascii").rstrip("=").translate(URL_SAFE)
        return key if len(key) <= MAX_KEY_CHARS else jsontext.digest_of_chunks([text])

    @property
    def roots(self) -> Roots:
        """What is in scope now: what the client named after its handshake, else what is configured."""
        return self.services.roots if self.is_stateless else self.link.roots.current

    @property
    def is_stateless(self) -> bool:
        return self.view.revision.era == Era.STATELESS

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
        self.is_cancelled = True
        if self.files is not None:
            self.files.mark_cancelled()
        if self.greenlet is not None:
            self.greenlet.kill(block=False)
        self.sink.withdraw()

    def _notify(self, method: str, params: dict[str, Any]) -> None:
        self.sink.put(messages.notification(method, params), self, is_droppable=True)


class Reports:
    """What a script reports goes to the call, and keeps its deadline away."""

    def __init__(self, call: Call, deadline: Deadline) -> None:
        self._call = call
        self._deadline = deadline
        self.log = call.log

    def progress(self, progress: float, total: float | None, message: str | None) -> None:
        self._deadline.progressed()
        self._call.progress(progress, total, message)


def wants_level(view: ClientView, level: str) -> bool:
    return view.log_level is not None and LEVELS.index(level) >= LEVELS.index(view.log_level)


def log_params(level: str, logger: str | None, data: Any) -> dict[str, Any]:
    params: dict[str, Any] = {"level": level, "data": data}
    if logger:
        params["logger"] = logger
    return params
