"""Answer the first messages before gevent is imported.

`initialize` and `server/discover` need only the pure modules, and lists no more than the catalog, so a client gets its
greeting and its first lists while the rest of the server is still on its way. Everything else, also what has to be
refused, is left to the engine: the bytes that were read are handed over, and those that the client has not taken yet.

Rule: nothing here waits for long, be it for input, for room in the output, or for a look at the disk while somebody
has more to say. What is answered here is what the engine would answer.
"""

from __future__ import annotations

import os
import select
import stat
import time

from mcpgreen import journal
from mcpgreen.errors import RpcError
from mcpgreen.protocol import introduction, messages, revision_fields
from mcpgreen.protocol.admission import Handshake, admit
from mcpgreen.text import jsontext

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Set
    from typing import Any

    from mcpgreen.catalog.lists.early import EarlyLists
    from mcpgreen.protocol.token import RemoteToken

PATIENCE_MS = 20  # a client that says nothing yet is better served by a server that is ready
READ_BYTES = 65536
DRAIN_SECS = 0.1  # for a client to take a long answer; it may be busy writing
LONGEST_LOOK_SECS = 0.03  # at the disk, while the client waits for something else
MOST_LISTS = 16  # a client has four, in pages; who wants more gets them from the engine, which takes turns
GREETINGS = ("initialize", "server/discover")
GREETINGS_AS_BYTES = (b"initialize", b"server/discover")


class Interrupted(Exception):
    """A look takes too long."""


class Opening:
    """How far the conversation is: the handshake so far, the bytes not yet served, and whether that is all."""

    def __init__(
        self,
        stdin: int,
        stdout: int,
        identity: introduction.Identity,
        *,
        offered: Set[str],
        log_level: str,
        token: RemoteToken | None = None,
    ) -> None:
        self.handshake = Handshake()
        self.greeting: tuple[bytes, bytes] | None = None  # the line that has been answered, and the answer
        self.unsent = b""  # the end of the last answer, if the client has not taken it yet
        self.is_at_end = False
        self.lists: EarlyLists | None = None  # None: only a greeting is answered
        self._stdin = stdin
        self._stdout = stdout
        self._identity = identity
        self._offered = offered
        self._log_level = log_level
        self._token = token
        self._rest = b""
        self._to_repeat = b""  # lines that the engine has to hear as well
        self._admission = self.handshake  # for requests that are served here
        self._lists_left = MOST_LISTS
        self._is_first = True
        self._is_over = False

    @property
    def unread(self) -> bytes:
        """What is left to the engine."""
        return self._to_repeat + self._rest

    def greet(self) -> None:
        """Wait a moment for the first line, and answer it if it is a greeting."""
        while b"\n" not in self._rest and not self._is_over:
            if not self._has_read(PATIENCE_MS):
                return
        if self._is_over:
            return
        if any(method in self._rest.partition(b"\n")[0] for method in GREETINGS_AS_BYTES):
            self._take_line()  # else it may be a list

    def go_on(self) -> None:
        """Answer what has come meanwhile, as far as it can be answered here. Does not wait."""
        while not self._is_over and self.lists is not None:
            while b"\n" in self._rest and not self._is_over:
                self._take_line()
            if self._is_over or not self._has_read(0):
                return

    def _has_read(self, timeout_ms: int) -> bool:
        if not _is_ready(self._stdin, select.POLLIN, timeout_ms):
            return False
        chunk = os.read(self._stdin, READ_BYTES)
        self._rest += chunk
        self.is_at_end = not chunk
        if not chunk or (b"\n" not in self._rest and len(self._rest) >= READ_BYTES):
            self._is_over = True
        return bool(chunk)

    def _take_line(self) -> None:
        line, _, self._rest = self._rest.partition(b"\n")
        is_served = self._is_served(line)
        if not is_served:
            self._rest = line + b"\n" + self._rest
        self._is_over = self._is_over or not is_served or bool(self.unsent)
        self._is_first = False

    def _is_served(self, line: bytes) -> bool:
        try:
            message = jsontext.loads(line.strip(b" \t\r\n"))
        except ValueError:
            return False
        if type(message) is not dict or message.get("jsonrpc") != "2.0" or type(message.get("method")) is not str:
            return False
        method, params = message["method"], message.get("params")
        if self._token is not None and not self._token.admits(params):
            return False
        if "id" not in message:
            return self._is_noted(method, line)
        request_id = messages.normal_id(message["id"])
        if request_id is None:
            return False
        if method in GREETINGS:
            return self._is_first and type(params) is dict and self._is_greeted(request_id, method, params, line)
        if not method.endswith("/list") or (params is not None and type(params) is not dict):
            return False
        return self._is_listed(request_id, method, params or {})

    def _is_noted(self, method: str, line: bytes) -> bool:
        """Whether this is the end of the handshake. The engine hears of it as well, and asks for roots then."""
        if method not in ("notifications/initialized", "initialized") or self.handshake.view is None:
            return False
        self._to_repeat += line + b"\n"
        self._admission = Handshake()
        self._admission.view = self.handshake.view
        self._admission.is_ready = True
        return True

    def _is_greeted(self, request_id: str | int, method: str, params: dict[str, Any], line: bytes) -> bool:
        result: dict[str, Any]
        identity, offered = self._identity, self._offered
        try:
            view = admit(method, params, self.handshake, offered)
            if method == "initialize":
                result = introduction.initialize(
                    params, self.handshake, identity, offered=offered, log_level=self._log_level
                )
            else:
                result = revision_fields.finish(
                    introduction.discover(identity, offered=offered), view.revision, identity.info
                )
            answer = messages.response(request_id, jsontext.dumps(result))
        except (RpcError, ValueError):
            return False
        if not self._is_sent(answer + b"\n"):
            return False
        self.greeting = line, answer
        journal.record("info", f"{method} ok", fields={"method": method, "outcome": "ok"})
        return True

    def _is_listed(self, request_id: str | int, method: str, params: dict[str, Any]) -> bool:
        if self.lists is None or not self._lists_left:
            return False
        if journal.tells_calls and not _is_plain(request_id, params):
            return False  # the line about it takes more than is here
        self._lists_left -= 1
        began_at = time.monotonic()

        def turn() -> None:
            if time.monotonic() - began_at > LONGEST_LOOK_SECS and self._is_something_else_wanted():
                raise Interrupted

        try:
            view = admit(method, params, self._admission, self._offered)
            body = self.lists.page(method, params, view.revision, turn)
        except (RpcError, ValueError, Interrupted):
            return False
        if body is None or not self._is_sent(messages.response(request_id, body) + b"\n"):
            return False
        if journal.tells_calls:
            took_ms = round((time.monotonic() - began_at) * 1000)
            fields = {"method": method, "id": request_id, "outcome": "ok", "ms": took_ms}
            journal.record("info", f"{method} ok {took_ms} ms", fields=fields)
        return True

    def _is_something_else_wanted(self) -> bool:
        """Whether anything but lists waits, to which the engine could attend while it looks."""
        if not self.is_at_end and len(self._rest) < READ_BYTES:
            self._has_read(0)
        return self.is_at_end or not all(b'/list"' in line for line in self._rest.split(b"\n")[:-1])

    def _is_sent(self, data: bytes) -> bool:
        """Whether anybody reads it: if not, the engine will find out and leave in good order."""
        try:
            self.unsent = _unsent(self._stdout, data)
        except OSError:
            return False
        return True


def _is_plain(request_id: str | int, params: dict[str, Any]) -> bool:
    is_short = type(request_id) is int or (len(str(request_id)) < 100 and str(request_id).isprintable())
    return is_short and "name" not in params and "uri" not in params and "ref" not in params


def _is_ready(descriptor: int, event: int, timeout_ms: int) -> bool:
    poller = select.poll()
    poller.register(descriptor, event)
    return bool(poller.poll(timeout_ms))


def _unsent(stdout: int, data: bytes) -> bytes:
    """Write what the client takes within a moment; the rest. Never blocks: a client that is still writing reads later,
    and would wait for us to read. Raises OSError if nobody reads."""
    give_up_at = time.monotonic() + DRAIN_SECS
    descriptor, at_once_bytes = stdout, select.PIPE_BUF
    if len(data) > select.PIPE_BUF and stat.S_ISFIFO(os.fstat(stdout).st_mode):
        try:
            # The flag belongs to the description that we share with whoever started us, so this one is our own.
            descriptor = os.open(f"/proc/self/fd/{stdout}", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            at_once_bytes = len(data)
        except OSError:
            pass
    try:
        while data and _is_ready(descriptor, select.POLLOUT, max(0, round((give_up_at - time.monotonic()) * 1000))):
            try:
                data = data[os.write(descriptor, data[:at_once_bytes]) :]
            except BlockingIOError:
                continue
    finally:
        if descriptor != stdout:
            os.close(descriptor)
    return data
