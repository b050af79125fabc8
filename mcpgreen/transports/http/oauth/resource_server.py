"""An OAuth 2.1 resource server: it verifies access tokens, and tells clients where to get one.

It is not an authorization server: it issues no tokens, keeps no users, and shows no page. Clients learn from its
metadata (RFC 9728) where to get a token, and from a challenge (RFC 6750) where the metadata is and which scopes they
need. A token is a JWT that the issuer has signed, for us, and that is valid now. PyJWT verifies the signature and the
registered claims. What it leaves to its users, or got wrong in some version, is checked here before: algorithms,
headers, names that occur twice, types, other kinds of JWT.

Rules: nothing in a token decides how it is verified, except which of the issuer's keys signed it. URLs of keys (`jku`,
`x5u`) and keys themselves (`jwk`, `x5c`) in its header are ignored. A token is verified once and remembered by its
digest, until it expires or the keys are fetched again: verifying a long one takes longer than the rest of a request.
The token itself is not kept, and no refusal repeats any part of it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import time
from collections.abc import Iterable, Sequence
from urllib.parse import urlsplit

import jwt

from mcpgreen.errors import McpgreenError
from mcpgreen.links.principal import Principal
from mcpgreen.settings.settings import Settings
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json
from mcpgreen.transports.http.oauth.keys import KEY_OF, Key, KeySet, Unavailable, UnknownKey

WELL_KNOWN = "/.well-known/oauth-protected-resource"
CLOCK_SKEW_SECS = 60.0  # by which the clock of the issuer may differ from ours
MAX_TOKEN_CHARS = 16_384
MAX_KEY_ID_CHARS = 512
MAX_NAME_CHARS = 1024
MAX_KEPT_TOKENS = 1000
REQUIRED_CLAIMS = ["iss", "aud", "exp"]
TIMES = ("exp", "nbf", "iat")
# An issuer signs many kinds of JWT with the same keys. These are access tokens, or have no type.
TOKEN_TYPES = (None, "jwt", "at+jwt", "application/at+jwt")
REASONS: dict[type[Exception], str] = {
    jwt.ExpiredSignatureError: "it has expired",
    jwt.ImmatureSignatureError: "it is not valid yet",
    jwt.InvalidAudienceError: "it is for another audience (aud)",
    jwt.InvalidSignatureError: "its signature is wrong",
}


class TokenRefused(McpgreenError):
    """A token that is refused: the status of the answer, the text of the challenge, and the scopes it needs."""

    def __init__(self, status: int, error: str, description: str, *, scopes: Sequence[str] = ()) -> None:
        super().__init__(description)
        self.status = status
        self.error = error
        self.description = description
        self.scopes = tuple(scopes)


def invalid(reason: str) -> TokenRefused:
    return TokenRefused(401, "invalid_token", f"The access token was rejected: {reason}")


class ResourceServer:
    """`resource_url` is the URL of the endpoint, such as https://host/mcp; `name` is for people."""

    def __init__(self, keys: KeySet, settings: Settings, *, resource_url: str, name: str) -> None:
        self._keys = keys
        self.close = keys.close
        self._issuer: str = settings.http_oauth_issuer
        self.resource_url = resource_url
        bare_url = resource_url.rstrip("/")
        self._audiences: Sequence[str] = settings.http_oauth_audience or (bare_url, bare_url + "/")
        self._required_scopes: tuple[str, ...] = tuple(settings.http_oauth_required_scopes)
        self._name = name
        self._kept: dict[bytes, tuple[Principal, list[Key]]] = {}  # by digest, with the keys at that time

    def verify(self, token: str) -> Principal:
        """Return the caller that this token names. May wait for the issuer's keys. Raises TokenRefused."""
        digest = hashlib.sha256(token.encode("utf-8", "replace")).digest()
        principal, keys = self._kept.pop(digest, (None, None))
        if principal is None or keys is not self._keys.current() or (principal.expires_at or 0.0) <= time.time():
            principal, keys = principal_of(self._verified_claims(token)), self._keys.current()
            missing = [scope for scope in self._required_scopes if scope not in (principal.scopes or ())]
            if missing:
                text = f"The access token lacks {' '.join(missing)}"
                raise TokenRefused(403, "insufficient_scope", text, scopes=self._required_scopes)
        self._kept[digest] = principal, keys  # moved to the end: the first one was used longest ago
        if len(self._kept) > MAX_KEPT_TOKENS:
            del self._kept[next(iter(self._kept))]
        return principal

    def _verified_claims(self, token: str) -> Json:
        if len(token) > MAX_TOKEN_CHARS:
            raise invalid(f"it is longer than {MAX_TOKEN_CHARS} characters")
        parts = token.split(".")
        if len(parts) != 3 or not token.isascii():
            raise invalid("it is not a signed JWT")
        header, claims = _object_in(parts[0], "header"), _object_in(parts[1], "payload")
        _require_sound_header(header)
        _require_sound_claims(claims)
        if claims.get("iss") != self._issuer:
            raise invalid("it is from another issuer")  # and no reason to fetch keys
        try:
            key = self._keys.find(header.get("kid"), header["alg"])
        except UnknownKey as error:
            raise invalid(str(error)) from error
        except Unavailable as error:
            # The reason names URLs and files, so only the log has it.
            text = "The issuer's keys cannot be fetched now; try again later."
            raise TokenRefused(503, "temporarily_unavailable", text) from error
        try:
            jwt.decode(
                token,
                key,
                algorithms=[header["alg"]],
                audience=self._audiences,
                issuer=self._issuer,
                leeway=CLOCK_SKEW_SECS,
                options={"require": REQUIRED_CLAIMS},
            )
        except jwt.MissingRequiredClaimError as error:
            raise invalid(f"it has no {error.claim}") from error
        except (jwt.PyJWTError, ValueError, TypeError) as error:
            raise invalid(REASONS.get(type(error), "it cannot be verified")) from error
        return claims

    def metadata(self, *, scopes: Iterable[str] = ()) -> Json:
        """Protected resource metadata (RFC 9728), with the required scopes and these, of tools and prompts."""
        supported = list(dict.fromkeys((*self._required_scopes, *scopes)))
        document: Json = {
            "resource": self.resource_url,
            "authorization_servers": [self._issuer],
            "bearer_methods_supported": ["header"],
            "scopes_supported": supported,
            "resource_name": self._name,
        }
        return {name: value for name, value in document.items() if value}

    def challenge(self, *, error: str = "", description: str = "", scopes: Sequence[str] = ()) -> str:
        """Return the value of `WWW-Authenticate`. For a request without a token, it names the required scopes."""
        members = {
            "error": error,
            "error_description": description,
            "scope": " ".join(scopes or self._required_scopes),
            "resource_metadata": metadata_url(self.resource_url),
        }
        return "Bearer " + ", ".join(f'{name}="{_quotable(value)}"' for name, value in members.items() if value)

    def challenge_for(self, refusal: TokenRefused) -> str:
        return self.challenge(error=refusal.error, description=refusal.description, scopes=refusal.scopes)


def metadata_paths(resource_url: str) -> tuple[str, str]:
    """Return the paths at which clients ask for metadata: with the resource's path, as in RFC 9728, and without."""
    return WELL_KNOWN + urlsplit(resource_url).path.rstrip("/"), WELL_KNOWN


def metadata_url(resource_url: str) -> str:
    parts = urlsplit(resource_url)
    return f"{parts.scheme}://{parts.netloc}{metadata_paths(resource_url)[0]}"


def principal_of(claims: Json) -> Principal:
    """Return the caller that the claims of a verified token name. Raises TokenRefused if they name none."""
    subject, client = claims.get("sub"), claims.get("client_id", claims.get("azp"))
    if type(subject) is str and subject:
        name = f"{claims['iss']}|{subject}"
    elif subject is None and type(client) is str and client:
        name = f"{claims['iss']} client {client}"  # no issuer contains a space, so no subject can have this name
    else:
        raise invalid("it names neither a subject nor a client")
    if len(name) > MAX_NAME_CHARS:
        raise invalid("the name of its subject is too long")
    # The scopes as in RFC 9068; some issuers write `scp`, or an array.
    given = claims.get("scope", claims.get("scp", ""))
    words = given.split() if type(given) is str else given if type(given) is list else ()
    scopes = frozenset(word for word in words if type(word) is str)
    principal = Principal(name, scopes, claims, expires_at=claims["exp"] + CLOCK_SKEW_SECS)
    try:
        _ = principal.claims_json
    except ValueError as error:
        raise invalid("its claims cannot be passed on") from error
    return principal


def _object_in(part: str, what: str) -> Json:
    """Return the JSON object in a part of a token; not verified yet."""
    try:
        raw = base64.b64decode(part + "=" * (-len(part) % 4), altchars=b"-_", validate=True)
        jsontext.require_parsable(raw)
        value = json.loads(raw, object_pairs_hook=_without_doubles)
    except (ValueError, RecursionError) as error:
        raise invalid(f"its {what} cannot be read") from error
    if type(value) is not dict:
        raise invalid(f"its {what} is not an object")
    return value


def _without_doubles(pairs: list[tuple[str, object]]) -> Json:
    """Refuse duplicate names: one value could count for us, and the other for another program."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name occurs twice")
    return found


def _require_sound_header(header: Json) -> None:
    algorithm, kind, key_id = header.get("alg"), header.get("typ"), header.get("kid")
    if type(algorithm) is not str or algorithm not in KEY_OF:
        raise invalid("its algorithm is not allowed")
    if "crit" in header or "b64" in header:
        raise invalid("its header needs an extension that is not supported")
    if (kind.lower() if type(kind) is str else kind) not in TOKEN_TYPES:
        raise invalid("it is another kind of JWT")
    if key_id is not None and (type(key_id) is not str or not 0 < len(key_id) <= MAX_KEY_ID_CHARS):
        raise invalid("the name of its key is not valid")


def _require_sound_claims(claims: Json) -> None:
    for name in TIMES:
        value = claims.get(name, 0)
        if type(value) not in (int, float) or not math.isfinite(value):
            raise invalid(f"its {name} is not a time")
    audience = claims.get("aud", "")
    if type(audience) is not str and not (type(audience) is list and all(type(each) is str for each in audience)):
        raise invalid("its aud is neither a string nor an array of strings")
    if "cnf" in claims:
        # RFC 9449, 7.2: such a token is valid only with a proof of its key, which is not checked here.
        raise invalid("it is bound to its holder's key, which is not supported")


def _quotable(text: str) -> str:
    """Replace what RFC 6750 does not allow in a challenge: only printable ASCII without quotes stays."""
    return "".join("'" if char in '"\\' else char if " " <= char <= "~" else "?" for char in text)
