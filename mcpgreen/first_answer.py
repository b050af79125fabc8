"""Answer `initialize` or `server/discover` before gevent is imported.

Both need only the pure modules, so a client has its first answer while the rest of the server is still being loaded.
The engine serves everything else, including a first message that has to be refused: it gets the bytes that were read,
and the end of the answer if the client has not taken it yet.

Rule: nothing here waits for long, neither for input nor for room in the output. The answer is the same as the engine's.
"""

from __future__ import annotations

import os
import select
import stat
import time
from collections.abc import Set
from typing import TYPE_CHECKING

from mcpgreen import journal
from mcpgreen.errors import RpcError
from mcpgreen.protocol import admission, messages, revision_fields
from mcpgreen.protocol.admission import Handshake, Identity, admit
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

if TYPE_CHECKING:
    from mcpgreen.protocol.token import RemoteToken

PATIENCE_MS = 20  # if the client sends nothing, it is better to go on loading the server
READ_BYTES = 65536
DRAIN_SECS = 0.1  # for the client to take a long answer; it may be busy writing
METHODS = ("initialize", "server/discover")


class Opening:
    """The beginning of a conversation: the state of the handshake, and the bytes that the engine has to serve."""

    def __init__(
        self,
        stdin: int,
        stdout: int,
        identity: Identity,
        *,
        offered: Set[str],
        log_level: str,
        token: RemoteToken | None = None,
    ) -> None:
        self.handshake = Handshake()
        self.greeting: tuple[bytes, bytes] | None = None  # the line that has been answered, and the answer
        self.unsent = b""  # the end of the answer, if the client has not taken it yet
        self.unread = b""  # for the engine
        self.is_at_end = False
        self._stdin = stdin
        self._stdout = stdout
        self._identity = identity
        self._offered = offered
        self._log_level = log_level
        self._token = token

    def answer(self) -> None:
        """Wait a moment for the first line, and answer it if it can be answered here."""
        self._read_line()
        line, newline, rest = self.unread.partition(b"\n")
        if not newline or not any(method.encode() in line for method in METHODS):
            return
        answer = self._answer_to(line)
        if answer is None:
            return
        try:
            self.unsent = _write_at_once(self._stdout, answer + b"\n")
        except OSError:
            return  # the client is gone: the engine will notice, and end in good order
        self.greeting, self.unread = (line, answer), rest

    def _read_line(self) -> None:
        while b"\n" not in self.unread and len(self.unread) < READ_BYTES and not self.is_at_end:
            if not _is_ready(self._stdin, select.POLLIN, PATIENCE_MS):
                return
            chunk = os.read(self._stdin, READ_BYTES)
            self.unread += chunk
            self.is_at_end = not chunk

    def _answer_to(self, line: bytes) -> bytes | None:
        """Return the answer; None if the engine has to give it."""
        try:
            message = jsontext.loads(line.strip(b" \t\r\n"))
        except ValueError:
            return None
        if type(message) is not dict or message.get("jsonrpc") != "2.0" or message.get("method") not in METHODS:
            return None
        method, params = message["method"], message.get("params")
        request_id = messages.normal_id(message.get("id"))
        if request_id is None or type(params) is not dict:
            return None
        if self._token is not None and not self._token.take(params):
            return None
        try:
            result = self._introduction(method, params)
            answer = messages.response(request_id, jsontext.dumps(result))
        except (RpcError, ValueError):
            return None
        journal.record("info", f"{method} ok", fields={"method": method, "outcome": "ok"})
        return answer

    def _introduction(self, method: str, params: Json) -> Json:
        identity, offered = self._identity, self._offered
        view = admit(method, params, self.handshake, offered)
        if method == "initialize":
            return admission.initialize(params, self.handshake, identity, offered=offered, log_level=self._log_level)
        return revision_fields.finish(admission.discover(identity, offered=offered), view.revision, identity.info)


def _is_ready(descriptor: int, event: int, timeout_ms: int) -> bool:
    poller = select.poll()
    poller.register(descriptor, event)
    return bool(poller.poll(timeout_ms))


def _write_at_once(stdout: int, data: bytes) -> bytes:
    """Write what the client takes within a moment, and return the rest. Never blocks: a client that is still writing
    does not read yet, and waits for us to read. Raises OSError if the client is gone."""
    give_up_at = time.monotonic() + DRAIN_SECS
    descriptor, at_once_bytes = stdout, select.PIPE_BUF
    if len(data) > select.PIPE_BUF and stat.S_ISFIFO(os.fstat(stdout).st_mode):
        try:
            # The flag would change the description that we share with the process that started us; this one is our own.
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
