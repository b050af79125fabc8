"""Verify an access token and return its claims: a JWT that the issuer has signed, for us, and that is valid now.

PyJWT verifies the signature and the registered claims. What it leaves to its users, or got wrong in some version, is
checked here before: algorithms, headers, names that occur twice, types, other kinds of JWT.

Rule: nothing in a token decides how it is verified, except which of the issuer's keys signed it. URLs of keys (`jku`,
`x5u`) and keys themselves (`jwk`, `x5c`) in its header are ignored.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Sequence
from typing import Any, NoReturn

import jwt

from mcpgreen.errors import McpgreenError
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json
from mcpgreen.transports.http.oauth.fetching import Unavailable
from mcpgreen.transports.http.oauth.keys import KeySet, UnknownKey

MAX_TOKEN_CHARS = 16_384
MAX_KEY_ID_CHARS = 512
REQUIRED_CLAIMS = ["iss", "aud", "exp"]
TIMES = ("exp", "nbf", "iat")
# An issuer signs many kinds of JWT with the same keys. These are access tokens, or have no type.
TOKEN_TYPES = (None, "jwt", "at+jwt", "application/at+jwt")


class TokenRefused(McpgreenError):
    """A token that is refused: the status of the answer, and the text of the challenge. `scopes` are needed, if they
    are the reason."""

    def __init__(self, status: int, error: str, description: str, *, scopes: Sequence[str] = ()) -> None:
        super().__init__(description)
        self.status = status
        self.error = error
        self.description = description
        self.scopes = tuple(scopes)


def invalid(reason: str) -> TokenRefused:
    return TokenRefused(401, "invalid_token", f"The access token is refused: {reason}")


class Verifier:
    """Verifies the tokens of one issuer for one audience."""

    def __init__(
        self, keys: KeySet, *, issuer: str, audiences: Sequence[str], algorithms: Sequence[str], clock_skew_secs: float
    ) -> None:
        self._keys = keys
        self._issuer = issuer
        self._audiences = list(audiences)
        self._algorithms = frozenset(algorithms)
        self._clock_skew_secs = clock_skew_secs

    def claims_of(self, token: str) -> Json:
        """May wait for the issuer's keys. Raises TokenRefused."""
        if len(token) > MAX_TOKEN_CHARS:
            raise invalid(f"it is longer than {MAX_TOKEN_CHARS} characters")
        parts = token.split(".")
        if len(parts) != 3 or not token.isascii():
            raise invalid("it is not a signed JWT")
        header, claims = _object_in(parts[0], "header"), _object_in(parts[1], "payload")
        algorithm = self._algorithm(header)
        _require_sound(claims)
        if claims.get("iss") != self._issuer:
            raise invalid("it is from another issuer")  # and no reason to fetch keys
        try:
            key = self._keys.find(_key_id(header), algorithm)
        except UnknownKey as error:
            raise invalid(str(error)) from error
        except Unavailable as error:
            # The reason names URLs and files, so only the log has it.
            text = "The keys of the issuer cannot be fetched now; try again later."
            raise TokenRefused(503, "temporarily_unavailable", text) from error
        self._require_signed(token, key, algorithm)
        return claims

    def _algorithm(self, header: Json) -> str:
        algorithm = header.get("alg")
        if type(algorithm) is not str or algorithm not in self._algorithms:
            raise invalid("its algorithm is not allowed")
        if "crit" in header or "b64" in header:
            raise invalid("its header needs an extension that is not known here")
        kind = header.get("typ")
        if (kind.lower() if type(kind) is str else kind) not in TOKEN_TYPES:
            raise invalid("it is another kind of JWT")
        return algorithm

    def _require_signed(self, token: str, key: Any, algorithm: str) -> None:
        try:
            jwt.decode(
                token,
                key,
                algorithms=[algorithm],
                audience=self._audiences,
                issuer=self._issuer,
                leeway=self._clock_skew_secs,
                options={"require": REQUIRED_CLAIMS},
            )
        except jwt.ExpiredSignatureError as error:
            raise invalid("it has expired") from error
        except jwt.ImmatureSignatureError as error:
            raise invalid("it is not valid yet") from error
        except jwt.InvalidAudienceError as error:
            raise invalid("it is for another audience (aud)") from error
        except jwt.MissingRequiredClaimError as error:
            raise invalid(f"it has no {error.claim}") from error
        except jwt.InvalidSignatureError as error:
            raise invalid("its signature is wrong") from error
        except (jwt.PyJWTError, ValueError, TypeError) as error:
            raise invalid("it cannot be verified") from error


def _object_in(part: str, what: str) -> Json:
    """The JSON object in a part of a token; not verified yet."""
    try:
        raw = base64.b64decode(part + "=" * (-len(part) % 4), altchars=b"-_", validate=True)
        jsontext.require_parsable(raw)
        value = json.loads(raw, object_pairs_hook=_without_doubles, parse_constant=_no_number)
    except (ValueError, RecursionError, binascii.Error) as error:
        raise invalid(f"its {what} cannot be read") from error
    if type(value) is not dict:
        raise invalid(f"its {what} is not an object")
    return value


def _without_doubles(pairs: list[tuple[str, object]]) -> Json:
    """A name that occurs twice could mean one value to us and the other to another program."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name occurs twice")
    return found


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")


def _key_id(header: Json) -> str | None:
    key_id = header.get("kid")
    if key_id is not None and (type(key_id) is not str or not 0 < len(key_id) <= MAX_KEY_ID_CHARS):
        raise invalid("the name of its key is not valid")
    return key_id


def _require_sound(claims: Json) -> None:
    for name in TIMES:
        value = claims.get(name, 0)
        if type(value) not in (int, float) or not math.isfinite(value):
            raise invalid(f"its {name} is not a time")
    audience = claims.get("aud", "")
    if type(audience) is not str and not (type(audience) is list and all(type(each) is str for each in audience)):
        raise invalid("its aud is neither a text nor an array of texts")
    if "cnf" in claims:
        # RFC 9449, 7.2: such a token is valid only with a proof of its key, which is not checked here.
        raise invalid("it is bound to a key of its holder, which is not supported")
