"""Answer the first message before gevent is imported.

`initialize` and `server/discover` need only the pure modules, so a client gets its greeting while the rest of the
server is still on its way. Everything else, also a greeting that has to be refused, is left to the engine: the bytes
that were read are handed over.
"""

from __future__ import annotations

import os
import select

from mcpgreen import journal
from mcpgreen.errors import RpcError
from mcpgreen.protocol import introduction, messages, revision_fields
from mcpgreen.protocol.admission import Handshake, admit
from mcpgreen.text import jsontext

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Set
    from typing import Any

    from mcpgreen.protocol.token import RemoteToken

PATIENCE_MS = 20  # a client that says nothing yet is better served by a server that is ready
READ_BYTES = 65536


class Opening:
    """How far the conversation is: the handshake so far, the bytes not yet served, and whether that is all."""

    def __init__(self) -> None:
        self.handshake = Handshake()
        self.unread = b""
        self.greeting: tuple[bytes, bytes] | None = None  # the line that has been answered, and the answer
        self.is_at_end = False


def greet(
    stdin: int,
    stdout: int,
    identity: introduction.Identity,
    *,
    offered: Set[str],
    log_level: str,
    token: RemoteToken | None = None,
) -> Opening:
    """Read what is there and answer the first line if it is a greeting, with the token if one is asked for."""
    opening = Opening()
    while b"\n" not in opening.unread and len(opening.unread) < READ_BYTES:
        poller = select.poll()
        poller.register(stdin, select.POLLIN)
        if not poller.poll(PATIENCE_MS):
            return opening
        chunk = os.read(stdin, READ_BYTES)
        opening.unread += chunk
        if not chunk:
            opening.is_at_end = True
            return opening
    line, _, rest = opening.unread.partition(b"\n")
    request_id, method, params = _greeting_in(line)
    if request_id is None or (token is not None and not token.admits(params)):
        return opening
    result: dict[str, Any]
    try:
        view = admit(method, params, opening.handshake, offered)
        if method == "initialize":
            result = introduction.initialize(params, opening.handshake, identity, offered=offered, log_level=log_level)
        else:
            result = revision_fields.finish(
                introduction.discover(identity, offered=offered), view.revision, identity.info
            )
        answer = messages.response(request_id, jsontext.dumps(result))
    except (RpcError, ValueError):
        return opening
    if _is_written(stdout, answer + b"\n"):
        opening.unread = rest
        opening.greeting = line, answer
        journal.record("info", f"{method} ok", fields={"method": method, "outcome": "ok"})
    return opening


def _greeting_in(line: bytes) -> tuple[str | int | None, str, dict[str, Any]]:
    """Id, method and parameters; without an id if this is not for us."""
    try:
        message = jsontext.loads(line.strip(b" \t\r\n"))
    except ValueError:
        message = None
    is_request = type(message) is dict and message.get("jsonrpc") == "2.0" and type(message.get("params")) is dict
    if not is_request or message.get("method") not in ("initialize", "server/discover"):
        return None, "", {}
    return messages.normal_id(message.get("id")), message["method"], message["params"]


def _is_written(stdout: int, data: bytes) -> bool:
    try:
        while data:
            try:
                data = data[os.write(stdout, data) :]
            except BlockingIOError:  # somebody else made it so; there is nothing else to do than to wait
                poller = select.poll()
                poller.register(stdout, select.POLLOUT)
                poller.poll()
    except OSError:
        return False  # nobody reads: the engine will find out and leave in good order
    return True
