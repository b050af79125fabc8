"""Bytes that no HTTP library would send, and what comes back for them."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from tests.support.http import BOTH_TYPES, HttpServer
from tests.support.waiting import PATIENCE_SECS
from tests.support.wire import MODERN, modern_meta

TOKEN = "0123456789abcdef0123456789abcdef"
DISCOVER = {"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": modern_meta()}}


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class Raw:
    """One connection of a client that keeps to no rules."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self._unread = b""

    def send(self, data: bytes) -> Raw:
        self.sock.sendall(data)
        return self

    def answer(self, *, to: str = "POST") -> Answer:
        """The next one, interim ones too."""
        head = self._until(b"\r\n\r\n").decode("latin-1")
        first, *lines = head.split("\r\n")
        pairs = [line.split(": ", 1) for line in lines]
        assert len({name.lower() for name, _ in pairs}) == len(pairs), f"a header twice: {head}"
        headers = {name.lower(): value for name, value in pairs}
        status = int(first.split(" ")[1])
        if status < 200 or status in (204, 304) or to == "HEAD":
            return Answer(status, headers, b"")
        if headers.get("transfer-encoding") == "chunked":
            return Answer(status, headers, b"".join(self.chunks()))
        if "content-length" in headers:
            return Answer(status, headers, self.exactly(int(headers["content-length"])))
        return Answer(status, headers, self.rest())

    def chunks(self) -> Iterator[bytes]:
        while size := int(self._until(b"\r\n"), 16):
            yield self.exactly(size)
            assert self.exactly(2) == b"\r\n"
        assert self.exactly(2) == b"\r\n"

    def rest(self) -> bytes:
        """To the end of the connection, which has to come."""
        data, self._unread = self._unread, b""
        while more := self._more():
            data += more
        return data

    def exactly(self, size: int) -> bytes:
        pieces, missing = [self._unread], size - len(self._unread)
        while missing > 0:
            pieces.append(self._more())
            assert pieces[-1], f"the connection has ended, and {missing} bytes are missing"
            missing -= len(pieces[-1])
        whole = b"".join(pieces)
        self._unread = whole[size:]
        return whole[:size]

    @property
    def is_closed(self) -> bool:
        """Waits for it, or for something to read."""
        return not self._unread and not self._more(keep=True)

    def close(self) -> None:
        self.sock.close()

    def _until(self, end: bytes) -> bytes:
        while end not in self._unread:
            self._fill()
        data, _, self._unread = self._unread.partition(end)
        return data

    def _fill(self) -> None:
        more = self._more()
        assert more, f"the connection has ended after {self._unread[-200:]!r}"
        self._unread += more

    def _more(self, *, keep: bool = False) -> bytes:
        try:
            data = self.sock.recv(65536)
        except ConnectionResetError:
            return b""
        if keep:
            self._unread += data
        return data


@contextmanager
def raw(server: HttpServer) -> Iterator[Raw]:
    sock = server.connect()
    sock.settimeout(PATIENCE_SECS)
    try:
        yield Raw(sock)
    finally:
        sock.close()


def head(
    method: str = "POST",
    path: str = "/mcp",
    *lines: str,
    version: str = "1.1",
    host: str | None = "localhost",
) -> bytes:
    every = [f"{method} {path} HTTP/{version}", *([] if host is None else [f"Host: {host}"]), *lines]
    return "\r\n".join([*every, "", ""]).encode("latin-1")


def mcp_lines(method: str = "server/discover") -> tuple[str, ...]:
    return (
        "Content-Type: application/json",
        f"Accept: {BOTH_TYPES}",
        f"MCP-Protocol-Version: {MODERN}",
        f"Mcp-Method: {method}",
    )


def posted(
    message: Any, *lines: str, path: str = "/mcp", host: str | None = "localhost", version: str = "1.1"
) -> bytes:
    """A whole request."""
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    own = ("Content-Type: application/json", f"Accept: {BOTH_TYPES}", f"Content-Length: {len(body)}")
    return head("POST", path, *own, *lines, host=host, version=version) + body


def discovery(*lines: str, host: str | None = "localhost", version: str = "1.1") -> bytes:
    """A whole request that anybody who is let in gets an answer to."""
    more = (f"MCP-Protocol-Version: {MODERN}", "Mcp-Method: server/discover")
    return posted(DISCOVER, *more, *lines, host=host, version=version)


def asked(server: HttpServer, data: bytes, *, to: str = "POST") -> Answer:
    """The answer to a request on a connection of its own."""
    with raw(server) as connection:
        return connection.send(data).answer(to=to)


def is_serving(server: HttpServer) -> bool:
    """Whether somebody else is served at once, by a new connection."""
    answer = asked(server, discovery())
    return answer.status == 200 and "result" in answer.json()


def figures(server: HttpServer, headers: Mapping[str, str] | None = None) -> dict[str, float]:
    """What /metrics says."""
    lines = [f"{name}: {value}" for name, value in (headers or {}).items()]
    text = asked(server, head("GET", "/metrics", *lines, "Connection: close")).body.decode()
    pairs = [line.rpartition(" ") for line in text.splitlines() if line and not line.startswith("#")]
    return {name: float(value) for name, _, value in pairs}
