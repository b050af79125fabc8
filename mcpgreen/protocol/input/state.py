"""Seal the state that a client keeps between two rounds of input requests, and open it again.

A sealed state is `v1.<payload>.<HMAC-SHA256>`. A client may read it, because it contains only what the client sent, but
it cannot change it, keep it for long, or use it for another request. The client learns only that a state is invalid;
the reason is logged for the operator.
"""

from __future__ import annotations

import base64

from mcpgreen import journal
from mcpgreen.errors import InvalidParams
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

VERSION = "v1"
PURPOSE = b"mcpgreen/rs/v1|"
KEY_BYTES = 32
MAX_STATE_CHARS = 1 << 23  # a round of input requests has up to a mebibyte, and the answers are added


class Seal:
    """Seals with one key: a random one, or one that several servers share."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def close(self, payload: Json, *, expires_at: float) -> str:
        body = _encoded(jsontext.dumps({**payload, "x": int(expires_at)}))
        return f"{VERSION}.{body}.{self._mac(body)}"

    def open(self, state: object, *, now: float, belongs_to: Json) -> Json:
        """Return the payload. Raises InvalidParams unless it was sealed here, is recent and has these members."""
        try:
            return self._opened(state, now, belongs_to)
        except ValueError as error:
            journal.warning("rejected a request state: %s", error)
            raise InvalidParams("Invalid requestState") from error

    def _opened(self, state: object, now: float, belongs_to: Json) -> Json:
        import hmac

        if not isinstance(state, str) or len(state) > MAX_STATE_CHARS:
            raise ValueError("it is not a string, or is too long")
        version, _, rest = state.partition(".")
        body, _, mac = rest.partition(".")
        if version != VERSION or not hmac.compare_digest(mac.encode("utf-8"), self._mac(body).encode("ascii")):
            raise ValueError("this server did not issue it")
        payload: Json = jsontext.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        if payload["x"] < now:
            raise ValueError("it is too old")
        for member, value in belongs_to.items():
            if payload.get(member) != value:
                raise ValueError("it belongs to another request")
        return payload

    def _mac(self, body: str) -> str:
        import hmac  # loads OpenSSL, which most servers do not need

        return _encoded(hmac.digest(self._key, PURPOSE + body.encode("utf-8", "replace"), "sha256"))


def _encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode("ascii")
