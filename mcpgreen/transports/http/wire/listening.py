"""Where clients knock: addresses, listening sockets, and how many connections there may be.

Rule: when all places are taken, the connection goes whose client has been waited for longest, be it for a request, for
the rest of one, for the handshake of TLS or for an answer to be read; if every one is being served, the new one is told
to come back. Nobody can keep others out by holding connections open.
"""

from __future__ import annotations

import ipaddress
import os
import re
import socket as native
import stat
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import gevent
from gevent import socket
from gevent.pywsgi import WSGIServer

from mcpgreen import journal
from mcpgreen.errors import UsageError
from mcpgreen.transports.http.wire.connection import Connection, shut_down

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8808
MAX_PORT = 65535
ADDRESS = re.compile(
    r"(?:\[(?P<literal>[0-9A-Fa-f:.]+)\]|(?P<name>[A-Za-z0-9.-]*))(?::(?P<port>[0-9]{1,5}))?", re.ASCII
)
UNIX = "unix:"
FIRST_PASSED_FD = 3  # as systemd counts
BACKLOG = 1024
FULL = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class Limits(NamedTuple):
    """Of what a connection may take."""

    connections: int
    idle_secs: float
    head_secs: float
    body_secs: float
    body_bytes: int
    send_secs: float


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


def listen(address: Address) -> Any:
    """A listening socket. Raises UsageError with what to do if there cannot be one."""
    try:
        return _listen_at_path(address.path) if address.path else _listen_at_port(address)
    except OSError as error:
        shown = address.path or f"{address.host}:{address.port}"
        raise UsageError(f"--http {shown}: {error.strerror or error}; choose another address") from error


def inherited(environ: Mapping[str, str]) -> Any:
    """The socket that systemd hands over, if it does (socket activation)."""
    if environ.get("LISTEN_PID") != str(os.getpid()) or not environ.get("LISTEN_FDS", "").isdigit():
        return None
    if int(environ["LISTEN_FDS"]) != 1:
        raise UsageError(f"systemd passes {environ['LISTEN_FDS']} sockets; one ListenStream is served")
    os.set_inheritable(FIRST_PASSED_FD, False)
    sock = socket.socket(fileno=FIRST_PASSED_FD)
    sock.setblocking(False)
    return sock


def address_of(sock: Any) -> Address:
    """Where a listening socket really is: port 0 has become one that was free."""
    name = sock.getsockname()
    if sock.family == native.AF_UNIX:
        return Address(path=os.fsdecode(name))
    return Address(name[0], name[1])


def _listen_at_port(address: Address) -> Any:
    found = native.getaddrinfo(address.host, address.port, type=native.SOCK_STREAM, flags=native.AI_PASSIVE)
    family, _, _, _, where = found[0]
    return _bound(family, where)


def _listen_at_path(path: str) -> Any:
    """For its owner alone. A socket that nobody listens at any more makes way; anything else does not."""
    if os.path.exists(path) and stat.S_ISSOCK(os.lstat(path).st_mode) and not _is_answered(path):
        os.unlink(path)
    before = os.umask(0o177)
    try:
        return _bound(native.AF_UNIX, path)
    finally:
        os.umask(before)


def _bound(family: int, where: Any) -> Any:
    sock = socket.socket(family, native.SOCK_STREAM)
    try:
        if family != native.AF_UNIX:
            sock.setsockopt(native.SOL_SOCKET, native.SO_REUSEADDR, 1)
        sock.bind(where)
        sock.listen(BACKLOG)
    except BaseException:
        sock.close()
        raise
    return sock


def _is_answered(path: str) -> bool:
    with native.socket(native.AF_UNIX, native.SOCK_STREAM) as probe:
        probe.settimeout(1)
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            return False
        except OSError:
            return True
        return True


class Guest(Protocol):
    """Who has a place. `is_wanted`: whether it may have another request; `is_idle`: whether it has begun none."""

    is_wanted: bool
    is_idle: bool

    def end(self) -> None: ...


class Handshake:
    """A client that has not got as far as a request, because it has not agreed on TLS."""

    def __init__(self, sock: Any) -> None:
        self._sock = sock
        self.is_wanted = True
        self.is_idle = True

    def end(self) -> None:
        shut_down(self._sock)


class HttpServer(WSGIServer):  # type: ignore[misc]  # gevent has no types
    """gevent's, with connections of ours, and a bound on their number."""

    max_accept = 16  # before each of them has, or is refused, its place

    def __init__(self, listener: Any, application: Application, *, limits: Limits, tls: Any = None) -> None:
        self.limits = limits
        self.is_ending = False  # who comes now is told so, and each connection has one answer more
        self._tls = tls
        self._waiting: OrderedDict[Guest, None] = OrderedDict()
        self._open: set[Guest] = set()
        # Some may still be on their way out, or be told that there is no place.
        options = {"log": None, "error_log": None, "handler_class": Connection, "spawn": 2 * limits.connections}
        super().__init__(listener, application, **options)  # which would give a handshake all the time in the world
        self.variables = {
            "SCRIPT_NAME": "",
            "wsgi.version": (1, 0),
            "wsgi.url_scheme": "http" if tls is None else "https",
            "wsgi.multithread": False,
            "wsgi.multiprocess": False,
            "wsgi.run_once": False,
        }

    @property
    def connections(self) -> int:
        return len(self._open)

    @property
    def has_idle_connections(self) -> bool:
        return any(guest.is_idle for guest in self._open)

    def update_environ(self) -> None:
        """gevent would ask the name service for our name, and wait for it."""

    def handle(self, sock: Any, address: Any) -> None:
        """In a greenlet of its own; gevent closes the socket after it."""
        if len(self._open) >= self.limits.connections and not self._has_made_room():
            self._turn_away(sock)
            return
        if sock.family != native.AF_UNIX:
            sock.setsockopt(native.IPPROTO_TCP, native.TCP_NODELAY, 1)
        talked_to = sock if self._tls is None else self._secured(sock)
        if talked_to is not None:
            connection = Connection(talked_to, address, self)
            self._open.add(connection)
            connection.handle()

    def begin_waiting(self, guest: Guest) -> None:
        """For its client. Who waits already has waited since then."""
        if guest in self._open:
            self._waiting.setdefault(guest)

    def end_waiting(self, guest: Guest) -> None:
        self._waiting.pop(guest, None)

    def forget(self, guest: Guest) -> None:
        self._open.discard(guest)
        self._waiting.pop(guest, None)

    def drain(self) -> None:
        """From now on, each connection has one answer more, which says so; those who still come, too."""
        self.is_ending = True
        for guest in self._open:
            guest.is_wanted = False

    def stop_listening(self) -> None:
        """Who has come by now is still answered. Nobody is accepted by the system alone, and then left standing."""
        self.stop_accepting()
        try:
            while not self.full() and (arrived := self.do_read()):
                self.do_handle(*arrived)
        except OSError as error:
            journal.warning("clients that have just connected cannot be answered: %s", error)
        self.socket.close()

    def end_idle(self) -> None:
        """Those between two requests."""
        for guest in list(self._open):
            if guest.is_idle:
                guest.end()

    def end_all(self) -> None:
        for guest in list(self._open):
            guest.end()

    def _has_made_room(self) -> bool:
        if not self._waiting:
            return False
        oldest, _ = self._waiting.popitem(last=False)
        journal.info("all %d connections are taken; the one that has been idle longest is closed", len(self._open))
        self._open.discard(oldest)
        oldest.end()
        return True

    def _turn_away(self, sock: Any) -> None:
        if self._tls is not None:
            return  # a handshake would be needed to say anything
        sock.settimeout(0)
        try:
            sock.send(FULL)
        except OSError as error:
            journal.debug("a client could not be told that all places are taken: %s", error)

    def _secured(self, sock: Any) -> Any:
        """By TLS. None if the client does not get on with it, for which it has as long as for a head."""
        guest = None
        try:
            secured = self._tls.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
            guest = Handshake(secured)
            self._open.add(guest)
            self.begin_waiting(guest)
            with gevent.Timeout(self.limits.head_secs, TimeoutError("the handshake of TLS takes too long")):
                secured.do_handshake()
            return secured
        except OSError as error:
            journal.debug("a client could not be talked to by TLS: %s", error)
            if guest is not None:
                secured.close()
            return None
        finally:
            if guest is not None:
                self.forget(guest)
