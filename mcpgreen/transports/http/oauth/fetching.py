"""Fetch the documents that an issuer publishes: which keys it signs with, and where these are.

By gevent's sockets, so that nobody waits for an issuer but those whose tokens need its answer, and so that whoever asks
can put one bound around all of it (`gevent.Timeout`): names that do not resolve, handshakes that hang, heads and bodies
that drip.

Rule: what is trusted comes from where the operator said. Nothing is fetched without TLS except from this machine, and
no redirect is followed. Proxies are not used.
"""

from __future__ import annotations

from http.client import HTTPConnection, HTTPException
from typing import Any
from urllib.parse import urlsplit

from gevent import socket, ssl

from mcpgreen.errors import ProjectError
from mcpgreen.files.regular_files import content_of
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

MAX_DOCUMENT_BYTES = 262_144
LOOPBACK = ("localhost", "127.0.0.1", "::1")
SHOWN_CHARS = 200


class Unavailable(Exception):
    """A document cannot be had now; the text says which and why."""


class Connection(HTTPConnection):
    """By gevent; with TLS if there is a context for it."""

    def __init__(self, host: str, port: int, context: Any) -> None:
        super().__init__(host, port)
        self._context = context
        if context is not None:
            self.default_port = 443

    def connect(self) -> None:
        self.sock = socket.create_connection((self.host, self.port))
        if self._context is not None:
            self.sock = self._context.wrap_socket(self.sock, server_hostname=self.host)


def fault_of_url(url: str) -> str | None:
    """Why nothing may be fetched from there, as the end of a sentence; None if it may."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        return f"is no URL: {error}"
    if not parts.hostname or port == 0 or not url.isascii() or not url.isprintable() or " " in url:
        return "must be an https:// URL"
    if parts.username is not None or parts.password is not None or parts.fragment:
        return "must have no user and no fragment"
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in LOOPBACK):
        return "must begin with https://, because whoever is between could put in keys of their own"
    return None


def path_of(place: str) -> str | None:
    """The file, if a place is one: an absolute path, or a file: URL."""
    if place.startswith("/"):
        return place
    return place.removeprefix("file://") if place.startswith("file:///") else None


def document_at(place: str) -> Json:
    """The JSON object at this URL, or in this file. May wait for ever. Raises Unavailable."""
    path = path_of(place)
    raw = _fetched(place) if path is None else _read(path)
    try:
        document = jsontext.loads(raw)
    except ValueError as error:
        raise Unavailable(f"{place} is no JSON: {str(error)[:SHOWN_CHARS]}") from error
    if type(document) is not dict:
        raise Unavailable(f"{place} is no JSON object")
    return document


def discovered_keys_url(issuer: str) -> str:
    """Where the keys of an issuer are, by RFC 8414 or as OpenID Connect has it. Raises Unavailable."""
    problem = ""
    for url in _metadata_urls(issuer):
        try:
            metadata = document_at(url)
        except Unavailable as error:
            problem = problem or str(error)  # the others are only other conventions
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


def _tls() -> Any:
    """Certificates and names are checked. Not `create_default_context`, which gives one of the standard library even in
    gevent's module: that holds up everybody during a handshake."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
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
    except (OSError, HTTPException, ValueError) as error:  # the last for names that cannot be those of a host
        raise Unavailable(f"{url} cannot be reached: {str(error)[:SHOWN_CHARS]}") from error
    finally:
        connection.close()
    if len(raw) > MAX_DOCUMENT_BYTES:
        raise Unavailable(f"{url} is larger than {MAX_DOCUMENT_BYTES} bytes")
    return raw
