"""Access control: check the host, the origin and the caller of every request before its body is read.

A page that a person happens to have open can send requests to this machine, and by a name of its own that leads here
(DNS rebinding) even read the answers. So the name in `Host` has to be one of ours, and the page in `Origin` one that is
allowed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from hmac import compare_digest
from typing import TYPE_CHECKING

from mcpgreen import journal
from mcpgreen.errors import ProjectError
from mcpgreen.links.principal import Principal
from mcpgreen.settings.settings import Settings
from mcpgreen.transports.http.responses import Refusal
from mcpgreen.transports.http.wire.connection import Headers, Response
from mcpgreen.transports.http.wire.listening import Address, is_loopback

if TYPE_CHECKING:
    from mcpgreen.transports.http.oauth.resource_server import ResourceServer

FORBIDDEN = "403 Forbidden"
STATUS_OF = {401: "401 Unauthorized", 403: FORBIDDEN, 503: "503 Service Unavailable"}
MIN_TOKEN_CHARS = 32
MAX_SHOWN_CHARS = 80
ANY = "*"
HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]{1,5})?", re.ASCII)
ORIGIN = re.compile(r"https?://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]{1,5})?", re.ASCII)
PUBLIC_URL = re.compile(rf"{ORIGIN.pattern}(?:[/?#].*)?", re.ASCII | re.IGNORECASE)
BEARER = re.compile(r"[Bb][Ee][Aa][Rr][Ee][Rr] +([A-Za-z0-9\-._~+/]+=*)")
SENDABLE = re.compile(r"[A-Za-z0-9\-._~+/]+=*")
FOREIGN_SITES = ("cross-site", "same-site")  # in Sec-Fetch-Site: the page of another site asks

ALLOWED_METHODS = "GET, POST, DELETE, OPTIONS"
ALLOWED_HEADERS = (
    "Accept, Authorization, Content-Type, Last-Event-ID, Mcp-Method, Mcp-Name, MCP-Protocol-Version, Mcp-Session-Id"
)
PARAM_HEADER = re.compile(r"mcp-param-[a-z0-9!#$%&'*+.^_`|~-]{1,100}", re.IGNORECASE)
MAX_NAMED_HEADERS = 100
EXPOSED_HEADERS = "Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate"
PREFLIGHT_SECS = 600


class Door:
    """Checks the requests of one server. Raises ProjectError for settings that would let anyone in by mistake."""

    def __init__(self, settings: Settings, address: Address, oauth: ResourceServer | None = None) -> None:
        self._token: str = settings.http_token
        self._oauth = oauth
        self._hosts = {name.lower() for name in settings.http_allowed_hosts}
        if not is_loopback(address.host):
            self._hosts.add(address.host.lower())
        url = settings.http_public_url or "http://localhost"
        if (public_url := PUBLIC_URL.fullmatch(url)) is None:
            ways = (f"https://{url.rpartition('//')[2]}", "https://mcp.example.com/mcp")
            reason = f"{url[:MAX_SHOWN_CHARS]!a} is not a URL; write {next(filter(PUBLIC_URL.fullmatch, ways))}"
            raise ProjectError(settings.origin("http_public_url"), reason)
        public_host = public_url[1].strip("[]").lower()
        self._hosts.add(public_host)
        # A Unix socket has no host name.
        self._takes_any_host = bool(address.path) or ANY in self._hosts
        self._origins = {origin.rstrip("/").lower() for origin in settings.http_allowed_origins}
        if self._token and len(self._token) < MIN_TOKEN_CHARS:
            length = f"a token needs at least {MIN_TOKEN_CHARS} characters, but this one has {len(self._token)}"
            reason = f"{length}; `openssl rand -hex 32` prints a good one"
            raise ProjectError(settings.origin("http_token"), reason)
        if self._token and SENDABLE.fullmatch(self._token) is None:
            reason = "clients cannot send this token: use only letters, digits and -._~+/, and = only at the end"
            raise ProjectError(settings.origin("http_token"), reason)
        is_open = not (self._token or oauth or settings.http_allow_anonymous)
        if is_open and not address.is_private:
            raise ProjectError(
                f"--http {address.host}:{address.port}",
                "others can reach this address, so set MCPGREEN_HTTP_TOKEN (`openssl rand -hex 32` prints a good one) "
                "or MCPGREEN_HTTP_OAUTH_ISSUER; MCPGREEN_HTTP_ALLOW_ANONYMOUS=true lets anyone in",
            )
        if is_open and any(not is_loopback(name) for name in (*settings.http_allowed_hosts, public_host)):
            journal.warning(
                "the settings name a public host, and there is no token: a proxy for it would let anyone in. Set "
                "MCPGREEN_HTTP_TOKEN, or MCPGREEN_HTTP_ALLOW_ANONYMOUS=true if the proxy authenticates callers"
            )

    def admit(self, fields: Mapping[str, str]) -> Principal | None:
        """Check the headers and return the caller; None if all callers may come in. Raises Refusal."""
        self.require_good_names(fields)
        return self._caller(fields.get("authorization", ""))

    def require_good_names(self, fields: Mapping[str, str]) -> None:
        """Check `Host` and `Origin`. Raises Refusal."""
        host, origin = fields.get("host", ""), fields.get("origin")
        if not self._takes_any_host and not self._is_our_host(host):
            name = ascii(HOST.sub(r"\1", host)[:MAX_SHOWN_CHARS])
            remedy = "set http_public_url to the URL that clients use, or add the name to http_allowed_hosts"
            raise Refusal(FORBIDDEN, f"The host name {name} is not allowed; {remedy}.")
        # For a picture or a link on a page, browsers send no origin, but most of them say that another site asks.
        is_foreign = origin is None and fields.get("sec-fetch-site") in FOREIGN_SITES
        if is_foreign or (origin is not None and not self._is_allowed_origin(origin)):
            reason = "This origin is not allowed; to allow it, add it to the http_allowed_origins setting."
            raise Refusal(FORBIDDEN, reason)

    def cors_headers(self, origin: str) -> Headers:
        """Return the headers that let a page of this origin read the answer."""
        allowed = [("Access-Control-Allow-Origin", origin), ("Vary", "Origin")]
        return [*allowed, ("Access-Control-Expose-Headers", EXPOSED_HEADERS)]

    def preflight(self, fields: Mapping[str, str]) -> Response:
        """`OPTIONS`: tell a browser what a page may send. It carries no token yet."""
        self.require_good_names(fields)
        wanted = fields.get("access-control-request-headers", "").split(",", MAX_NAMED_HEADERS)
        params = [name for name in map(str.strip, wanted[:MAX_NAMED_HEADERS]) if PARAM_HEADER.fullmatch(name)]
        headers = [
            ("Allow", ALLOWED_METHODS),
            ("Access-Control-Allow-Methods", ALLOWED_METHODS),
            ("Access-Control-Allow-Headers", ", ".join((ALLOWED_HEADERS, *params))),
            ("Access-Control-Max-Age", str(PREFLIGHT_SECS)),
        ]
        return Response("204 No Content", headers, [])

    def _is_our_host(self, host: str) -> bool:
        found = HOST.fullmatch(host)
        if found is None:
            return False
        name = found[1].strip("[]").lower()
        return is_loopback(name) or name in self._hosts or host.lower() in self._hosts

    def _is_allowed_origin(self, origin: str) -> bool:
        found = ORIGIN.fullmatch(origin)
        is_local = found is not None and is_loopback(found[1].strip("[]"))
        return is_local or origin.lower() in self._origins or (ANY in self._origins and found is not None)

    def _caller(self, authorization: str) -> Principal | None:
        if not self._token and self._oauth is None:
            return None
        found = BEARER.fullmatch(authorization)
        if found is None:
            reason = "This is not a bearer token." if authorization else "A bearer token is required."
            if authorization.strip().lower() == "bearer":
                reason = "The bearer token is empty; is the variable with the token set in this shell?"
            raise self._unauthorized(reason)
        token = found[1]
        if self._token and compare_digest(token.encode("latin-1"), self._token.encode("utf-8", "surrogateescape")):
            return Principal("token", is_shared=True)
        if self._oauth is None:
            raise self._unauthorized("The token is wrong.", error="invalid_token")
        from mcpgreen.transports.http.oauth.resource_server import TokenRefused

        try:
            return self._oauth.verify(token)
        except TokenRefused as refused:
            headers = [("WWW-Authenticate", self._oauth.challenge_for(refused))]
            if refused.status == 503:
                headers.append(("Retry-After", "1"))
            raise Refusal(STATUS_OF[refused.status], refused.description, headers=headers) from refused

    def _unauthorized(self, reason: str, *, error: str = "") -> Refusal:
        if self._oauth is not None:
            challenge = self._oauth.challenge(error=error, description=reason if error else "")
        else:
            challenge = f'Bearer error="{error}", error_description="{reason}"' if error else "Bearer"
        return Refusal(STATUS_OF[401], reason, headers=[("WWW-Authenticate", challenge)])
