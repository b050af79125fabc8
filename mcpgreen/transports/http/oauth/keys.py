"""The public keys of an issuer: which one has signed a token, and when to fetch them again.

A token names its key by `kid`. An unknown key may be new, so the keys are fetched again. But the sender of a token
chooses what it names. So there is a least time between two fetches, one fetch for all requests that wait, and a limit
on their number: each has a connection, and its caller is not known yet. Keys are also fetched from time to time,
because the issuer may have withdrawn one. No request waits for that, and if the issuer does not answer, the known keys
stay.

Rule: a key is used only for the algorithms that its type and the issuer allow, whatever the token says.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import gevent
import jwt

from mcpgreen import journal
from mcpgreen.text.json_types import Json
from mcpgreen.transports.http.oauth.fetching import Unavailable

# The algorithms, with the type of their keys and the curves. None is symmetric: with such a key, this server could sign
# tokens, and so could everybody who knows the published key.
KEY_OF = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), ("RSA", ())),
    "ES256": ("EC", ("P-256",)),
    "ES384": ("EC", ("P-384",)),
    "ES512": ("EC", ("P-521",)),
    "EdDSA": ("OKP", ("Ed25519", "Ed448")),
}
MAX_KEYS = 100
RSA_BITS = range(2048, 8193)  # shorter keys can be broken; longer ones take long to verify
FETCH_SECS = 10.0  # for one fetch as a whole
FETCH_PAUSE_SECS = 10.0  # from the end of one fetch to the next
MAX_WAITING = 64
REFRESH_SECS = 3600.0

Fetch = Callable[[], Json]


class Key(NamedTuple):
    """One key: its name, its algorithms, and the public key itself."""

    id: str | None
    algorithms: tuple[str, ...]
    public: Any


class UnknownKey(Exception):
    """No key of the issuer fits the token."""


class KeySet:
    """The keys that `fetch` returns. At most `max_waiting` requests wait for them. `generation` grows when they
    change."""

    def __init__(self, fetch: Fetch, *, max_waiting: int = MAX_WAITING) -> None:
        self._fetch = fetch
        self._max_waiting = max_waiting
        self._waiting = 0
        self._keys: list[Key] = []
        self._problem = "they have not been fetched"
        self._tried_at: float | None = None  # the last fetch
        self._known_at = 0.0  # the last fetch that succeeded
        self._fetching: gevent.Greenlet | None = None
        self.generation = 0

    def find(self, key_id: str | None, algorithm: str) -> Any:
        """Find the key of a token, fetching the keys again if it is unknown. Raises UnknownKey; Unavailable if the
        issuer does not answer."""
        key = self._known(key_id, algorithm)
        if key is None:
            self._wait_for_fetch()
            key = self._known(key_id, algorithm)
        if key is not None:
            return key.public
        if self._problem:
            raise Unavailable(self._problem)
        raise UnknownKey("the issuer has no such key" if key_id else "it names no key, and several could be meant")

    def stay_current(self) -> None:
        """Start a fetch, for which no request waits, if the last one is long ago. Called for every token."""
        if self._keys and time.monotonic() - self._known_at > REFRESH_SECS:
            self._start_fetch()

    def take(self, document: Json) -> None:
        """Use the keys of this set from now on. Raises Unavailable if none can be used."""
        keys = keys_in(document)
        if not keys:
            raise Unavailable("the issuer has no key that can be used")
        if [each[:2] for each in keys] != [each[:2] for each in self._keys] or any(
            old.public != new.public for old, new in zip(self._keys, keys, strict=True)
        ):
            self.generation += 1
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
            raise Unavailable("too many requests wait for the keys of the issuer")
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
        bound = gevent.Timeout(FETCH_SECS, Unavailable(f"there is no answer within {FETCH_SECS:g} s"))
        try:
            with bound:
                self.take(self._fetch())
        except Unavailable as error:
            self._problem = str(error)
            journal.warning("the keys of the issuer cannot be fetched: %s", error)
        finally:
            self._fetching = None
            self._tried_at = time.monotonic()


def keys_in(document: Json) -> list[Key]:
    """The keys of a JWK set that we can use. Others are ignored: an issuer may have keys of newer kinds."""
    entries = document.get("keys")
    usable = []
    for entry in entries[:MAX_KEYS] if type(entries) is list else ():
        key = _usable(entry)
        if key is not None:
            usable.append(key)
    return usable


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
        journal.warning("a key of the issuer is left out: %s", error)
        return None
    if entry["kty"] == "RSA" and public.key_size not in RSA_BITS:
        journal.warning("a key of the issuer is left out: RSA with %d bits", public.key_size)
        return None
    return Key(key_id, tuple(fitting), public)


def _is_for_signatures(entry: Json) -> bool:
    operations = entry.get("key_ops")
    is_public = "d" not in entry and "k" not in entry  # an issuer that publishes a secret key has lost it
    verifies = operations is None or (type(operations) is list and "verify" in operations)
    return is_public and verifies and entry.get("use", "sig") == "sig"
