"""The public keys of an issuer: which of them may have signed a token, and when to look for others.

A token names its key by `kid`. One that is not known may be new, so the keys are looked for again; but whoever sends
tokens chooses what they name, so there is a least time between two looks, and one look for all who wait. Keys are also
looked for now and then without a reason: one that the issuer has taken back is not good for ever. That happens on the
side, and when the issuer does not answer, what is known stays good.

Rule: a key is used only for the algorithms that its kind, and the issuer, allow; never for what a token says alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import gevent
import jwt

from mcpgreen import journal
from mcpgreen.text.json_types import Json
from mcpgreen.transports.http.oauth.fetching import Unavailable

# What may sign, with the type of its key and the curves. Nothing symmetric: what verifies could sign as well, and a
# public key is known to all.
KEY_OF = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), ("RSA", ())),
    "ES256": ("EC", ("P-256",)),
    "ES384": ("EC", ("P-384",)),
    "ES512": ("EC", ("P-521",)),
    "EdDSA": ("OKP", ("Ed25519", "Ed448")),
}
MAX_KEYS = 100
RSA_BITS = range(2048, 8193)  # less can be broken; more takes long to verify
LOOK_SECS = 10.0  # for all that one look takes
LOOK_PAUSE_SECS = 10.0
LOOK_ANYWAY_SECS = 3600.0

Look = Callable[[], Json]


class Key(NamedTuple):
    """One key of a set: its name, what may be signed with it, and how it verifies."""

    id: str | None
    algorithms: tuple[str, ...]
    public: Any


class UnknownKey(Exception):
    """No key of the issuer fits the token."""


class KeySet:
    """The keys that `look` finds. `generation` is another one whenever they have changed."""

    def __init__(self, look: Look) -> None:
        self._look = look
        self._keys: list[Key] = []
        self._problem = "they have not been looked for"
        self._has_looked_at: float | None = None  # the last try
        self._known_at = 0.0  # the last that succeeded
        self._looking: Any = None
        self.generation = 0

    def find(self, key_id: str | None, algorithm: str) -> Any:
        """The key for a token, which may take a look. Raises UnknownKey, and Unavailable if nobody can say."""
        key = self._known(key_id, algorithm)
        if key is None:
            self._look_again()
            key = self._known(key_id, algorithm)
        if key is not None:
            return key.public
        if self._problem:
            raise Unavailable(self._problem)
        raise UnknownKey("the issuer has no such key" if key_id else "it names no key, and several could be meant")

    def stay_current(self) -> None:
        """Called for every token: begin a look if the last one is long ago. Nobody waits for it."""
        if self._keys and time.monotonic() - self._known_at > LOOK_ANYWAY_SECS:
            self._begin_to_look()

    def take(self, document: Json) -> None:
        """Know the keys of this set from now on. Raises Unavailable if there are none."""
        keys = keys_in(document)
        if not keys:
            raise Unavailable("there is no usable key among those of the issuer")
        if [each[:2] for each in keys] != [each[:2] for each in self._keys] or any(
            old.public != new.public for old, new in zip(self._keys, keys, strict=True)
        ):
            self.generation += 1
        self._keys, self._known_at, self._problem = keys, time.monotonic(), ""

    def close(self) -> None:
        if self._looking is not None:
            self._looking.kill(block=False)

    def _known(self, key_id: str | None, algorithm: str) -> Key | None:
        fitting = [key for key in self._keys if algorithm in key.algorithms and key_id in (None, key.id)]
        return fitting[0] if len(fitting) == 1 or (fitting and key_id is not None) else None

    def _look_again(self) -> None:
        self._begin_to_look()
        if self._looking is not None:
            self._looking.join(timeout=LOOK_SECS + 1)

    def _begin_to_look(self) -> None:
        now = time.monotonic()
        if self._looking is None and (self._has_looked_at is None or now - self._has_looked_at >= LOOK_PAUSE_SECS):
            self._has_looked_at = now
            self._looking = gevent.spawn(self._refresh)

    def _refresh(self) -> None:
        bound = gevent.Timeout(LOOK_SECS, Unavailable(f"there is no answer within {LOOK_SECS:g} s"))
        try:
            with bound:
                self.take(self._look())
        except Unavailable as error:
            self._problem = str(error)
            journal.warning("the keys of the issuer cannot be looked for: %s", error)
        finally:
            self._looking = None


def keys_in(document: Json) -> list[Key]:
    """The keys of a JWK set that we can use. Others are left out: an issuer may have more than we understand."""
    entries = document.get("keys")
    usable = []
    for entry in entries[:MAX_KEYS] if type(entries) is list else ():
        key = _usable(entry)
        if key is not None:
            usable.append(key)
    return usable


def _usable(entry: Any) -> Key | None:
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
    operations: Sequence[Any] | None = entry.get("key_ops")
    is_public = "d" not in entry and "k" not in entry  # what is secret has no business in what is published
    verifies = operations is None or (type(operations) is list and "verify" in operations)
    return is_public and verifies and entry.get("use", "sig") == "sig"
