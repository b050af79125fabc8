"""Serve many clients over HTTP, from the listening socket to the end of the process.

SIGTERM and SIGINT drain: new requests are refused, what runs may finish for `shutdown_timeout`, streams end properly.
A second signal ends it at once.
"""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import gevent
from gevent.event import Event

from mcpgreen import journal
from mcpgreen.catalog.item_kinds import SOURCE_OF
from mcpgreen.engine.server import Server
from mcpgreen.errors import InternalError, ProjectError
from mcpgreen.project.start_checks import remote_token
from mcpgreen.running.system.descriptor_limit import connections_that_fit, descriptor_limit
from mcpgreen.settings.settings import Settings
from mcpgreen.transports.http.application import ENDPOINT, Application
from mcpgreen.transports.http.door import Door
from mcpgreen.transports.http.draining import Draining
from mcpgreen.transports.http.incoming import Reader
from mcpgreen.transports.http.metrics import metrics_of
from mcpgreen.transports.http.oauth.configuration import configured_resource_server
from mcpgreen.transports.http.parts import Parts
from mcpgreen.transports.http.sessions import HttpSessions
from mcpgreen.transports.http.streams.outlet import Outlets
from mcpgreen.transports.http.wire import listening
from mcpgreen.transports.http.wire.listening import Address, HttpServer, Limits

if TYPE_CHECKING:
    from mcpgreen.transports.frame_log import FrameLog

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
LAST_WORDS_SECS = 1.0
LOOK_SECS = 0.02
LEAST_IDLE_SECS = 0.5  # for which nothing has come on a connection that is closed


def prepared_settings(settings: Settings) -> Settings:
    """As they hold for clients that may be anywhere: what one of them calls its roots is no place on this machine."""
    return settings if settings.http_trust_client_roots else settings.with_values(client_roots="never")


def serve(server: Server, where: str, environ: Mapping[str, str]) -> int:
    """Serve until a signal comes. The exit status of the process. Raises UsageError and ProjectError."""
    settings = server.services.settings
    tls = _tls(settings)
    inherited = listening.inherited(environ)
    listener = inherited or listening.listen(listening.parse_address(where))
    address = listening.address_of(listener)
    socket_file = os.stat(address.path) if address.path and inherited is None else None
    try:
        return _serve_at(address, listener, server, tls, has_successor=inherited is not None)
    finally:
        listener.close()
        _remove_socket(address.path, socket_file)


def _serve_at(address: Address, listener: Any, server: Server, tls: Any, *, has_successor: bool) -> int:
    settings = server.services.settings
    frames = _frame_log(server)
    outlets = Outlets(max_backlog_bytes=settings.max_backlog_bytes, on_frame=None if frames is None else frames.goes)
    on_message = None if frames is None else partial(frames.came, None)
    draining = Draining()
    reader = Reader(draining, max_body_bytes=settings.http_max_body_bytes, on_message=on_message)
    token = remote_token(settings)
    sessions = HttpSessions(server, settings, outlets, has_strangers=token is not None)
    url = _url_of(address, is_secure=tls is not None)
    name = server.services.identity.info["name"]
    oauth = configured_resource_server(settings, resource_url=settings.http_public_url or url, name=name)
    parts = Parts(server, settings, outlets, sessions, token, oauth)
    door = Door(settings, address, oauth)
    metrics = metrics_of(server, sessions)
    application = Application(parts, door, reader, draining, metrics)
    http = HttpServer(listener, application, limits=_limits(settings), tls=tls)
    if metrics is not None:
        metrics.watch_connections(lambda: http.connections)
    serving = _Serving(server, outlets, sessions, http, draining, has_successor=has_successor)
    signals = [gevent.signal_handler(number, serving.on_signal, number) for number in STOP_SIGNALS]
    try:
        _look_at_project(server)
        server.watch()
        http.start()
        gc.freeze()
        # What whoever started us waits for, at every level of the log.
        journal.write(f"mcpgreen: serving {url}\n".encode("utf-8", "replace"))
        serving.stop_wanted.wait()
        serving.drain(settings.shutdown_timeout)
    finally:
        http.close()
        sessions.stop()
        server.stop()
        http.end_all()
        if oauth is not None:
            oauth.close()
        for handler in signals:
            handler.cancel()
    return 0


class _Serving:
    """The way to the end. `has_successor`: the socket stays, and with it whoever has not been accepted."""

    def __init__(
        self,
        server: Server,
        outlets: Outlets,
        sessions: HttpSessions,
        http: HttpServer,
        draining: Draining,
        *,
        has_successor: bool,
    ) -> None:
        self._server = server
        self._outlets = outlets
        self._sessions = sessions
        self._http = http
        self._draining = draining
        self._has_successor = has_successor
        self._another_signal = Event()
        self.stop_wanted = Event()

    def on_signal(self, number: int) -> None:
        if self.stop_wanted.is_set():
            self._another_signal.set()
        self.stop_wanted.set()

    def drain(self, secs: float) -> None:
        """Finish what is under way, for so long at the most, or until another signal comes."""
        journal.info("draining: no new requests, %d connections are open", self._http.connections)
        if self._server.is_busy and os.isatty(2):
            journal.write(b"mcpgreen: calls are running, and may finish; Ctrl-C again ends them\n")
        self._draining.has_begun = True
        self._http.drain()
        if self._has_successor:
            self._http.stop_accepting()
        with gevent.Timeout(secs, False):
            if self._http.has_idle_connections:
                self._another_signal.wait(LEAST_IDLE_SECS)
                self._http.end_idle()
            while (self._server.is_busy or self._outlets.have_answers) and not self._another_signal.is_set():
                gevent.sleep(LOOK_SECS)
        if not self._has_successor:
            self._http.stop_listening()
        self._server.end_listens()
        self._sessions.stop()
        gevent.sleep(LOOK_SECS)  # who came last has sent a request by now, which is refused properly
        self._http.end_idle()
        with gevent.Timeout(LAST_WORDS_SECS, False):
            while self._http.connections:
                gevent.sleep(LOOK_SECS)


def _look_at_project(server: Server) -> None:
    """Before anybody is told that we are ready: what clients ask for first is known then."""
    if "tools" not in server.services.offered:
        return
    for kind in SOURCE_OF:
        try:
            server.services.snapshot(kind)
        except InternalError as error:
            journal.error("%s", error.message)


def _frame_log(server: Server) -> FrameLog | None:
    """Who tells of every frame, if somebody wants to know."""
    if not journal.tells_frames:
        return None
    from mcpgreen.transports.frame_log import FrameLog

    return FrameLog(server.services)


def _limits(settings: Settings) -> Limits:
    return Limits(
        connections=_connections(settings),
        idle_secs=settings.http_idle_secs,
        head_secs=settings.http_header_timeout_secs,
        body_secs=settings.http_body_timeout_secs,
        body_bytes=settings.http_max_body_bytes,
        send_secs=settings.http_send_timeout_secs,
    )


def _connections(settings: Settings) -> int:
    """As many as there are descriptors for: the others make way for each other instead of failing."""
    wanted, limit = settings.http_max_connections, descriptor_limit()
    fitting = connections_that_fit(wanted, limit, scripts=settings.max_concurrent_requests)
    if fitting < wanted:
        tell = journal.info if fitting > wanted // 2 else journal.warning  # many systems allow just below the default
        tell("only %d descriptors are allowed, so there are %d connections instead of %d", limit, fitting, wanted)
    return fitting


def _tls(settings: Settings) -> Any:
    if not settings.http_cert and not settings.http_key:
        return None
    from gevent import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION  # which costs us more than who asks for it
    try:
        context.load_cert_chain(settings.http_cert, settings.http_key or None)
    except (OSError, ssl.SSLError) as error:
        raise ProjectError(settings.http_cert or "http_cert", f"cannot be used for TLS: {error}") from error
    return context


def _url_of(address: Address, *, is_secure: bool) -> str:
    if address.path:
        return f"http+unix://{address.path}:{ENDPOINT}"
    host = f"[{address.host}]" if ":" in address.host else address.host
    return f"{'https' if is_secure else 'http'}://{host}:{address.port}{ENDPOINT}"


def _remove_socket(path: str, ours: os.stat_result | None) -> None:
    """Unless there was none, or somebody has put another one in its place."""
    try:
        if ours is not None and os.path.samestat(os.stat(path), ours):
            os.unlink(path)
    except FileNotFoundError:
        return  # somebody was quicker
