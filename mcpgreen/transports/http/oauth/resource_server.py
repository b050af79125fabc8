"""A resource server as in OAuth 2.1: it verifies tokens, and tells clients where to get one.

It is not an authorization server: it issues no tokens, keeps no users, and shows no page. Clients learn from its
metadata (RFC 9728) where to get a token, and from a challenge (RFC 6750) where the metadata is and which scopes they
need.

Rule: a token is verified once and remembered by its digest, until it expires or the keys of the issuer change. The
token itself is not kept, and no refusal repeats any part of it.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Sequence
from urllib.parse import urlsplit

from mcpgreen.links.principal import Principal
from mcpgreen.text.json_types import Json
from mcpgreen.transports.http.oauth.keys import KeySet
from mcpgreen.transports.http.oauth.tokens import TokenRefused, Verifier, invalid

WELL_KNOWN = "/.well-known/oauth-protected-resource"
MAX_KEPT_TOKENS = 1000
MAX_NAME_CHARS = 1024


class ResourceServer:
    """`resource_url` is the URL of the endpoint, such as https://host/mcp; `name` is for people."""

    def __init__(
        self,
        keys: KeySet,
        *,
        issuer: str,
        resource_url: str,
        audiences: Sequence[str] = (),
        algorithms: Sequence[str],
        required_scopes: Sequence[str] = (),
        clock_skew_secs: float = 60.0,
        name: str = "",
    ) -> None:
        self.issuer = issuer
        self.resource_url = resource_url
        self.required_scopes = tuple(required_scopes)
        self._name = name
        self._keys = keys
        bare_url = resource_url.rstrip("/")
        self._verifier = Verifier(
            keys,
            issuer=issuer,
            audiences=audiences or (bare_url, bare_url + "/"),
            algorithms=algorithms,
            clock_skew_secs=clock_skew_secs,
        )
        self._clock_skew_secs = clock_skew_secs
        self._kept: dict[bytes, tuple[Principal, float, int]] = {}  # by digest; with expiry and generation of keys

    def verify(self, token: str) -> Principal:
        """The caller that this token names. May wait for the issuer's keys. Raises TokenRefused."""
        self._keys.stay_current()
        digest = hashlib.sha256(token.encode("utf-8", "replace")).digest()
        principal, expires_at, generation = self._kept.pop(digest, (None, 0.0, 0))
        if principal is None or generation != self._keys.generation or expires_at <= time.time():
            claims = self._verifier.claims_of(token)
            expires_at, generation = claims["exp"] + self._clock_skew_secs, self._keys.generation
            principal = principal_of(claims, expires_at=expires_at)
            self._require_scopes(principal)
        self._kept[digest] = principal, expires_at, generation  # moved to the end: the first one was used longest ago
        if len(self._kept) > MAX_KEPT_TOKENS:
            del self._kept[next(iter(self._kept))]
        return principal

    def _require_scopes(self, principal: Principal) -> None:
        missing = [scope for scope in self.required_scopes if scope not in (principal.scopes or ())]
        if missing:
            text = f"The access token lacks {' '.join(missing)}"
            raise TokenRefused(403, "insufficient_scope", text, scopes=self.required_scopes)

    def metadata(self, *, scopes: Iterable[str] = ()) -> Json:
        """Protected resource metadata (RFC 9728), with the required scopes and these, of tools and prompts."""
        supported = list(dict.fromkeys((*self.required_scopes, *scopes)))
        document: Json = {
            "resource": self.resource_url,
            "authorization_servers": [self.issuer],
            "bearer_methods_supported": ["header"],
        }
        if supported:
            document["scopes_supported"] = supported
        if self._name:
            document["resource_name"] = self._name
        return document

    def challenge(
        self,
        *,
        error: str | None = None,
        description: str | None = None,
        scopes: Iterable[str] = (),
    ) -> str:
        """The value of `WWW-Authenticate`. Without an error, for a request without a token, it names the required
        scopes."""
        wanted = tuple(scopes) or self.required_scopes
        members = {
            "error": error,
            "error_description": description,
            "scope": " ".join(wanted),
            "resource_metadata": metadata_url(self.resource_url),
        }
        return "Bearer " + ", ".join(f'{name}="{_quotable(value)}"' for name, value in members.items() if value)

    def challenge_for(self, refusal: TokenRefused) -> str:
        return self.challenge(error=refusal.error, description=refusal.description, scopes=refusal.scopes)

    def close(self) -> None:
        self._keys.close()


def metadata_paths(resource_url: str) -> tuple[str, str]:
    """The paths at which clients ask for the metadata: with the path of the resource, as in RFC 9728, and without."""
    return WELL_KNOWN + urlsplit(resource_url).path.rstrip("/"), WELL_KNOWN


def metadata_url(resource_url: str) -> str:
    parts = urlsplit(resource_url)
    return f"{parts.scheme}://{parts.netloc}{metadata_paths(resource_url)[0]}"


def principal_of(claims: Json, *, expires_at: float) -> Principal:
    """The caller that the claims of a verified token name. Raises TokenRefused if they name none."""
    subject, client = claims.get("sub"), claims.get("client_id", claims.get("azp"))
    if type(subject) is str and subject:
        name = f"{claims['iss']}|{subject}"
    elif subject is None and type(client) is str and client:
        name = f"{claims['iss']} client {client}"  # no issuer contains a space, so no subject can have this name
    else:
        raise invalid("it names neither a subject nor a client")
    if len(name) > MAX_NAME_CHARS:
        raise invalid("the name of its subject is too long")
    principal = Principal(name, _scopes_in(claims), claims, expires_at)
    try:
        _ = principal.claims_json
    except ValueError as error:
        raise invalid("its claims cannot be passed on") from error
    return principal


def _scopes_in(claims: Json) -> frozenset[str]:
    """The scopes in `scope`, as in RFC 9068; some issuers write `scp`, or an array."""
    given = claims.get("scope", claims.get("scp", ""))
    words = given.split() if type(given) is str else given if type(given) is list else ()
    return frozenset(word for word in words if type(word) is str)


def _quotable(text: str) -> str:
    """Replace what RFC 6750 does not allow in a challenge: only printable ASCII without quotes stays."""
    return "".join("'" if char in '"\\' else char if " " <= char <= "~" else "?" for char in text)
