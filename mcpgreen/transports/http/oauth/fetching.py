"""Fetch the documents of an issuer: its keys, and its metadata, which says where the keys are.

It uses gevent's sockets, so that only the requests whose tokens need the answer wait for the issuer, and so that one
`gevent.Timeout` limits all of it: names that do not resolve, handshakes that hang, slow heads and bodies.

Rule: documents come only from where the operator said. Nothing is fetched without TLS except from this machine, no
redirect is followed, and no proxy is used.
"""

from __future__ import annotations

from http.client import HTTPConnection, HTTPException
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from gevent import socket, ssl

from mcpgreen.errors import ProjectError
from mcpgreen.files.regular_files import content_of
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

if TYPE_CHECKING:
    from ssl import SSLContext

MAX_DOCUMENT_BYTES = 262_144
LOOPBACK = ("localhost", "127.0.0.1", "::1")
SHOWN_CHARS = 200


class Unavailable(Exception):
    """A document cannot be fetched now; the text says which one and why."""


class Connection(HTTPConnection):
    """A connection by gevent's sockets; with TLS if there is a context."""

    def __init__(self, host: str, port: int, context: SSLContext | None) -> None:
        super().__init__(host, port)
        self._context = context
        if context is not None:
            self.default_port = 443

    def connect(self) -> None:
        self.sock = socket.create_connection((self.host, self.port))
        if self._context is not None:
            self.sock = self._context.wrap_socket(self.sock, server_hostname=self.host)


def fault_of_url(url: str) -> str | None:
    """Why a document may not be fetched from this URL, as the end of a sentence; None if it may."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        return f"is not a URL: {error}"
    if not parts.hostname or port == 0 or not url.isascii() or not url.isprintable() or " " in url:
        return "must be an https:// URL"
    if parts.username is not None or parts.password is not None or parts.fragment:
        return "must have no user and no fragment"
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in LOOPBACK):
        return "must begin with https://, so that others on the network cannot replace the keys"
    return None


def path_of(place: str) -> str | None:
    """The path of a file, if the place is an absolute path or a file: URL."""
    if place.startswith("/"):
        return place
    return place.removeprefix("file://") if place.startswith("file:///") else None


def document_at(place: str) -> Json:
    """Fetch the JSON object at this URL, or in this file. May wait for ever. Raises Unavailable."""
    path = path_of(place)
    raw = _fetched(place) if path is None else _read(path)
    try:
        document = jsontext.loads(raw)
    except ValueError as error:
        raise Unavailable(f"{place} is not JSON: {str(error)[:SHOWN_CHARS]}") from error
    if type(document) is not dict:
        raise Unavailable(f"{place} is not a JSON object")
    return document


def discovered_keys_url(issuer: str) -> str:
    """Find the URL of the keys of an issuer, by RFC 8414 or by OpenID Connect. Raises Unavailable."""
    problem = ""
    for url in _metadata_urls(issuer):
        try:
            metadata = document_at(url)
        except Unavailable as error:
            problem = problem or str(error)  # the next URLs are only other conventions
            continue
        if metadata.get("issuer") != issuer:  # RFC 8414, 3.3: else one issuer could speak for another
            raise Unavailable(f"{url} speaks of another issuer")
        keys_url = metadata.get("jwks_uri")
        fault = fault_of_url(keys_url) if type(keys_url) is str else "is missing"
        if fault:
            raise Unavailable(f"jwks_uri of {url} {fault}")
        return str(keys_url)
    raise Unavailable(problem)


def _metadata_urls(issuer: str) -> list[str]:
    parts = urlsplit(issuer)
    origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    urls = [
        f"{origin}/.well-known/oauth-authorization-server{path}",
        f"{origin}{path}/.well-known/openid-configuration",
        f"{origin}/.well-known/openid-configuration{path}",
    ]
    return list(dict.fromkeys(urls))


def _read(path: str) -> bytes:
    try:
        return content_of(path, MAX_DOCUMENT_BYTES)
    except ProjectError as error:
        raise Unavailable(str(error)) from error


def _tls() -> SSLContext:
    """A context that checks certificates and names. `create_default_context` would return one of the standard library
    even in gevent's module, and that one blocks the server during a handshake."""
    context: SSLContext = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_default_certs()
    return context


def _fetched(url: str) -> bytes:
    parts = urlsplit(url)
    is_secure = parts.scheme == "https"
    assert parts.hostname is not None  # see `fault_of_url`
    context = _tls() if is_secure else None
    connection = Connection(parts.hostname, parts.port or (443 if is_secure else 80), context)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        connection.request("GET", target, headers={"Accept": "application/json", "Connection": "close"})
        with connection.getresponse() as response:
            if response.status != 200:
                raise Unavailable(f"{url} answers with status {response.status}")
            raw = response.read(MAX_DOCUMENT_BYTES + 1)
    except (OSError, HTTPException, ValueError) as error:  # ValueError for a name that cannot be a host
        raise Unavailable(f"{url} cannot be reached: {str(error)[:SHOWN_CHARS]}") from error
    finally:
        connection.close()
    if len(raw) > MAX_DOCUMENT_BYTES:
        raise Unavailable(f"{url} is larger than {MAX_DOCUMENT_BYTES} bytes")
    return raw
