"""One connection: request after request, each answered by the WSGI application, nothing waited for without end.

In place of gevent's own handler, which knows no time limits, reads doubtful heads leniently, and takes longer for a
head than the server does for its answer. Reading and writing wait in this greenlet only; it gives others a turn
between two requests, however fast they come.

Rule: whoever waits for a client, to send or to read, is known to the server as waiting, and may lose its place to a new
client.
"""

from __future__ import annotations

import socket as native
import time
from collections.abc import Callable, Iterable, Sequence
from email.utils import formatdate
from typing import TYPE_CHECKING, Any

import gevent
from gevent import socket

from mcpgreen import journal
from mcpgreen.running.turns import Turns, let_others
from mcpgreen.transports.http.wire import heads
from mcpgreen.transports.http.wire.bodies import BadBody, Body
from mcpgreen.transports.http.wire.buffer import Buffer, TooLong
from mcpgreen.transports.http.wire.hangup import HangupWatch
from mcpgreen.transports.http.wire.heads import BadHead, Head

if TYPE_CHECKING:
    from mcpgreen.transports.http.wire.listening import HttpServer

READ_BYTES = 65_536
SEND_BYTES = 1 << 18
LEAST_BYTES_A_SEC = 16_384  # that a reader takes; a large answer may take longer than a short one
SMALL_BODY_BYTES = 65_536  # what nobody has read of a body is read by us, if it is so short, and the connection kept
MAX_LINE_ENDS = 8  # between two requests
LINGER_SECS = 0.5
LINGER_BYTES = 1 << 20
CONNECTION = "mcpgreen.connection"  # its place in the variables of WSGI
# Names of header lines, as variables. Those that strangers make up must not take the place of others for ever.
TRANSLATED: dict[str, str] = {}
MAX_TRANSLATED = 256
MAX_TRANSLATED_CHARS = 64

Headers = list[tuple[str, str]]


class Connection:
    """What gevent's WSGI server calls a handler."""

    def __init__(self, sock: Any, address: Any, server: HttpServer) -> None:
        self._sock = sock
        self._server = server
        self._limits = server.limits
        self._variables = {**server.variables, **_about(address)}
        self._buffer = Buffer(self._received)
        self._watch = HangupWatch(sock)
        self._turns = Turns()
        self._give_up_at = 0.0
        self._body: Body | None = None  # that is being read
        self._is_kept = False  # for another request
        self._status = ""
        self._headers: Headers = []
        self._has_begun = False  # to answer
        self.is_wanted = not server.is_ending
        self.is_idle = False

    def handle(self) -> None:
        """Until either side has enough. Called by the server, in a greenlet of its own."""
        try:
            while self._serve_one():
                # Who sends many requests at once, or is quicker with the next than we are with its answer, is served
                # one of them at a time: else each of many such clients would hold up the others for a whole turn.
                if len(self._buffer) or self._server.connections > 1:
                    let_others()
                else:
                    self._turns.pause()
        except OSError as error:
            journal.debug("a connection has ended: %s", error)
        except gevent.GreenletExit:
            pass  # the server is going, or needs the place
        finally:
            self._watch.stop()
            self._server.forget(self)
            self._sock.close()

    def end(self) -> None:
        """By whoever finds that it takes a place for nothing: the greenlet that waits for it wakes up and leaves."""
        shut_down(self._sock)

    def on_hangup(self, callback: Callable[[], None]) -> None:
        """Called in the hub if the client goes before it is answered. A request that is sent ahead is no such sign."""
        self._watch.start(callback)

    def _serve_one(self) -> bool:
        """Whether another request may follow."""
        self._has_begun = False
        self._body = None
        try:
            raw = self._next_head()
            if raw is None:
                return False
            head = heads.parse(raw)
            self._give_up_at = time.monotonic() + self._limits.body_secs
            limit_bytes = self._limits.body_bytes
            turn, at_end = let_others, self._end_waiting
            body = Body(self._buffer, head.length_bytes, limit_bytes=limit_bytes, turn=turn, at_end=at_end)
            self._body = body
            self._is_kept = head.is_kept_alive
            self._answer(head, body)
            if self._is_kept and not body.is_at_end:
                self._give_up_at = time.monotonic() + self._limits.head_secs
                body.read()
        except (BadHead, BadBody) as refusal:
            self._refuse(refusal.status, refusal.reason)
            self._linger()
            return False
        if not body.is_at_end:
            self._linger()
        return self._is_kept and self.is_wanted

    def _end_waiting(self) -> None:
        self._server.end_waiting(self)

    def _next_head(self) -> bytes | None:
        """None if there will be none. The server knows meanwhile that nobody would miss this connection."""
        self._server.begin_waiting(self)
        self._give_up_at = time.monotonic() + self._limits.idle_secs
        try:
            self.is_idle = self.is_wanted
            self._buffer.skip_line_ends(MAX_LINE_ENDS)
            self.is_idle = False
            self._give_up_at = time.monotonic() + self._limits.head_secs
            return self._buffer.take_until(b"\r\n\r\n", heads.MAX_HEAD_BYTES)
        except TooLong:
            limit = heads.MAX_HEAD_BYTES
            raise BadHead("431 Request Header Fields Too Large", f"A head may have {limit} bytes.") from None
        except TimeoutError:
            journal.debug("a client sent no whole request in time")
            return None
        finally:
            self._server.end_waiting(self)

    def _answer(self, head: Head, body: Body) -> None:
        path, _, query = head.target.partition("?")
        variables = {
            **self._variables,
            "REQUEST_METHOD": head.method,
            # As it was sent: nothing here needs an escape, and a proxy in front may look for the plain name.
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "SERVER_PROTOCOL": f"HTTP/1.{head.minor_version}",
            "wsgi.input": body if not head.expects_continue else _AskedFor(body, self._sock),
            CONNECTION: self,
        }
        for name, value in head.fields.items():
            variables[TRANSLATED.get(name) or _translated(name)] = value
        parts: Iterable[bytes] = self._server.application(variables, self._begin)
        try:
            if not body.is_at_end and not _is_passed_over(head):
                self._is_kept = False
            if isinstance(parts, list):
                self._send_whole(parts, head)
            else:
                self._send_stream(parts, head)
        finally:
            self._watch.stop()
            if hasattr(parts, "close"):
                parts.close()

    def _begin(self, status: str, headers: Headers) -> None:
        """WSGI's `start_response`, without a way to send by hand: the application returns what it sends."""
        self._status, self._headers = status, headers

    def _send_whole(self, parts: Sequence[bytes], head: Head) -> None:
        length_bytes = sum(map(len, parts))
        has_no_body = self._status[:3] in ("204", "304")
        begin = self._encoded_head(head, "" if has_no_body else f"Content-Length: {length_bytes}\r\n")
        if head.method == "HEAD":
            self._send(begin)
        elif length_bytes <= SEND_BYTES:
            self._send(b"".join((begin, *parts)))
        else:
            self._send(begin)
            for part in parts:
                self._send(part)

    def _send_stream(self, parts: Iterable[bytes], head: Head) -> None:
        """As long as there are parts: in chunks, or to the end of the connection for who does not know those."""
        is_chunked = bool(head.minor_version)
        self._is_kept = self._is_kept and is_chunked
        begin = self._encoded_head(head, "Transfer-Encoding: chunked\r\n" if is_chunked else "")
        before, after = b"", b""
        for part in parts:
            if is_chunked:
                before, after = b"%x\r\n" % len(part), b"\r\n"
            if len(part) <= SEND_BYTES:
                self._send(b"".join((begin, before, part, after)))
            else:
                self._send(begin + before)
                self._send(part)
                self._send(after)
            begin = b""
        self._send(begin + b"0\r\n\r\n" if is_chunked else begin)

    def _encoded_head(self, head: Head, framing: str) -> bytes:
        self._has_begun = True
        lines = [f"HTTP/1.1 {self._status}\r\nDate: {_date()}\r\n"]
        lines += [f"{name}: {_in_one_line(value)}\r\n" for name, value in self._headers]
        if not (self._is_kept and self.is_wanted):
            lines.append("Connection: close\r\n")
        elif not head.minor_version:
            lines.append("Connection: keep-alive\r\n")
        return "".join((*lines, framing, "\r\n")).encode("latin-1", "replace")

    def _send(self, data: bytes) -> None:
        """Raises TimeoutError for a client that does not read."""
        if not data:
            return
        give_up_at = time.monotonic() + self._limits.send_secs + len(data) / LEAST_BYTES_A_SEC
        view = memoryview(data)
        while True:
            self._sock.settimeout(max(0.001, min(self._limits.send_secs, give_up_at - time.monotonic())))
            self._server.begin_waiting(self)
            view = view[self._sock.send(view[:SEND_BYTES]) :]
            self._server.end_waiting(self)
            if not view:
                return
            self._turns.pause()

    def _refuse(self, status: str, reason: str) -> None:
        if self._has_begun:
            return  # the answer is under way already, and will not end well
        body = f"{reason}\n".encode()
        text = f"HTTP/1.1 {status}\r\nDate: {_date()}\r\nContent-Type: text/plain; charset=utf-8\r\n"
        self._send(f"{text}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode("latin-1") + body)

    def _linger(self) -> None:
        """A connection that is closed while the client still sends would be reset, and our last words with it."""
        self._sock.shutdown(native.SHUT_WR)
        self._server.begin_waiting(self)
        self._give_up_at = time.monotonic() + LINGER_SECS
        left_bytes = LINGER_BYTES
        try:
            while left_bytes > 0:
                left_bytes -= len(self._recv())
                let_others()
        except TimeoutError:
            return

    def _received(self) -> bytes:
        """More of a head, or of a body."""
        body = self._body
        if body is None:
            return self._recv()
        self._server.begin_waiting(self)
        try:
            data = self._recv()
        except TimeoutError:
            raise BadBody("408 Request Timeout", "The body did not come in time.") from None
        if len(data) == READ_BYTES:
            let_others()  # there is probably more, and who sends that fast would never make us wait
        return data

    def _recv(self) -> bytes:
        self._sock.settimeout(max(0.001, self._give_up_at - time.monotonic()))
        data: bytes = self._sock.recv(READ_BYTES)
        if not data:
            raise ConnectionError("the client has left")
        return data


class _AskedFor:
    """A body that the client sends only if we want it; reading says so."""

    def __init__(self, body: Body, sock: Any) -> None:
        self._body = body
        self._sock = sock

    def read(self, size: int = -1) -> bytes:
        if self._sock is not None and not self._body.is_at_end:
            self._sock.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        self._sock = None
        return self._body.read(size)


def shut_down(sock: Any) -> None:
    """Whoever waits for it wakes up. TLS is passed over: its own way would take the keys from under whoever waits."""
    try:
        socket.socket.shutdown(sock, native.SHUT_RDWR)
    except OSError:
        return  # it has ended by itself


def _is_passed_over(head: Head) -> bool:
    """Whether it is worth the while to read what nobody has read of a body, and keep the connection."""
    if head.expects_continue or head.length_bytes is None:
        return False
    return head.length_bytes <= SMALL_BODY_BYTES


def _in_one_line(value: str) -> str:
    """A header that began a line of its own could say anything, and begin another answer."""
    return value if value.isprintable() else "".join(each if each.isprintable() else "?" for each in value)


def _about(address: Any) -> dict[str, str]:
    if isinstance(address, tuple):
        return {"REMOTE_ADDR": str(address[0]), "REMOTE_PORT": str(address[1])}
    return {"REMOTE_ADDR": ""}


def _translated(name: str) -> str:
    key = name.upper().replace("-", "_")
    if name not in ("content-type", "content-length"):
        key = f"HTTP_{key}"
    if len(name) <= MAX_TRANSLATED_CHARS:
        if len(TRANSLATED) >= MAX_TRANSLATED:
            TRANSLATED.clear()
        TRANSLATED[name] = key
    return key


_dated = (0, "")


def _date() -> str:
    """Now, as HTTP writes it; put together once a second."""
    global _dated
    now = int(time.time())
    if _dated[0] != now:
        _dated = now, formatdate(now, usegmt=True)
    return _dated[1]
