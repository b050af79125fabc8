"""The roots of one session: the configured ones, until its client has named its own.

A client that declared roots in `initialize` is asked for them when it is ready, and again when it says that they have
changed. A stateless client is never asked. What a client names is a claim about its own disk, so each root has to be
a local file or directory that exists; and unless the operator trusts the client, one inside the configured roots.

Rule: `current` can be used at any time, whatever the client answers. Only a valid answer replaces it, and never an
answer to a request that has been sent again since.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import gevent
from gevent.event import Event

from mcpgreen import journal
from mcpgreen.errors import Unanswered
from mcpgreen.files.confined import holds
from mcpgreen.links.sink import Sink
from mcpgreen.project.roots import Root, Roots, real_path
from mcpgreen.running.shares import Turns
from mcpgreen.running.system import MAX_VARIABLE_CHARS
from mcpgreen.settings.settings import Settings
from mcpgreen.text.json_types import Json
from mcpgreen.text.uris import MAX_PATH_PARTS

if TYPE_CHECKING:
    from mcpgreen.links.session import OutgoingRequests

FILE_URI = r"(?ai)file://(?:localhost)?(/[^?#]*)"
LONE_PERCENT = rb"%(?![0-9A-Fa-f]{2})"

ANSWER_SECS = 5.0  # for a client to name its roots; scripts wait only for its first answer
DEBOUNCE_SECS = 1.0  # between two requests for roots, however often they change
MAX_ROOTS = 256  # each one is looked up on disk
MAX_PATH_BYTES = 4096
SHOWN_CHARS = 200


class SessionRoots:
    """The roots for the calls of one session. `needs_token`: others than the client may write to us."""

    def __init__(
        self, configured: Roots, requests: OutgoingRequests, sink: Sink, settings: Settings, *, needs_token: bool
    ) -> None:
        rule = settings.client_roots
        if rule == "auto":
            rule = "within" if configured.are_chosen or needs_token else "trust"
        self.current = configured
        self._configured = configured
        self._requests = requests
        self._sink = sink
        self._is_client_asked = rule != "never"
        self._bounds = None if rule == "trust" else configured.paths  # below which its roots have to lie
        self.known = Event()  # set unless calls have to wait for the client's first answer
        self.known.set()
        self._has_begun = False
        self._asked_at = 0.0
        self._asking: gevent.Greenlet | None = None
        self._asking_later: gevent.Greenlet | None = None

    def begin(self) -> None:
        """The client has roots and is ready: ask for them. Calls wait for its first answer. If the sink of the session
        carries no requests, the first call asks by its own sink."""
        if not self._is_client_asked:
            return
        self._has_begun = True
        self.known.clear()
        self._ask_anew()

    def changed(self) -> None:
        """The client says that its roots have changed: ask again, at once or when the debounce time is over."""
        if not self._has_begun or self._asking_later is not None:
            return
        pause_secs = self._asked_at + DEBOUNCE_SECS - time.monotonic()
        if pause_secs > 0:
            self._asking_later = gevent.spawn_later(pause_secs, self._ask_anew)
        else:
            self._ask_anew()

    def wait_until_known(self, sink: Sink) -> None:
        """Wait for the first answer of the client, for a limited time. `sink` belongs to the call that waits."""
        if self._asking is None and sink.carries_requests:
            self._ask_anew(sink)
        if self._asking is not None:
            self.known.wait(max(0.0, self._asked_at + ANSWER_SECS - time.monotonic()))

    def close(self) -> None:
        for greenlet in (self._asking, self._asking_later):
            if greenlet is not None:
                greenlet.kill(block=False)
        self.known.set()

    def _ask_anew(self, sink: Sink | None = None) -> None:
        self._asking_later = None
        asking, self._asking = self._asking, None
        if asking is not None:
            asking.kill(block=False)  # its answer, if it still comes, is ignored
        by = sink or self._sink
        if by.carries_requests:
            self._asked_at = time.monotonic()
            self._asking = gevent.spawn(self._refresh, by)
        else:
            self.known.clear()  # the next call asks

    def _refresh(self, sink: Sink) -> None:
        try:
            answer = self._requests.ask(sink, "roots/list", timeout_secs=ANSWER_SECS)
            self.current = _roots_named_in(answer, bounds=self._bounds, pause=Turns().pause) or self._configured
        except Unanswered as error:
            journal.debug("keeping the current roots: %s", error)
        except ValueError as error:
            journal.warning("the client's roots are ignored: %s", error)
        self.known.set()


def _roots_named_in(answer: object, *, bounds: list[str] | None, pause: Callable[[], None]) -> Roots | None:
    """Return the usable roots of a `roots/list` result, inside `bounds` if there are any; None if the list is empty.
    `pause` is called after each root that was looked up.

    A root that we cannot use is left out with a warning. Raises ValueError for a wrong answer, or if no root is left.
    """
    entries = _entries(answer)
    if not entries:
        return None
    usable: list[Root] = []
    for entry in entries:
        if (root := _usable_root(entry, bounds)) is not None:
            usable.append(root)
        pause()
    if not usable:
        raise ValueError("none of them can be used")
    roots = Roots(usable)
    if max(map(len, roots.variables.values())) > MAX_VARIABLE_CHARS:
        raise ValueError(f"together they are longer than {MAX_VARIABLE_CHARS} characters")
    return roots


def _entries(answer: object) -> list[Json]:
    entries = answer.get("roots") if type(answer) is dict else None
    if type(entries) is not list:
        raise ValueError("the result must be an object with an array of roots")
    if len(entries) > MAX_ROOTS:
        raise ValueError(f"there are more than {MAX_ROOTS}")
    for entry in entries:
        if type(entry) is not dict or type(entry.get("uri")) is not str:
            raise ValueError("each of them must be an object with a uri (a string)")
        if type(entry.get("name", "")) is not str and entry["name"] is not None:
            raise ValueError("the name of a root must be a string")
    return entries


def _usable_root(entry: Json, bounds: list[str] | None) -> Root | None:
    try:
        path = real_path(_path_of_root(entry["uri"]))
        if bounds is not None and not any(holds(each, path) for each in bounds):
            raise ValueError("it is outside the configured roots; set MCPGREEN_CLIENT_ROOTS=trust to accept it")
        return Root(path, entry.get("name"))
    except ValueError as error:
        journal.warning("ignored the client's root %.*r: %s", SHOWN_CHARS, entry["uri"], error)
        return None


def _path_of_root(uri: str) -> str:
    """Return the path in a local file URI, without looking at the disk. Raises ValueError for any other URI."""
    found = re.fullmatch(FILE_URI, uri)
    if found is None:
        raise ValueError("it must be a file:// URI with an absolute path on this machine, without a query or fragment")
    try:
        encoded = found[1].encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError("it is not valid Unicode") from error
    if re.search(LONE_PERCENT, encoded):
        raise ValueError("a percent sign must be written as %25")
    from urllib.parse import unquote_to_bytes  # takes long to import, and many clients have no roots

    path = unquote_to_bytes(encoded)
    if len(path) > MAX_PATH_BYTES:
        raise ValueError(f"its path is longer than {MAX_PATH_BYTES} bytes")
    if path.count(b"/") > MAX_PATH_PARTS:
        raise ValueError(f"its path has more than {MAX_PATH_PARTS} parts")
    return path.decode("utf-8", "surrogateescape")
