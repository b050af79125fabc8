"""One connection: one request after another, each answered by the application, and a time limit for every wait.

It takes the place of the handler of gevent's own HTTP server, which has no time limits, accepts doubtful heads, and
takes longer for a head than the server does for its answer. Reading and writing wait in this greenlet only, and other
greenlets get a turn between two requests, however fast they come.

Rule: while a connection waits for its client, the server knows that, and may close it to make room for a new client.
"""

from __future__ import annotations

import re
import select
import socket as native
import sys
import time
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from email.utils import formatdate
from functools import lru_cache, partial
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

import gevent
from gevent import socket

from mcpgreen import journal
from mcpgreen.running.shares import Turns, let_others
from mcpgreen.transports.http.wire import heads
from mcpgreen.transports.http.wire.heads import BAD, BadRequest, Head

if TYPE_CHECKING:
    from mcpgreen.links.principal import Principal
    from mcpgreen.transports.http.wire.listening import HttpServer

IDLE_SECS = 75.0  # between two requests on a connection; proxies have to close it earlier
HEAD_SECS = 10.0  # for the head of a request, or the handshake of TLS, to arrive
BODY_SECS = 30.0
SEND_SECS = 30.0  # for which a client may read nothing
READ_BYTES = 65_536
SEND_BYTES = 1 << 18
LEAST_BYTES_A_SEC = 16_384  # that a client has to read; a large answer may take longer than a short one
SMALL_BODY_BYTES = 65_536
MAX_LINE_ENDS = 8  # between two requests
LINGER_SECS = 0.5
LINGER_BYTES = 1 << 20
STEADY_LOOK_SECS = 0.25
READ_EVENT = 1
HANGUP_SIGNS = getattr(select, "POLLRDHUP", 0) | select.POLLHUP | select.POLLERR
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
TEXT = ("Content-Type", "text/plain; charset=utf-8")

Headers = list[tuple[str, str]]
LINE_END = b"\r\n"
CHUNK_SIZE = re.compile(rb"[0-9A-Fa-f]{1,8}")
MAX_SIZE_LINE_BYTES = 32
# A chunk is as much work as a few hundred bytes, so beyond the free ones, a body needs this many bytes for each chunk.
FREE_CHUNKS = 1024
BYTES_A_CHUNK = 256
CHUNKS_A_TURN = 64


@dataclass(slots=True)
class Request:
    """What the application gets. `fields` are the headers, by their names in lower case. The application sets the rest:
    `principal` is the caller, if it is known, and `owner` says whose share the request counts for."""

    method: str
    path: str
    query: str
    fields: dict[str, str]
    body: Body
    connection: Connection
    principal: Principal | None = None
    owner: Hashable = None


class Response(NamedTuple):
    """What the application returns. `body` is a list if all of it is there, and else a stream."""

    status: str
    headers: Headers
    body: Iterable[bytes]


class Connection:
    """A connection with one client. `place` is where the client comes from. `is_idle`: it is not sending a request."""

    def __init__(self, sock: native.socket, server: HttpServer, place: str) -> None:
        self._sock = sock
        self._server = server
        self.owner: Hashable = None  # of the request that is being served
        self.place = place
        self._buffer = Buffer(self._received)
        self._watch = HangupWatch(sock)
        self.on_hangup = self._watch.start
        self._turns = Turns()
        self._give_up_at = 0.0
        self._body: Body | None = None  # that is being read
        self._is_kept = False  # for another request
        self._has_begun_to_answer = False
        self.sent_at = 0.0
        self.is_idle = False

    def handle(self) -> None:
        """Serve requests until either side has enough. Runs in its own greenlet."""
        try:
            if self._server.tls is not None:
                self._secure()
            while self._serve_one():
                # A client that sends many requests at once, or the next one sooner than we answer, has one of them
                # served at a time: else each of many such clients would hold up the others for a whole turn.
                if len(self._buffer) or self._server.connections > 1:
                    let_others()
                else:
                    self._turns.pause()
        except OSError as error:
            journal.debug("a connection ended: %s", error)
        except gevent.GreenletExit:
            pass  # the server is going, or needs the place
        finally:
            self._watch.stop()
            self._server.forget(self)
            self._sock.close()

    def end(self) -> None:
        """Shut the connection down, from another greenlet: the one that waits for it wakes up and leaves. TLS is
        bypassed: shutting it down properly would take its keys away from under that greenlet."""
        with suppress(OSError):  # it has ended by itself
            socket.socket.shutdown(self._sock, native.SHUT_RDWR)

    def serve_for(self, owner: Hashable) -> bool:
        """Count for the share of this owner until the request is answered. Return False if the share is used up."""
        if not self._server.make_room_for(owner):
            return False
        self._server.serving.take(owner)
        self.owner = owner
        return True

    def _secure(self) -> None:
        """Do the TLS handshake, for which the client has as long as for a head. Raises OSError."""
        self.is_idle = True
        self._server.begin_waiting(self)
        with gevent.Timeout(HEAD_SECS, TimeoutError("the TLS handshake took too long")):
            self._sock.do_handshake()  # type: ignore[attr-defined]  # a socket of ssl
        self._server.end_waiting(self)

    def _serve_one(self) -> bool:
        """Serve one request. Return whether another one may follow."""
        self._has_begun_to_answer = False
        self._body = None
        try:
            raw = self._next_head()
            if raw is None:
                return False
            head = heads.parse(raw)
            self._give_up_at = time.monotonic() + BODY_SECS
            body = self._body = Body(
                self._buffer,
                head.length_bytes,
                limit_bytes=self._server.max_body_bytes,
                on_first_read=partial(self._sock.sendall, CONTINUE) if head.expects_continue else None,
                at_end=lambda: self._server.end_waiting(self),
            )
            self._is_kept = head.is_kept_alive
            self._answer(head, body)
            if self._is_kept and not body.is_at_end:
                self._give_up_at = time.monotonic() + HEAD_SECS
                body.read()
        except BadRequest as refusal:
            if not self._has_begun_to_answer:  # a second answer in the middle of the first would make things worse
                self._is_kept = False
                self._send_whole(Response(refusal.status, [TEXT], [f"{refusal.reason}\n".encode()]), None)
            self._linger()
            return False
        if not body.is_at_end:
            self._linger()
        return self._is_kept and not self._server.is_ending

    def _next_head(self) -> bytes | None:
        """Read the head of the next request; None if the client sends none in time."""
        self._server.begin_waiting(self)
        self._give_up_at = time.monotonic() + IDLE_SECS
        try:
            self.is_idle = not self._server.is_ending
            self._buffer.skip_line_ends(MAX_LINE_ENDS)
            self.is_idle = False
            self._give_up_at = time.monotonic() + HEAD_SECS
            return self._buffer.take_until(b"\r\n\r\n", heads.MAX_HEAD_BYTES, what="A head", status=heads.TOO_LARGE)
        except TimeoutError:
            journal.debug("a client did not send a complete request in time")
            return None
        finally:
            self._server.end_waiting(self)

    def _answer(self, head: Head, body: Body) -> None:
        path, _, query = head.target.partition("?")  # as it was sent: no path that is served needs an escape
        response = None
        try:
            response = self._server.application(Request(head.method, path, query, head.fields, body, self))
            # A short body that the application does not want is read, so that the connection can be kept.
            is_short = head.length_bytes is not None and head.length_bytes <= SMALL_BODY_BYTES
            if not body.is_at_end and (head.expects_continue or not is_short):
                self._is_kept = False
            if isinstance(response.body, list):
                self._send_whole(response, head)
            else:
                self._send_stream(response, head)
        finally:
            self._watch.stop()
            if self.owner is not None:
                self._server.serving.give_back(self.owner)
                self.owner = None
            if response is not None and hasattr(response.body, "close"):
                response.body.close()

    def _send_whole(self, response: Response, head: Head | None) -> None:
        """`head` is None if it is refused."""
        parts = list(response.body)
        has_no_body = response.status[:3] in ("204", "304")
        framing = "" if has_no_body else f"Content-Length: {sum(map(len, parts))}\r\n"
        begin = self._encoded_head(response, head, framing)
        self._send(begin, *([] if head is not None and head.method == "HEAD" else parts))

    def _send_stream(self, response: Response, head: Head) -> None:
        """Send the parts as they come: in chunks, or up to the end of the connection if the client is too old."""
        is_chunked = bool(head.minor_version)
        self._is_kept = self._is_kept and is_chunked
        begin = self._encoded_head(response, head, "Transfer-Encoding: chunked\r\n" if is_chunked else "")
        for part in response.body:
            self._send(begin, *((b"%x\r\n" % len(part), part, b"\r\n") if is_chunked else (part,)))
            begin = b""
        self._send(begin, b"0\r\n\r\n" if is_chunked else b"")

    def _encoded_head(self, response: Response, head: Head | None, framing: str) -> bytes:
        self._has_begun_to_answer = True
        lines = [f"HTTP/1.1 {response.status}\r\nDate: {_date(int(time.time()))}\r\n"]
        lines += [f"{name}: {_in_one_line(value)}\r\n" for name, value in response.headers]
        if not self._is_kept or self._server.is_ending:
            lines.append("Connection: close\r\n")
        elif head is not None and not head.minor_version:
            lines.append("Connection: keep-alive\r\n")
        return "".join((*lines, framing, "\r\n")).encode("latin-1", "replace")

    def _send(self, *pieces: bytes) -> None:
        """Send these, together if they are short. Raises TimeoutError for a client that does not read."""
        is_short = sum(map(len, pieces)) <= SEND_BYTES
        for data in [b"".join(pieces)] if is_short else pieces:
            give_up_at = time.monotonic() + SEND_SECS + len(data) / LEAST_BYTES_A_SEC
            view = memoryview(data)
            while view:
                self._sock.settimeout(max(0.001, min(SEND_SECS, give_up_at - time.monotonic())))
                self._server.begin_waiting(self)
                view = view[self._sock.send(view[:SEND_BYTES]) :]
                self._server.end_waiting(self)
                self.sent_at = time.monotonic()
                if view:
                    self._turns.pause()

    def _linger(self) -> None:
        """Read on for a moment before the connection is closed: closing it while the client still sends would reset
        it, and the client would not get our last answer."""
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
            raise BadRequest("The request body did not arrive in time.", "408 Request Timeout") from None
        if len(data) == READ_BYTES:
            let_others()  # there is probably more, and a client that sends so fast would never make us wait
        return data

    def _recv(self) -> bytes:
        self._sock.settimeout(max(0.001, self._give_up_at - time.monotonic()))
        data = self._sock.recv(READ_BYTES)
        if not data:
            raise ConnectionError("the client has disconnected")
        return data


class HangupWatch:
    """Notices that a client goes while it is being served: nothing is read then that would show it."""

    def __init__(self, sock: native.socket) -> None:
        self._sock = sock
        self._watcher: Any = None
        self._callback: Callable[[], None] = self.stop

    def start(self, callback: Callable[[], None]) -> None:
        """Call this in the hub, once, if the client goes before it is answered."""
        self._callback = callback
        if self._watcher is None:
            self._watcher = gevent.get_hub().loop.io(self._sock.fileno(), READ_EVENT)
            self._watcher.start(self._look)

    def stop(self) -> None:
        if self._watcher is not None:
            self._watcher.close()
            self._watcher = None

    def _look(self) -> None:
        """There is something to read, or the end."""
        self.stop()
        poller = select.poll()
        poller.register(self._sock.fileno(), HANGUP_SIGNS)
        if poller.poll(0):
            self._callback()
            return
        # The client has sent its next request ahead, which would wake us again and again.
        self._watcher = gevent.get_hub().loop.timer(STEADY_LOOK_SECS)
        self._watcher.start(self._look)


@lru_cache(maxsize=1)
def _date(now: int) -> str:
    return formatdate(now, usegmt=True)


def _in_one_line(value: str) -> str:
    """Replace unprintable characters: a line end could begin another header, or another answer."""
    return value if value.isprintable() else "".join(each if each.isprintable() else "?" for each in value)


class Buffer:
    """Bytes that a connection has received and not used yet. `receive` returns at least one more byte, or raises."""

    def __init__(self, receive: Callable[[], bytes]) -> None:
        self._receive = receive
        # Deleting the beginning does not copy the rest: many small requests or chunks may come at once.
        self._data = bytearray()

    def __len__(self) -> int:
        return len(self._data)

    def take(self, at_most_bytes: int) -> bytes:
        """Take what is here, at least a byte."""
        if not self._data:
            self._data += self._receive()
        taken = bytes(self._data[:at_most_bytes])
        del self._data[:at_most_bytes]
        return taken

    def take_until(self, end: bytes, at_most_bytes: int, *, what: str, status: str = BAD) -> bytes:
        """Take everything up to these bytes, which are left out. Raises BadRequest if they come later."""
        while (found := self._data.find(end, 0, at_most_bytes + len(end))) < 0:
            if len(self._data) >= at_most_bytes + len(end):
                raise BadRequest(f"{what} may be at most {at_most_bytes} bytes long.", status)
            self._data += self._receive()
        taken = bytes(self._data[:found])
        del self._data[: found + len(end)]
        return taken

    def skip_line_ends(self, at_most: int) -> None:
        """Skip line ends before a request: some clients send one after a body, where it does not belong."""
        for _ in range(at_most):
            while self._data in (b"", LINE_END[:1]):
                self._data += self._receive()
            if not self._data.startswith(LINE_END):
                return
            del self._data[: len(LINE_END)]


class Body:
    """The body of one request: read by its length or in chunks, within limits of size and time.

    Chunks are read as strictly as heads: no extensions, no trailers, no missing line ends. No MCP client sends them,
    and what is not understood cannot be misunderstood. `length_bytes` is None for chunks; more than `limit_bytes` is
    refused. `at_end` is called when all is read.
    """

    def __init__(
        self,
        buffer: Buffer,
        length_bytes: int | None,
        *,
        limit_bytes: int,
        on_first_read: Callable[[], None] | None = None,
        at_end: Callable[[], None] | None = None,
    ) -> None:
        self._buffer = buffer
        self._limit_bytes = limit_bytes
        self._on_first_read = on_first_read
        self._at_end = at_end
        self.is_at_end = length_bytes == 0
        self._require_within_limit(length_bytes or 0)
        # A generator that is never run would be part of a reference cycle.
        self._pieces = iter(()) if self.is_at_end else self._receive(length_bytes)

    def read(self, at_least_bytes: int = sys.maxsize) -> bytes:
        """Read this many bytes, or a few more; fewer only at the end. Raises BadRequest."""
        read = bytearray()
        for piece in self._pieces:
            read += piece
            if len(read) >= at_least_bytes:
                break
        return bytes(read)

    def _receive(self, length_bytes: int | None) -> Iterator[bytes]:
        if self._on_first_read is not None:
            self._on_first_read()
        yield from self._chunks() if length_bytes is None else self._part(length_bytes)
        self.is_at_end = True
        if self._at_end is not None:
            self._at_end()

    def _part(self, size_bytes: int) -> Iterator[bytes]:
        while size_bytes:
            piece = self._buffer.take(size_bytes)
            size_bytes -= len(piece)
            yield piece

    def _chunks(self) -> Iterator[bytes]:
        read_bytes = 0
        for number in count(1):
            line = self._line()
            if CHUNK_SIZE.fullmatch(line) is None:
                raise BadRequest("A chunk does not begin with its size.")
            size_bytes = int(line, 16)
            self._require_within_limit(read_bytes + size_bytes)
            if number > FREE_CHUNKS + read_bytes // BYTES_A_CHUNK:
                raise BadRequest("The body comes in too many small chunks; send larger ones.")
            if number % CHUNKS_A_TURN == 0:
                let_others()
            yield from self._part(size_bytes)
            if self._line():
                raise BadRequest("A chunk does not end where its size says.")
            if not size_bytes:
                return
            read_bytes += size_bytes

    def _line(self) -> bytes:
        return self._buffer.take_until(LINE_END, MAX_SIZE_LINE_BYTES, what="A line between chunks")

    def _require_within_limit(self, size_bytes: int) -> None:
        if size_bytes > self._limit_bytes:
            reason = f"The body may be at most {self._limit_bytes} bytes long (setting max_line_bytes)."
            raise BadRequest(reason, "413 Content Too Large")
