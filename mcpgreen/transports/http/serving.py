"""Serve many clients over HTTP, from the listening socket to the end of the process.

On SIGTERM and SIGINT the server drains: it refuses new requests, lets running calls finish for `shutdown_timeout`, and
ends streams properly. A second signal ends it at once.
"""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Mapping
from typing import TYPE_CHECKING

import gevent
from gevent.event import Event

from mcpgreen import journal
from mcpgreen.catalog.descriptions.metadata import is_scope
from mcpgreen.catalog.item_kinds import SOURCE_OF
from mcpgreen.engine.frames import Frames
from mcpgreen.engine.server import Server
from mcpgreen.errors import InternalError, ProjectError
from mcpgreen.links.sink import MAX_BACKLOG_BYTES
from mcpgreen.project.project import remote_token
from mcpgreen.running.system import connections_that_fit, descriptor_limit
from mcpgreen.settings.settings import Settings
from mcpgreen.transports.http.application import ENDPOINT, Application
from mcpgreen.transports.http.door import Door
from mcpgreen.transports.http.exchange import Parts, Reader
from mcpgreen.transports.http.sessions import HttpSessions
from mcpgreen.transports.http.streams.outlet import Outlets
from mcpgreen.transports.http.wire import listening
from mcpgreen.transports.http.wire.connection import SEND_SECS
from mcpgreen.transports.http.wire.listening import Address, HttpServer

if TYPE_CHECKING:
    from socket import socket
    from ssl import SSLContext

    from mcpgreen.text.json_types import Json
    from mcpgreen.transports.http.oauth.resource_server import ResourceServer

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
LAST_WORDS_SECS = 1.0
LOOK_SECS = 0.02
LEAST_IDLE_SECS = 0.5  # a connection is closed when nothing has come on it for this long
OAUTH_PREFIX = "MCPGREEN_HTTP_OAUTH_"
CONNECTIONS_PART = 16  # one of this many connections may wait for the issuer


def prepared_settings(settings: Settings) -> Settings:
    """Return the settings for clients that may be anywhere: the roots of such a client are not on this machine."""
    return settings if settings.http_trust_client_roots else settings.with_values(client_roots="never")


def serve(server: Server, where: str, environ: Mapping[str, str]) -> int:
    """Serve until a signal comes; return the exit status of the process. Raises UsageError and ProjectError."""
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


def _serve_at(
    address: Address, listener: socket, server: Server, tls: SSLContext | None, *, has_successor: bool
) -> int:
    settings = server.services.settings
    outlets = Outlets(max_backlog_bytes=MAX_BACKLOG_BYTES, patience_secs=SEND_SECS / 2)
    reader = Reader(max_body_bytes=settings.max_line_bytes)
    Frames(server.services).follow(outlets, reader)
    sessions = HttpSessions(server, settings, outlets, token=remote_token(settings))
    url = _url_of(address, is_secure=tls is not None)
    name = server.services.identity.info["name"]
    oauth = configured_resource_server(settings, resource_url=settings.http_public_url or url, name=name)
    parts = Parts(server, outlets, sessions, oauth)
    application = Application(parts, Door(settings, address, oauth), reader, lambda: http.connections)
    http = HttpServer(
        listener, application, max_connections=_connections(settings), max_body_bytes=settings.max_line_bytes, tls=tls
    )
    stop_wanted, another_signal = Event(), Event()

    def on_signal() -> None:
        (another_signal if stop_wanted.is_set() else stop_wanted).set()

    signals = [gevent.signal_handler(number, on_signal) for number in STOP_SIGNALS]
    if settings.record:
        journal.error("nothing is recorded: the setting record needs a server over stdio, for a single client")
    try:
        _look_at_project(server)
        server.watch()
        server.observe("http")
        http.start()
        gc.freeze()
        # The readiness line, which the program that started us waits for; always printed.
        journal.write(f"mcpgreen: serving {url}\n".encode("utf-8", "replace"))
        stop_wanted.wait()
        reader.is_draining = True
        _drain(parts, http, another_signal, has_successor=has_successor)
    finally:
        http.close()
        sessions.stop()
        server.stop()
        http.end_connections()
        if oauth is not None:
            oauth.close()
        for handler in signals:
            handler.cancel()
    return 0


def _drain(parts: Parts, http: HttpServer, another_signal: Event, *, has_successor: bool) -> None:
    """Finish what has begun, for `shutdown_timeout` at most, or until another signal comes. `has_successor`: the
    listening socket stays open, for clients that were not accepted yet."""
    server = parts.server
    journal.info("draining: no new requests, %d connections are open", http.connections)
    if server.is_busy and os.isatty(2):
        journal.write(b"mcpgreen: calls are running, and may finish; Ctrl-C again ends them\n")
    http.is_ending = True
    if has_successor:
        http.stop_accepting()
    with gevent.Timeout(server.services.settings.shutdown_timeout, False):
        if http.has_idle_connections:
            another_signal.wait(LEAST_IDLE_SECS)
            http.end_connections(only_idle=True)
        while (server.is_busy or parts.outlets.has_answers) and not another_signal.is_set():
            gevent.sleep(LOOK_SECS)
    if not has_successor:
        http.stop_listening()
    server.end_listens()
    parts.sessions.stop()
    gevent.sleep(LOOK_SECS)  # the last clients have sent a request by now, which is refused properly
    http.end_connections(only_idle=True)
    with gevent.Timeout(LAST_WORDS_SECS, False):
        while http.connections:
            gevent.sleep(LOOK_SECS)


def _look_at_project(server: Server) -> None:
    """Read the project before the server says that it is ready: clients ask for the lists first."""
    if "tools" not in server.services.offered:
        return
    for kind in SOURCE_OF:
        try:
            server.services.snapshot(kind)
        except InternalError as error:
            journal.error("%s", error.message)


def _connections(settings: Settings) -> int:
    """Return the limit on connections, within the descriptors, so that a new one evicts another and does not fail."""
    wanted, limit = settings.http_max_connections, descriptor_limit()
    fitting = connections_that_fit(wanted, limit, scripts=settings.max_concurrent_requests)
    if fitting < wanted:
        tell = journal.info if fitting > wanted // 2 else journal.warning  # many systems allow just below the default
        tell(
            "the open-file limit is %d, so only %d connections are served instead of %d; raise it with ulimit -n",
            limit,
            fitting,
            wanted,
        )
    return fitting


def _tls(settings: Settings) -> SSLContext | None:
    if not settings.http_cert and not settings.http_key:
        return None
    from gevent import ssl

    context: SSLContext = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION  # it costs us more than the client
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
    """Remove our socket file, unless another server has put its own in its place."""
    try:
        if ours is not None and os.path.samestat(os.stat(path), ours):
            os.unlink(path)
    except FileNotFoundError:
        return  # it is gone already


def configured_resource_server(settings: Settings, *, resource_url: str, name: str = "") -> ResourceServer | None:
    """Return the resource server; None if no issuer is set. Raises ProjectError for settings that cannot work.

    Rule: a half-configured server is never open to anyone; any mistake keeps it from starting. The issuer is not asked
    here: the server starts even if the issuer does not answer now.
    """
    issuer, keys_url = settings.http_oauth_issuer, settings.http_oauth_jwks_url
    audiences, required_scopes = settings.http_oauth_audience, settings.http_oauth_required_scopes
    if not issuer:
        for each, value in {"jwks_url": keys_url, "audience": audiences, "required_scopes": required_scopes}.items():
            if value:
                raise _oauth_problem(each, "there is no issuer for it; set MCPGREEN_HTTP_OAUTH_ISSUER as well")
        return None
    try:
        from mcpgreen.transports.http.oauth import keys
        from mcpgreen.transports.http.oauth.resource_server import ResourceServer
    except ImportError as error:
        raise _oauth_problem("issuer", "access tokens need the [oauth] extra; see docs/install.md#extras") from error
    if not resource_url.startswith(("http://", "https://")):
        reason = "access tokens are for a URL, and a socket has none; set MCPGREEN_HTTP_PUBLIC_URL as well"
        raise _oauth_problem("issuer", reason)
    fault = keys.fault_of_url(issuer)
    if fault or "?" in issuer:
        raise _oauth_problem("issuer", f"it {fault or 'must have no query'}")
    is_file = keys.path_of(keys_url) is not None
    fault = keys.fault_of_url(keys_url) if keys_url and not is_file else None
    if fault:
        raise _oauth_problem("jwks_url", f"it {fault}, or be a file")
    if not all(map(is_scope, required_scopes)):
        raise _oauth_problem("required_scopes", "a scope is printable ASCII without spaces or quotes")

    def fetch() -> Json:
        return keys.document_at(keys_url or keys.discovered_keys_url(issuer))

    key_set = keys.KeySet(fetch, max_waiting=max(1, settings.http_max_connections // CONNECTIONS_PART))
    if is_file:
        try:
            key_set.take(fetch())
        except keys.Unavailable as error:
            raise _oauth_problem("jwks_url", str(error)) from error
    return ResourceServer(key_set, settings, resource_url=resource_url, name=name)


def _oauth_problem(setting: str, reason: str) -> ProjectError:
    return ProjectError(OAUTH_PREFIX + setting.upper(), reason)
