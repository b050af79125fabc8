"""Addresses, listening sockets, and the limit on the number of connections.

Rule: no client can keep others out by holding connections open. When all places are taken, a connection that waits for
its client is closed: for a request or the rest of one, for the TLS handshake, or for an answer to be read. It is the
oldest one from the address with most of them. If all connections are being served, the new client is asked to come
back later; each caller has a share of the places.
"""

from __future__ import annotations

import errno
import ipaddress
import os
import re
import socket as native
import stat
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from gevent import socket
from gevent.server import StreamServer

from mcpgreen import journal
from mcpgreen.errors import UsageError
from mcpgreen.running.shares import Shares
from mcpgreen.transports.http.wire.connection import Connection, Request, Response

if TYPE_CHECKING:
    from ssl import SSLContext

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8808
MAX_PORT = 65535
ADDRESS = re.compile(
    r"(?:\[(?P<literal>[0-9A-Fa-f:.]+)\]|(?P<name>[A-Za-z0-9.-]*))(?::(?P<port>[0-9]{1,5}))?", re.ASCII
)
UNIX = "unix:"
FIRST_PASSED_FD = 3  # as systemd counts
BACKLOG = 1024
CLIENT_BITS = 64  # of an IPv6 address
FULL = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

Application = Callable[[Request], Response]


class Address(NamedTuple):
    """`path` for a Unix socket, else host and port."""

    host: str = ""
    port: int = 0
    path: str = ""

    @property
    def is_private(self) -> bool:
        """Whether only this machine can reach it."""
        return bool(self.path) or is_loopback(self.host)


def parse_address(text: str) -> Address:
    """`HOST:PORT`, `HOST`, `:PORT`, `PORT`, `[::1]:PORT` or `unix:PATH`. Raises UsageError."""
    if text.startswith(UNIX):
        if not text.removeprefix(UNIX):
            raise UsageError("--http unix: needs the path of a socket, such as unix:/run/user/1000/mcp.sock")
        return Address(path=os.path.abspath(text.removeprefix(UNIX)))
    found = ADDRESS.fullmatch(f":{text}" if text.isdigit() else text)
    if found is None or int(found["port"] or 0) > MAX_PORT:
        reason = f"this is not HOST:PORT, with a port up to {MAX_PORT}; try {DEFAULT_HOST}:{DEFAULT_PORT}"
        raise UsageError(f"--http {text!r}: {reason}")
    port = DEFAULT_PORT if found["port"] is None else int(found["port"])
    return Address(found["literal"] or found["name"] or DEFAULT_HOST, port)


@lru_cache(maxsize=64)
def is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def place_of(address: tuple[str, int] | str) -> str:
    """Return where a client comes from, by the address of its socket. It distinguishes callers without a name. In IPv6
    each client has a whole network."""
    host = address[0] if isinstance(address, tuple) else ""
    if ":" not in host:
        return host
    parsed = ipaddress.IPv6Address(host)
    return str(parsed.ipv4_mapped or ipaddress.IPv6Network((parsed, CLIENT_BITS), strict=False).network_address)


def listen(address: Address) -> native.socket:
    """Make a listening socket. Raises UsageError, with what to do, if that fails."""
    try:
        if address.path:
            return _listen_at_path(address.path)
        found = native.getaddrinfo(address.host, address.port, type=native.SOCK_STREAM, flags=native.AI_PASSIVE)
        return _bound(found[0][0], found[0][4])
    except OSError as error:
        shown = address.path or f"{address.host}:{address.port}"
        raise UsageError(f"--http {shown}: {error.strerror or error}; choose another address") from error


def inherited(environ: Mapping[str, str]) -> native.socket | None:
    """Return the socket that systemd passes on (socket activation), or None."""
    if environ.get("LISTEN_PID") != str(os.getpid()) or not environ.get("LISTEN_FDS", "").isdigit():
        return None
    if int(environ["LISTEN_FDS"]) != 1:
        raise UsageError(f"systemd passes {environ['LISTEN_FDS']} sockets; configure exactly one ListenStream")
    os.set_inheritable(FIRST_PASSED_FD, False)
    sock: native.socket = socket.socket(fileno=FIRST_PASSED_FD)
    sock.setblocking(False)
    return sock


def address_of(sock: native.socket) -> Address:
    """Return the real address of a listening socket: port 0 has become a free one."""
    name = sock.getsockname()
    if sock.family == native.AF_UNIX:
        return Address(path=os.fsdecode(name))
    return Address(name[0], name[1])


def _listen_at_path(path: str) -> native.socket:
    """Only its owner may connect. An old socket without a listener is replaced; nothing else is removed."""
    if os.path.exists(path) and stat.S_ISSOCK(os.lstat(path).st_mode) and not _has_listener(path):
        os.unlink(path)
    before = os.umask(0o177)
    try:
        return _bound(native.AF_UNIX, path)
    finally:
        os.umask(before)


def _bound(family: int, where: object) -> native.socket:
    sock: native.socket = socket.socket(family, native.SOCK_STREAM)
    try:
        if family != native.AF_UNIX:
            sock.setsockopt(native.SOL_SOCKET, native.SO_REUSEADDR, 1)
        sock.bind(where)  # type: ignore[arg-type]  # as getaddrinfo returns it, or a path
        sock.listen(BACKLOG)
    except BaseException:
        sock.close()
        raise
    return sock


def _has_listener(path: str) -> bool:
    with native.socket(native.AF_UNIX, native.SOCK_STREAM) as probe:
        probe.settimeout(1)
        return probe.connect_ex(path) != errno.ECONNREFUSED


class HttpServer(StreamServer):  # type: ignore[misc]  # gevent has no types
    """A server of gevent, with our connections and a limit on their number."""

    max_accept = 16  # at a time, before each of them has a place or is refused

    def __init__(
        self,
        listener: native.socket,
        application: Application,
        *,
        max_connections: int,
        max_body_bytes: int,
        tls: SSLContext | None = None,
    ) -> None:
        self.application = application
        self.max_body_bytes = max_body_bytes
        self.tls = tls
        self.is_ending = False  # then each connection, also a new one, has one more answer, which says so
        self.serving = Shares(max_connections)  # connections with a request of a known caller
        self._waiting: dict[Connection, None] = {}  # for their clients, the oldest first
        self._open: set[Connection] = set()
        # Twice as many greenlets: some clients are being refused, or are on their way out. The TLS context is not
        # passed on, because gevent would give a handshake all the time in the world.
        super().__init__(listener, spawn=2 * max_connections)

    @property
    def connections(self) -> int:
        return len(self._open)

    @property
    def has_idle_connections(self) -> bool:
        return any(connection.is_idle for connection in self._open)

    def handle(self, sock: native.socket, address: tuple[str, int] | str) -> None:
        """Serve one client, in a greenlet of its own; gevent closes the socket afterwards."""
        if len(self._open) >= self.serving.size and not self._evict_waiting():
            self._turn_away(sock)
            return
        if sock.family != native.AF_UNIX:
            sock.setsockopt(native.IPPROTO_TCP, native.TCP_NODELAY, 1)
        if self.tls is not None:
            try:
                sock = self.tls.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
            except OSError as error:
                journal.debug("a client disconnected before the TLS handshake: %s", error)
                return
        connection = Connection(sock, self, place_of(address))
        self._open.add(connection)
        connection.handle()

    def make_room_for(self, owner: Hashable) -> bool:
        """Make room for a request of this owner by closing its oldest waiting connection. False if it has none."""
        if self.serving.has_room(owner):
            return True
        oldest = next((each for each in self._waiting if each.owner == owner), None)
        if oldest is not None:
            self._end_early(oldest)
        return oldest is not None

    def begin_waiting(self, connection: Connection) -> None:
        """This connection waits for its client. If it waits already, it keeps its place in the order."""
        if connection in self._open:
            self._waiting.setdefault(connection)

    def end_waiting(self, connection: Connection) -> None:
        self._waiting.pop(connection, None)

    def forget(self, connection: Connection) -> None:
        self._open.discard(connection)
        self.end_waiting(connection)

    def stop_listening(self) -> None:
        """Close the listening socket, after accepting all clients that the system has accepted for us."""
        self.stop_accepting()
        try:
            while not self.full() and (arrived := self.do_read()):
                self.do_handle(*arrived)
        except OSError as error:
            journal.warning("cannot answer clients that have just connected: %s", error)
        self.socket.close()

    def end_connections(self, *, only_idle: bool = False) -> None:
        for connection in list(self._open):
            if connection.is_idle or not only_idle:
                connection.end()

    def _evict_waiting(self) -> bool:
        """Close a connection that waits for its client. Return False if there is none."""
        if not self._waiting:
            return False
        ((most, _),) = Counter(each.place for each in self._waiting).most_common(1)
        oldest = next(each for each in self._waiting if each.place == most)
        journal.info("all %d connections are in use; closing the one that has been idle longest", len(self._open))
        self._end_early(oldest)
        return True

    def _end_early(self, connection: Connection) -> None:
        self.forget(connection)
        connection.end()

    def _turn_away(self, sock: native.socket) -> None:
        if self.tls is not None:
            return  # we could say nothing before the handshake
        sock.settimeout(0)
        try:
            sock.send(FULL)
        except OSError as error:
            journal.debug("could not tell a client that all connections are in use: %s", error)
