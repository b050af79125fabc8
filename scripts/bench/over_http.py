"""What every subject is asked over HTTP: load over many connections, in both eras, and idle ones.

A load is a `Cell`: one method in one era over so many connections. A session has no `server/discover`, so `ping` stands
in its place: both are answered without any work. The servers live through all rounds, so that each has compiled what it
compiles.
"""

from __future__ import annotations

import itertools
import re
import select
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from client import RunningServer, cpu_ms, encoded, memory_mb
from figures import SubjectError, Values, since_ms
from over_pipes import IN_FLIGHT, ask_at_once, says
from subjects import Stand

SESSION = "session"
STATELESS = "stateless"
REVISIONS = {SESSION: "2025-11-25", STATELESS: "2026-07-28"}
PROJECT = "tools-100"
CALL = {"name": "tool0042", "arguments": {}}
CLIENT = {"name": "bench", "version": "1"}
WAIT_SECS = 20.0
READY_SECS = 30.0
SLOW_MS = 3000.0
BEFORE_COUNTING = 20  # what is imported or allocated once is there by then
READY = re.compile(rb"http://127\.0\.0\.1:(\d+)/mcp")
SESSION_ID = re.compile(rb"mcp-session-id: *(\S+)", re.IGNORECASE)
CHUNKED = re.compile(rb"transfer-encoding: *chunked", re.IGNORECASE)
LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
FIRST_ID = 1_000_000_000  # all ids have as many digits, so that a request is encoded once


class Cell(NamedTuple):
    """`wanted` has to be in each answer."""

    name: str
    method: str
    era: str
    wanted: str
    params: Mapping[str, Any]
    connections: int

    @property
    def key(self) -> str:
        return f"http_{self.name}_{self.era}_{self.connections}"

    @property
    def title(self) -> str:
        return f"{self.method}, {self.era}, {self.connections} connection{'s' if self.connections > 1 else ''}"

    @property
    def tells_cpu(self) -> bool:
        """Once for each request is enough: what a request costs hardly depends on the number of connections."""
        return self.connections == IN_FLIGHT

    @property
    def has_stdio_twin(self) -> bool:
        """Whether our server does the same over stdio, to compare with."""
        return self.name == "call" and self.connections == IN_FLIGHT


CELLS = tuple(
    Cell(name, method, era, wanted, params, connections)
    for name, method, era, wanted, params in (
        ("ping", "ping", SESSION, '"result"', {}),
        ("discover", "server/discover", STATELESS, "supportedVersions", {}),
        ("list", "tools/list", SESSION, "tool0099", {}),
        ("list", "tools/list", STATELESS, "tool0099", {}),
        ("call", "tools/call", SESSION, '"ok', CALL),
        ("call", "tools/call", STATELESS, '"ok', CALL),
    )
    for connections in (1, IN_FLIGHT, 256)
)


class Request:
    """A request of one of the two eras as bytes, with the headers that real clients send; without a session id it is
    stateless. Each time it is taken, it has another id."""

    _ids = itertools.count(FIRST_ID)

    def __init__(self, method: str, params: Mapping[str, Any], *, session_id: str | None = None) -> None:
        era = STATELESS if session_id is None else SESSION
        headers = {
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
            "User-Agent": "bench/1",
            "MCP-Protocol-Version": REVISIONS[era],
        }
        if session_id:
            headers["Mcp-Session-Id"] = session_id
        elif session_id is None:
            headers["Mcp-Method"] = method
            headers.update({"Mcp-Name": params["name"]} if method == "tools/call" else {})
            prefix = "io.modelcontextprotocol/"
            meta = {"protocolVersion": REVISIONS[era], "clientInfo": CLIENT, "clientCapabilities": {}}
            params = {**params, "_meta": {prefix + name: value for name, value in meta.items()}}
        number = {} if method.startswith("notifications/") else {"id": FIRST_ID}
        body = encoded({"jsonrpc": "2.0", **number, "method": method, "params": params})
        headers["Content-Length"] = str(len(body))
        lines = [*(f"{name}: {value}" for name, value in headers.items()), "", ""]
        self._before, _, self._after = ("\r\n".join(lines).encode("ascii") + body).partition(b"%d" % FIRST_ID)

    def take(self) -> tuple[bytes, bytes]:
        """The id, and the request without its first line and the host."""
        number = b"%d" % next(self._ids) if self._after else b""
        return number, self._before + number + self._after


class Connection:
    """A connection that stays open, and knows of answers only what it takes to find their end: a length, or chunks."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=WAIT_SECS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._head = b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n" % port
        self.received = b""
        self.sent_at = 0.0
        self.number = b""

    def send(self, request: Request) -> None:
        self.number, rest = request.take()
        self.received = b""
        self.sent_at = time.perf_counter()
        self.socket.sendall(self._head + rest)

    def receive(self) -> None:
        chunk = self.socket.recv(1 << 20)
        if not chunk:
            raise SubjectError(f"the server closed the connection within an answer: {self.received[:200]!r}")
        self.received += chunk

    def answer(self) -> tuple[bytes, bytes] | None:
        """Head and body, once all of it has come."""
        head, end, body = self.received.partition(b"\r\n\r\n")
        if not end:
            return None
        if CHUNKED.search(head):
            return (head, b"".join(chunks_of(body))) if body.endswith(b"0\r\n\r\n") else None
        length = LENGTH.search(head)
        return (head, body) if length is None or len(body) >= int(length[1]) else None

    def ask(self, request: Request, *, status: int = 200) -> tuple[bytes, bytes]:
        self.send(request)
        self.receive()
        while (answer := self.answer()) is None:
            self.receive()
        if b"HTTP/1.1 %d" % status not in answer[0]:
            raise SubjectError(f"status of an answer: {answer[0][:40]!r}; body: {answer[1][:200]!r}")
        return answer


def chunks_of(body: bytes) -> Iterator[bytes]:
    while body:
        size, _, body = body.partition(b"\r\n")
        yield body[: int(size, 16)]
        body = body[int(size, 16) + 2 :]


class HttpServer(RunningServer):
    """A server on a port of loopback, from the moment on that it says which."""

    pipe = subprocess.DEVNULL

    def __init__(self, command: Sequence[str], *, env: Mapping[str, str], cwd: Path, stderr: Path) -> None:
        super().__init__(command, env=env, cwd=cwd, stderr=stderr)
        deadline = time.monotonic() + READY_SECS
        while (ready := READY.search(stderr.read_bytes())) is None:
            has_ended = self.process.poll() is not None
            if has_ended or time.monotonic() > deadline:
                self.close()
                raise SubjectError(f"the server {'ended' if has_ended else 'is not ready'}: {self.last_words()}")
            time.sleep(0.01)
        self.port = int(ready[1])

    def new_session(self) -> str:
        """The id of a session whose handshake is complete. Its connection is closed."""
        connection = Connection(self.port)
        with connection.socket:
            params = {"protocolVersion": REVISIONS[SESSION], "capabilities": {}, "clientInfo": CLIENT}
            head, _ = connection.ask(Request("initialize", params, session_id=""))
            session_id = SESSION_ID.search(head)
            if session_id is None:
                raise SubjectError("initialize was answered without an Mcp-Session-Id")
            found = session_id[1].decode("ascii")
            connection.ask(Request("notifications/initialized", {}, session_id=found), status=202)
        return found

    def open_listen(self) -> socket.socket:
        """A `subscriptions/listen`, from its acknowledgement on."""
        connection = Connection(self.port)
        connection.send(Request("subscriptions/listen", {"notifications": {"toolsListChanged": True}}))
        while b"notifications/subscriptions/acknowledged" not in connection.received:
            connection.receive()
        return connection.socket


class HttpStand(Stand):
    """One subject over HTTP. Sessions are made when a load needs them, and used by all that follow."""

    def __init__(self, name: str, *, scratch: Path, is_quick: bool) -> None:
        self.slow_cells: set[str] = set()
        self._session_ids: list[str] = []
        super().__init__(name, scratch=scratch, is_quick=is_quick, project=PROJECT)

    def start_http(self, mode: str) -> HttpServer:
        return self.launch(HttpServer, PROJECT, mode, {})

    def shared_http(self) -> HttpServer:
        if self._shared is None:
            self._shared = self.start_http("json")
        assert isinstance(self._shared, HttpServer)
        return self._shared

    def try_out(self) -> None:
        server = self.shared_http()
        for session_id in (server.new_session(), None):
            connection = Connection(server.port)
            with connection.socket:
                head, body = connection.ask(Request("tools/call", CALL, session_id=session_id))
                check_answer(head, body, number=connection.number, wanted=b'"ok')

    def session_ids(self, count: int) -> list[str]:
        while len(self._session_ids) < count:
            self._session_ids.append(self.shared_http().new_session())
        return self._session_ids[:count]

    def end_round(self) -> None:
        """The server stays."""

    def close(self) -> None:
        self._session_ids.clear()
        super().close()


def loaded(cell: Cell) -> Callable[[Stand], Values]:
    def measure(stand: Stand) -> Values:
        return put_load(stand, cell) if isinstance(stand, HttpStand) else call_over_stdio(stand, cell)

    return measure


def put_load(stand: HttpStand, cell: Cell) -> Values:
    """Nothing the second time, if the first took long: it is far behind, and the others would wait for it."""
    if cell.key in stand.slow_cells:
        return {}
    server = stand.shared_http()
    ids = stand.session_ids(cell.connections) if cell.era == SESSION else [None]
    requests = [Request(cell.method, cell.params, session_id=each) for each in ids]
    secs = 0.05 if stand.is_quick else 0.8 if cell.name == "call" else 0.3
    cpu_before, start = cpu_ms(server.pid), time.perf_counter()
    latencies_ms, rate, answered = load(
        server.port, requests, connection_count=cell.connections, secs=secs, wanted=cell.wanted.encode()
    )
    if since_ms(start) > SLOW_MS:
        stand.slow_cells.add(cell.key)
    values = {cell.key: rate, f"{cell.key}_p50": median(latencies_ms)}
    values[f"{cell.key}_p99"] = sorted(latencies_ms)[len(latencies_ms) * 99 // 100]
    if cell.tells_cpu:
        values[f"{cell.key}_cpu"] = (cpu_ms(server.pid) - cpu_before) / answered
    return values


def load(
    port: int, requests: Sequence[Request], *, connection_count: int, secs: float, wanted: bytes
) -> tuple[list[float], float, int]:
    """Send a request over each connection as soon as the answer before it is complete, and check every answer.

    Return latencies, answers per second, and how many came in all. As many answers as there are connections are not
    counted, nor those of the first second of a slow server; `secs` later no more requests are sent. Nothing is left to
    do for the server then, which would slow down the next one.
    """
    latencies_ms: list[float] = []
    answered = 0
    with ExitStack() as cleanup, select.epoll() as poll:
        busy: dict[int, tuple[Connection, Request]] = {}
        for _, request in zip(range(connection_count), itertools.cycle(requests), strict=False):
            connection = Connection(port)
            cleanup.enter_context(connection.socket)
            poll.register(connection.socket, select.EPOLLIN)
            busy[connection.socket.fileno()] = connection, request
        started_at = counting_since = time.perf_counter()
        for connection, request in busy.values():
            connection.send(request)
        while busy:
            ready = poll.poll(WAIT_SECS)
            if not ready:
                raise SubjectError(f"no answer within {WAIT_SECS:g} s")
            for descriptor, _ in ready:
                connection, request = busy[descriptor]
                connection.receive()
                answer = connection.answer()
                if answer is None:
                    continue
                now = time.perf_counter()
                check_answer(*answer, number=connection.number, wanted=wanted)
                answered += 1
                if answered <= connection_count and now - started_at < 1:
                    counting_since = now
                else:
                    latencies_ms.append((now - connection.sent_at) * 1000)
                if not latencies_ms or now - counting_since < secs:
                    connection.send(request)
                else:
                    del busy[descriptor]
        return latencies_ms, len(latencies_ms) / (time.perf_counter() - counting_since), answered


def check_answer(head: bytes, body: bytes, *, number: bytes, wanted: bytes) -> None:
    if not head.startswith(b"HTTP/1.1 200"):
        raise SubjectError(f"status of an answer: {head[:40]!r}; body: {body[:200]!r}")
    if number not in body or wanted not in body or b'"error":' in body or b'"isError":true' in body:
        raise SubjectError(f"wrong answer to request {number!r}: {body[:200]!r}")


def call_over_stdio(stand: Stand, cell: Cell) -> Values:
    """As many calls in flight as there are connections otherwise."""
    session = stand.shared()
    requests = [session.encode("tools/call", cell.params) for _ in range(stand.times(1000))]
    rate, cpu = ask_at_once(session, requests, says("ok"), cell.connections)
    return {cell.key: rate, f"{cell.key}_cpu": cpu}


def idle_sessions(stand: HttpStand) -> Values:
    """After the handshake, with their connections closed, as clients between two requests may leave them."""
    with stand.start_http("json") as server:
        return {"http_idle_session": kib_each(server, server.new_session, stand.times(1000))}


def idle_listens(stand: HttpStand) -> Values:
    """Without FastMCP, which has no listens."""
    with stand.start_http("sse") as server, ExitStack() as cleanup:

        def open_listen() -> None:
            cleanup.enter_context(server.open_listen())

        return {"http_idle_listen": kib_each(server, open_listen, stand.times(500))}


def kib_each(server: HttpServer, make: Callable[[], object], count: int) -> float:
    """How much memory one of these takes. The server is new, so that nothing else is in its memory."""
    for _ in range(BEFORE_COUNTING):
        make()
    time.sleep(0.5)  # until the server has closed connections and collected garbage
    before = memory_mb(server.pid)
    for _ in range(count):
        make()
    time.sleep(0.5)
    return (memory_mb(server.pid) - before) * 1e6 / 1024 / count
