"""The remote token: a secret that every request and notification must contain, if the operator has set one.

It is for servers behind a bridge to the network, where others than the client can write to the server's input. The
connection sends the answers; this module only checks.

Rules: a correct token is accepted after any number of wrong ones, or an attacker could lock the client out. The token
is removed from the parameters, so that no handler, script or log line can see it.
"""

from __future__ import annotations

import hmac

from mcpgreen.errors import InvalidParams

MIN_CHARS = 32
WINDOW_SECS = 60.0
FALLBACK_KEY = "remoteToken"  # which is accepted besides the one of the setting
MAX_FAILURES_PER_MIN = 10  # then the error says "throttled"
REFUSAL = "Remote token missing or invalid"


class RemoteToken:
    """The secret, the members of `_meta` that may contain it, and the times of recent failures."""

    def __init__(self, secret: str, *, key: str) -> None:
        self._secret = _as_bytes(secret)
        self._keys = (key, FALLBACK_KEY)
        self._failed_at: list[float] = []

    def take(self, params: object) -> bool:
        """Remove the token from the parameters of a message. Return whether it was there and correct."""
        meta = params.get("_meta") if isinstance(params, dict) else None
        if not isinstance(meta, dict):
            return False
        carried = [meta.pop(key) for key in self._keys if key in meta]
        secrets = (_as_bytes(value) for value in carried if isinstance(value, str))
        return any(hmac.compare_digest(secret, self._secret) for secret in secrets)

    def refusal(self, now: float) -> InvalidParams:
        """Count a failure, and return the error for it. `now` is in seconds of a monotonic clock."""
        self._failed_at = [at for at in self._failed_at if at > now - WINDOW_SECS]
        if len(self._failed_at) >= MAX_FAILURES_PER_MIN:
            return InvalidParams(f"{REFUSAL} (throttled)")
        self._failed_at.append(now)
        return InvalidParams(REFUSAL)


def _as_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")  # an attacker may send half of a surrogate pair
