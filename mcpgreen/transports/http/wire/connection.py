"""One connection: request after request, each answered by the WSGI application, nothing waited for without end.

In place of gevent's own handler, which knows no time limits, reads doubtful heads leniently, and takes longer for a
head than the server does for its answer. Reading and writing wait in this greenlet only; it gives others a turn
between two requests, however fast they come.
"""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Callable, Iterable, Sequence
from email.utils import formatdate
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_to_bytes

import gevent

from mcpgreen import journal
from mcpgreen.running.turns import Turns
from mcpgreen.transports.http.wire import heads
from mcpgreen.transports.http.wire.bodies import BadBody, Body
from mcpgreen.transports.http.wire.heads import BadHead, Head

if TYPE_CHECKING:
    from mcpgreen.transports.http.wire.listening import HttpServer

READ_BYTES = 65_536
SEND_BYTES = 1 << 18
LEAST_BYTES_A_SEC = 16_384  # that a reader takes; a large answer may take longer than a short one
SMALL_BODY_BYTES = 65_536  # what nobody has read of a body is read by us, if it is so short, and the connection kept
LINGER_SECS = 0.5
LINGER_BYTES = 1 << 20
STEADY_LOOK_SECS = 0.25
READ_EVENT = 1
HANGUP = getattr(select, "POLLRDHUP", 0) | select.POLLHUP | select.POLLERR
CONNECTION = "mcpgreen.connection"  # its place in the variables of WSGI
TRANSLATED: dict[str, str] = {}  # names of header lines, as variables; bounded, because clients choose names
MAX_TRANSLATED = 256

Headers = list[tuple[str, str]]


class Connection:
    """What gevent's WSGI server calls a handler."""

    def __init__(self, sock: Any, address: Any, server: HttpServer) -> None:
        self._sock = sock
        self._server = server
        self._limits = server.limits
        self._variables = {**server.variables, **_about(address)}
        self._unread = b""
        self._give_up_at = 0.0
        self._watcher: Any = None
        self._status = ""
        self._headers: Headers = []
        self._has_begun = False  # to answer
        self.is_wanted = True  # by the server, which may want it to end

    def handle(self) -> None:
        """Until either side has enough. Called by the server, in a greenlet of its own."""
        turns = Turns()
        try:
            while self._serve_one():
                turns.pause()
        except (OSError, EOFError) as error:
            journal.debug("a connection has ended: %s", error)
        except gevent.GreenletExit:
            pass  # the server is going, or needs the place
        finally:
            self._stop_watching()
            self._server.forget(self)
            self._sock.close()

    def end(self) -> None:
        """By whoever finds that it takes a place for nothing: the greenlet that waits for it wakes up and leaves."""
        try:
            self._sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            return  # it has ended by itself

    def on_hangup(self, callback: Callable[[], None]) -> None:
        """Called in the hub if the client goes before it is answered. A request that is sent ahead is no such sign."""
        self._hangup = callback
        if self._watcher is None:
            self._watcher = gevent.get_hub().loop.io(self._sock.fileno(), READ_EVENT)
        self._watcher.start(self._look)

    def receive(self, at_most_bytes: int) -> bytes:
        data = self._unread or self._received()
        self._unread = data[at_most_bytes:]
        return data[:at_most_bytes] if self._unread else data

    def receive_line(self, at_most_bytes: int) -> bytes:
        while (end := self._unread.find(b"\r\n")) < 0:
            if len(self._unread) > at_most_bytes:
                raise BadBody("400 Bad Request", "A line of the body is too long.")
            self._unread += self._received()
        line, self._unread = self._unread[:end], self._unread[end + 2 :]
        return line

    def _serve_one(self) -> bool:
        """Whether another request may follow."""
        raw = self._next_head()
        if raw is None:
            return False
        self._has_begun = False
        body = None
        try:
            head = heads.parse(raw)
            self._give_up_at = time.monotonic() + self._limits.body_secs
            body = Body(self, head.length_bytes, limit_bytes=self._limits.body_bytes)
            self._answer(head, body)
        except (BadHead, BadBody) as refusal:
            self._refuse(refusal.status, refusal.reason)
            self._linger()
            return False
        if not body.is_at_end and not self._has_passed_over(head, body):
            self._linger()
            return False
        return head.is_kept_alive and self.is_wanted

    def _next_head(self) -> bytes | None:
        """None if there will be none. The server knows meanwhile that nobody would miss this connection."""
        self._server.begin_waiting(self)
        self._give_up_at = time.monotonic() + self._limits.idle_secs
        try:
            unread = self._unread.lstrip(b"\r\n") or self._sock_recv().lstrip(b"\r\n")
            if not unread:
                return None
            self._give_up_at = time.monotonic() + self._limits.head_secs
            while (end := unread.find(b"\r\n\r\n")) < 0 or end > heads.MAX_HEAD_BYTES:
                if len(unread) > heads.MAX_HEAD_BYTES:
                    limit = heads.MAX_HEAD_BYTES
                    self._refuse("431 Request Header Fields Too Large", f"A head may have {limit} bytes.")
                    self._linger()
                    return None
                more = self._sock_recv()
                if not more:
                    return None
                unread += more
        except TimeoutError:
            if self._unread or self._give_up_at <= time.monotonic():
                journal.debug("a client sent no whole request in time")
            return None
        finally:
            self._server.end_waiting(self)
        self._unread = unread[end + 4 :]
        return unread[:end]

    def _answer(self, head: Head, body: Body) -> None:
        path, _, query = head.target.partition("?")
        variables = {
            **self._variables,
            "REQUEST_METHOD": head.method,
            "PATH_INFO": unquote_to_bytes(path).decode("latin-1") if "%" in path else path,
            "QUERY_STRING": query,
            "SERVER_PROTOCOL": f"HTTP/1.{head.minor_version}",
            "wsgi.input": body if not head.expects_continue else _AskedFor(body, self._sock),
            CONNECTION: self,
        }
        for name, value in head.fields.items():
            variables[TRANSLATED.get(name) or _translated(name)] = value
        parts: Iterable[bytes] = self._server.application(variables, self._begin)
        try:
            if isinstance(parts, list):
                self._send_whole(parts, head)
            else:
                self._send_stream(parts, head)
        finally:
            self._stop_watching()
            if hasattr(parts, "close"):
                parts.close()

    def _begin(self, status: str, headers: Headers, exc_info: Any = None) -> Callable[[bytes], object]:
        """WSGI's `start_response`."""
        self._status, self._headers = status, headers
        return self._send_by_hand

    def _send_by_hand(self, data: bytes) -> None:
        raise NotImplementedError("This server's application returns what it sends.")

    def _send_whole(self, parts: Sequence[bytes], head: Head) -> None:
        length_bytes = sum(map(len, parts))
        has_no_body = self._status[:3] in ("204", "304")
        begin = self._encoded_head(head, b"" if has_no_body else b"Content-Length: %d\r\n" % length_bytes)
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
        begin = self._encoded_head(head, b"Transfer-Encoding: chunked\r\n" if is_chunked else b"Connection: close\r\n")
        for part in parts:
            framed = b"%x\r\n%b\r\n" % (len(part), part) if is_chunked else part
            self._send(begin + framed)
            begin = b""
        self._send(begin + b"0\r\n\r\n" if is_chunked else begin)
        self.is_wanted = self.is_wanted and is_chunked

    def _encoded_head(self, head: Head, framing: bytes) -> bytes:
        self._has_begun = True
        lines = [f"HTTP/1.1 {self._status}\r\nDate: {_date()}\r\n"]
        lines += [f"{name}: {value}\r\n" for name, value in self._headers]
        if not (head.is_kept_alive and self.is_wanted):
            lines.append("Connection: close\r\n")
        elif not head.minor_version:
            lines.append("Connection: keep-alive\r\n")
        return "".join(lines).encode("latin-1") + framing + b"\r\n"

    def _send(self, data: bytes) -> None:
        """Raises TimeoutError for a client that does not read."""
        if not data:
            return
        give_up_at = time.monotonic() + self._limits.send_secs + len(data) / LEAST_BYTES_A_SEC
        view = memoryview(data)
        while view:
            self._sock.settimeout(max(0.001, min(self._limits.send_secs, give_up_at - time.monotonic())))
            view = view[self._sock.send(view[:SEND_BYTES]) :]

    def _refuse(self, status: str, reason: str) -> None:
        if self._has_begun:
            return  # the answer is under way already, and will not end well
        body = f"{reason}\n".encode()
        text = f"HTTP/1.1 {status}\r\nDate: {_date()}\r\nContent-Type: text/plain; charset=utf-8\r\n"
        self._send(f"{text}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode("latin-1") + body)

    def _has_passed_over(self, head: Head, body: Body) -> bool:
        """Whether what nobody has read of a body is out of the way."""
        if head.expects_continue or head.length_bytes is None or head.length_bytes > SMALL_BODY_BYTES:
            return False
        body.read()
        return True

    def _linger(self) -> None:
        """A connection that is closed while the client still sends would be reset, and our last words with it."""
        self._sock.shutdown(socket.SHUT_WR)
        self._give_up_at = time.monotonic() + LINGER_SECS
        left_bytes = LINGER_BYTES
        try:
            while left_bytes > 0 and (chunk := self._sock_recv()):
                left_bytes -= len(chunk)
        except TimeoutError:
            return

    def _received(self) -> bytes:
        """For a body."""
        try:
            data = self._sock_recv()
        except TimeoutError:
            raise BadBody("408 Request Timeout", "The body did not come in time.") from None
        if not data:
            raise EOFError("the client left in the middle of a body")
        return data

    def _sock_recv(self) -> bytes:
        self._sock.settimeout(max(0.001, self._give_up_at - time.monotonic()))
        data: bytes = self._sock.recv(READ_BYTES)
        return data

    def _look(self) -> None:
        """In the hub: there is something to read, or the end."""
        if self._is_hung_up():
            self._watcher.stop()
            self._hangup()
        else:
            # A request that is sent ahead would wake us again and again.
            self._stop_watching()
            self._watcher = gevent.get_hub().loop.timer(STEADY_LOOK_SECS, repeat=STEADY_LOOK_SECS)
            self._watcher.start(self._look_steadily)

    def _look_steadily(self) -> None:
        if self._is_hung_up():
            self._watcher.stop()
            self._hangup()

    def _is_hung_up(self) -> bool:
        poller = select.poll()
        poller.register(self._sock.fileno(), HANGUP)
        return bool(poller.poll(0))

    def _stop_watching(self) -> None:
        if self._watcher is not None:
            self._watcher.stop()
            self._watcher.close()
            self._watcher = None


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


def _about(address: Any) -> dict[str, str]:
    if isinstance(address, tuple):
        return {"REMOTE_ADDR": str(address[0]), "REMOTE_PORT": str(address[1])}
    return {"REMOTE_ADDR": ""}


def _translated(name: str) -> str:
    key = name.upper().replace("-", "_")
    if name not in ("content-type", "content-length"):
        key = f"HTTP_{key}"
    if len(TRANSLATED) < MAX_TRANSLATED:
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
