"""An issuer's public keys: where and when they are fetched, and which of them signed a token.

A token names its key by `kid`. An unknown key may be new, so the keys are fetched again. But the sender of a token
chooses what it names. So there is a least time between two fetches, one fetch for all requests that wait, and a limit
on their number: each has a connection, and its caller is not known yet. Keys are also fetched from time to time,
because the issuer may have withdrawn one. No request waits for that, and if the issuer does not answer, the known keys
stay. Fetching uses gevent's sockets, so that one `gevent.Timeout` limits all of it: names that do not resolve,
handshakes that hang, slow heads and bodies.

Rules: a key is used only for the algorithms that its type and the issuer allow, whatever the token says. Documents come
only from where the operator said. Nothing is fetched without TLS except from this machine, nor by redirect or proxy.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from http.client import HTTPConnection, HTTPException
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import gevent
import jwt
from gevent import socket, ssl

from mcpgreen import journal
from mcpgreen.errors import ProjectError
from mcpgreen.files.regular_files import content_of
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

if TYPE_CHECKING:
    from ssl import SSLContext

# The allowed algorithms, with the type of their keys and the curves. None is symmetric: with such a key, this server
# could sign tokens, and so could anyone who knows the published key.
KEY_OF = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256"), ("RSA", ())),
    "ES256": ("EC", ("P-256",)),
    "ES384": ("EC", ("P-384",)),
    "EdDSA": ("OKP", ("Ed25519", "Ed448")),
}
MAX_KEYS = 100
RSA_BITS = range(2048, 8193)  # shorter keys can be broken; longer ones take long to verify
FETCH_SECS = 10.0  # for one fetch as a whole
FETCH_PAUSE_SECS = 10.0  # from the end of one fetch to the next
REFRESH_SECS = 3600.0
MAX_DOCUMENT_BYTES = 262_144
LOOPBACK = ("localhost", "127.0.0.1", "::1")
SHOWN_CHARS = 200


class Key(NamedTuple):
    """One key: its name, its algorithms, and the public key itself."""

    id: str | None
    algorithms: tuple[str, ...]
    public: Any


class UnknownKey(Exception):
    """No key of the issuer fits the token."""


class Unavailable(Exception):
    """A document cannot be fetched now; the text says which one and why."""


class KeySet:
    """The keys that `fetch` returns. At most `max_waiting` requests wait for them."""

    def __init__(self, fetch: Callable[[], Json], *, max_waiting: int) -> None:
        self._fetch = fetch
        self._max_waiting = max_waiting
        self._waiting = 0
        self._keys: list[Key] = []
        self._problem = "they have not been fetched"
        self._tried_at: float | None = None  # the last fetch
        self._known_at = 0.0  # the last fetch that succeeded
        self._fetching: gevent.Greenlet | None = None

    def find(self, key_id: str | None, algorithm: str) -> Any:
        """Find the key of a token; fetch the keys again if it is unknown. Raises UnknownKey and Unavailable."""
        key = self._known(key_id, algorithm)
        if key is None:
            self._wait_for_fetch()
            key = self._known(key_id, algorithm)
        if key is not None:
            return key.public
        if self._problem:
            raise Unavailable(self._problem)
        raise UnknownKey("the issuer has no such key" if key_id else "it names no key, and the issuer has several")

    def current(self) -> list[Key]:
        """Return all known keys, another list after each fetch. If they are old, begin to fetch them; do not wait."""
        if self._keys and time.monotonic() - self._known_at > REFRESH_SECS:
            self._start_fetch()
        return self._keys

    def take(self, document: Json) -> None:
        """Use the keys of this set from now on. Raises Unavailable if none can be used."""
        keys = keys_in(document)
        if not keys:
            raise Unavailable("the issuer has no key that can be used")
        self._keys, self._known_at, self._problem = keys, time.monotonic(), ""

    def close(self) -> None:
        if self._fetching is not None:
            self._fetching.kill(block=False)

    def _known(self, key_id: str | None, algorithm: str) -> Key | None:
        fitting = [key for key in self._keys if algorithm in key.algorithms and key_id in (None, key.id)]
        return fitting[0] if len(fitting) == 1 or (fitting and key_id is not None) else None

    def _wait_for_fetch(self) -> None:
        """Raises Unavailable if too many requests wait already."""
        self._start_fetch()
        if self._fetching is None:
            return
        if self._waiting >= self._max_waiting:
            raise Unavailable("too many requests are waiting for the issuer's keys")
        self._waiting += 1
        try:
            self._fetching.join(timeout=FETCH_SECS + 1)
        finally:
            self._waiting -= 1

    def _start_fetch(self) -> None:
        now = time.monotonic()
        if self._fetching is None and (self._tried_at is None or now - self._tried_at >= FETCH_PAUSE_SECS):
            self._fetching = gevent.spawn(self._refresh)

    def _refresh(self) -> None:
        try:
            with gevent.Timeout(FETCH_SECS, Unavailable(f"there was no answer within {FETCH_SECS:g} s")):
                self.take(self._fetch())
        except Unavailable as error:
            self._problem = str(error)
            journal.warning("cannot fetch the issuer's keys: %s", error)
        finally:
            self._fetching = None
            self._tried_at = time.monotonic()


def keys_in(document: Json) -> list[Key]:
    """Return the keys of a JWK set that we can use. Others are ignored: an issuer may have keys of newer kinds."""
    entries = document.get("keys")
    usable = map(_usable, entries[:MAX_KEYS] if type(entries) is list else ())
    return [key for key in usable if key is not None]


def _usable(entry: object) -> Key | None:
    if type(entry) is not dict or not _is_for_signatures(entry):
        return None
    named = entry.get("alg")
    fitting = [
        algorithm
        for algorithm, (kind, curves) in KEY_OF.items()
        if entry.get("kty") == kind
        and (not curves or entry.get("crv") in curves)
        and (named is None or algorithm == named)
    ]
    key_id = entry.get("kid")
    if not fitting or not (key_id is None or type(key_id) is str):
        return None
    try:
        public = jwt.PyJWK.from_dict(entry, algorithm=fitting[0]).key
    except (jwt.PyJWTError, ValueError, TypeError, KeyError, OverflowError) as error:
        journal.warning("ignored one of the issuer's keys: %s", error)
        return None
    if entry["kty"] == "RSA" and public.key_size not in RSA_BITS:
        journal.warning("ignored one of the issuer's keys: RSA with %d bits", public.key_size)
        return None
    return Key(key_id, tuple(fitting), public)


def _is_for_signatures(entry: Json) -> bool:
    operations = entry.get("key_ops")
    is_public = "d" not in entry and "k" not in entry  # an issuer that publishes a secret key has lost it
    verifies = operations is None or (type(operations) is list and "verify" in operations)
    return is_public and verifies and entry.get("use", "sig") == "sig"


def fault_of_url(url: str) -> str | None:
    """Return why a document may not be fetched from this URL, as the end of a sentence; None if it may."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        return f"is not a URL: {error}"
    if not parts.hostname or port == 0 or not url.isascii() or not url.isprintable() or " " in url:
        return "must be an https:// URL"
    if parts.username is not None or parts.password is not None or parts.fragment:
        return "must not have a user or a fragment"
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in LOOPBACK):
        return "must begin with https://, so that others on the network cannot replace the keys"
    return None


def path_of(place: str) -> str | None:
    """Return the path of a file, if the place is an absolute path or a file: URL."""
    if place.startswith("/"):
        return place
    return place.removeprefix("file://") if place.startswith("file:///") else None


def document_at(place: str) -> Json:
    """Fetch the JSON object at this URL, or in this file. May wait for ever. Raises Unavailable."""
    path = path_of(place)
    try:
        raw = _fetched(place) if path is None else content_of(path, MAX_DOCUMENT_BYTES)
        document = jsontext.loads(raw)
    except ProjectError as error:
        raise Unavailable(str(error)) from error
    except ValueError as error:
        raise Unavailable(f"{place} is not JSON: {str(error)[:SHOWN_CHARS]}") from error
    if type(document) is not dict:
        raise Unavailable(f"{place} is not a JSON object")
    return document


def discovered_keys_url(issuer: str) -> str:
    """Find the URL of the keys of an issuer, by RFC 8414 or by OpenID Connect. Raises Unavailable."""
    parts = urlsplit(issuer)
    origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    urls = (
        f"{origin}/.well-known/oauth-authorization-server{path}",
        f"{origin}{path}/.well-known/openid-configuration",
        f"{origin}/.well-known/openid-configuration{path}",
    )
    problem = ""
    for url in dict.fromkeys(urls):
        try:
            metadata = document_at(url)
        except Unavailable as error:
            problem = problem or str(error)  # the next URLs are only other conventions
            continue
        if metadata.get("issuer") != issuer:  # RFC 8414, 3.3: else one issuer could speak for another
            raise Unavailable(f"{url} names another issuer")
        keys_url = metadata.get("jwks_uri")
        fault = fault_of_url(keys_url) if type(keys_url) is str else "is missing"
        if fault:
            raise Unavailable(f"jwks_uri of {url} {fault}")
        return str(keys_url)
    raise Unavailable(problem)


def _fetched(url: str) -> bytes:
    parts = urlsplit(url)
    is_secure = parts.scheme == "https"
    host, port = parts.hostname or "", parts.port or (443 if is_secure else 80)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    connection = HTTPConnection(host, port)
    try:
        connection.sock = socket.create_connection((host, port))
        if is_secure:
            connection.sock = _tls().wrap_socket(connection.sock, server_hostname=host)
        headers = {"Host": parts.netloc, "Accept": "application/json", "Connection": "close"}
        connection.request("GET", target, headers=headers)
        with connection.getresponse() as response:
            if response.status != 200:
                raise Unavailable(f"{url} returned status {response.status}")
            raw = response.read(MAX_DOCUMENT_BYTES + 1)
    except (OSError, HTTPException, ValueError) as error:  # ValueError for a name that cannot be a host
        raise Unavailable(f"{url} cannot be reached: {str(error)[:SHOWN_CHARS]}") from error
    finally:
        connection.close()
    if len(raw) > MAX_DOCUMENT_BYTES:
        raise Unavailable(f"{url} is larger than {MAX_DOCUMENT_BYTES} bytes")
    return raw


def _tls() -> SSLContext:
    """Return a context that checks certificates and names. `create_default_context` would return one of the standard
    library even in gevent's module, which blocks the server during a handshake."""
    context: SSLContext = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_default_certs()
    return context
