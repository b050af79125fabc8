"""The remote token: a secret that every request and notification carries, when the operator has set one.

For servers behind a bridge to the network, where not only the client can write to our input. Pure: the clock is an
argument, and who answers a stranger, and how, is the link's business.

Rules: a right token is accepted however many wrong ones came before it, or strangers could lock the client out. What
was accepted leaves the parameters, so that no handler, script or log line can see it.

Imported before the first answer when a token is set, hence no `hmac`: it would load OpenSSL.
"""

from __future__ import annotations

from mcpgreen.errors import InvalidParams, ProjectError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mcpgreen.settings.settings import Settings

MIN_CHARS = 32
WINDOW_SECS = 60.0
REFUSAL = "Remote token missing or invalid"


class RemoteToken:
    """The secret, where messages carry it, and how often it was wrong lately."""

    __slots__ = ("_failed_at", "_keys", "_max_failures", "_secret")

    def __init__(self, secret: str, *, key: str, fallback_key: str, max_failures_per_min: int) -> None:
        self._secret = _as_bytes(secret)
        self._keys = tuple(each for each in (key, fallback_key) if each)
        self._max_failures = max_failures_per_min
        self._failed_at: list[float] = []

    def admits(self, params: Any) -> bool:
        """Whether these parameters of a message carry the token. It is taken out of them."""
        meta = params.get("_meta") if type(params) is dict else None
        if type(meta) is not dict:
            return False
        carried = [meta.pop(key) for key in self._keys if key in meta]
        return any(self._is_right(value) for value in carried)

    def refusal(self, now: float) -> InvalidParams:
        """Count a failure, and say so. `now` in seconds, by a clock that only goes forward."""
        self._failed_at = [at for at in self._failed_at if at > now - WINDOW_SECS]
        if self._max_failures and len(self._failed_at) >= self._max_failures:
            return InvalidParams(f"{REFUSAL} (throttled)")
        self._failed_at.append(now)
        return InvalidParams(REFUSAL)

    def _is_right(self, value: Any) -> bool:
        from _operator import _compare_digest  # what hmac exports where it has no OpenSSL

        return type(value) is str and _compare_digest(_as_bytes(value), self._secret)


def configured_token(settings: Settings) -> RemoteToken | None:
    """None when there is none. Raises ProjectError for one that could be guessed."""
    secret = settings.remote_token
    if not secret:
        return None
    if len(secret) < MIN_CHARS:
        reason = f"a remote token needs at least {MIN_CHARS} characters, this one has {len(secret)}"
        raise ProjectError(settings.origin("remote_token"), reason)
    return RemoteToken(
        secret,
        key=settings.remote_token_key,
        fallback_key=settings.remote_token_fallback_key,
        max_failures_per_min=settings.remote_token_max_failures_per_min,
    )


def _as_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")  # a stranger may send half a character
