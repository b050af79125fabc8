"""Who may come in: the host that was meant, the page that asks, the caller behind it.

Looked at for every request, in this order, before anything of its body is read. A page that a person happens to have
open can send requests to this machine, and by a name of its own that leads here (DNS rebinding) even read the answers:
so the name in `Host` has to be one of ours, and the page in `Origin` one that is let in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from mcpgreen import journal
from mcpgreen.errors import InvalidRequest, ProjectError
from mcpgreen.settings.settings import Settings
from mcpgreen.transports.http.responses import Headers, Refusal, Response
from mcpgreen.transports.http.wire.listening import Address, is_loopback

if TYPE_CHECKING:
    from mcpgreen.links.principal import Principal
    from mcpgreen.transports.http.oauth.resource_server import ResourceServer

STATUS_OF = {401: "401 Unauthorized", 403: "403 Forbidden", 503: "503 Service Unavailable"}
MIN_TOKEN_CHARS = 32
ANY = "*"
HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]{1,5})?", re.ASCII)
ORIGIN = re.compile(r"https?://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]{1,5})?", re.ASCII)
BEARER = re.compile(r"[Bb][Ee][Aa][Rr][Ee][Rr] +([A-Za-z0-9\-._~+/]+=*)")
SENDABLE = re.compile(r"[A-Za-z0-9\-._~+/]+=*")
ELSEWHERE = ("cross-site", "same-site")  # as browsers say where a request comes from

ALLOWED_METHODS = "GET, POST, DELETE, OPTIONS"
ALLOWED_HEADERS = (
    "Accept",
    "Authorization",
    "Content-Type",
    "Last-Event-ID",
    "Mcp-Method",
    "Mcp-Name",
    "MCP-Protocol-Version",
    "Mcp-Session-Id",
)
PARAM_HEADER = re.compile(r"mcp-param-[a-z0-9!#$%&'*+.^_`|~-]{1,100}", re.IGNORECASE)
MAX_NAMED_HEADERS = 100
EXPOSED_HEADERS = "Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate"
PREFLIGHT_SECS = 600


class Door:
    """Of one server. Raises ProjectError, when it is made, for settings under which it could not be guarded."""

    def __init__(self, settings: Settings, address: Address, oauth: ResourceServer | None = None) -> None:
        self._token: str = settings.http_token
        self._oauth = oauth
        self._hosts = {name.lower() for name in settings.http_allowed_hosts}
        if not is_loopback(address.host):
            self._hosts.add(address.host.lower())
        if public_host := urlsplit(settings.http_public_url).hostname:
            self._hosts.add(public_host)
        # Nobody reaches a Unix socket by a name.
        self._takes_any_host = bool(address.path) or ANY in self._hosts
        self._origins = {origin.rstrip("/").lower() for origin in settings.http_allowed_origins}
        if self._token and len(self._token) < MIN_TOKEN_CHARS:
            length = f"a token needs at least {MIN_TOKEN_CHARS} characters, this one has {len(self._token)}"
            reason = f"{length}; `openssl rand -hex 32` prints a good one"
            raise ProjectError(settings.origin("http_token"), reason)
        if self._token and SENDABLE.fullmatch(self._token) is None:
            reason = "no client could send this token: letters, digits and -._~+/ are possible, and = at its end"
            raise ProjectError(settings.origin("http_token"), reason)
        is_open = not (self._token or oauth or settings.http_allow_anonymous)
        if is_open and not address.is_private:
            raise ProjectError(
                f"--http {address.host}:{address.port}",
                "others can reach this address, so set MCPGREEN_HTTP_TOKEN (`openssl rand -hex 32` prints a good one) "
                "or MCPGREEN_HTTP_OAUTH_ISSUER; MCPGREEN_HTTP_ALLOW_ANONYMOUS=true would let everybody in",
            )
        if is_open and any(not is_loopback(name) for name in settings.http_allowed_hosts):
            journal.warning(
                "http_allowed_hosts names a host, and there is no token: a proxy for it lets everybody in. Set "
                "MCPGREEN_HTTP_TOKEN, or MCPGREEN_HTTP_ALLOW_ANONYMOUS=true if the proxy knows its callers"
            )

    def admit(self, variables: Mapping[str, Any]) -> Principal | None:
        """Who asks; None for anybody. Raises Refusal."""
        self.require_good_names(variables)
        return self._caller(variables.get("HTTP_AUTHORIZATION", ""))

    def require_good_names(self, variables: Mapping[str, Any]) -> None:
        """`Host` and `Origin`. Raises Refusal."""
        host = variables.get("HTTP_HOST", "")
        if not self._takes_any_host and not self._is_our_host(host):
            raise _forbidden("This host name is not served here; the setting http_allowed_hosts names those that are.")
        origin = variables.get("HTTP_ORIGIN")
        # For a picture or a link on a page, browsers send no origin, but most say that it is the page of somebody else.
        is_odd = origin is None and variables.get("HTTP_SEC_FETCH_SITE") in ELSEWHERE
        if is_odd or (origin is not None and not self._is_allowed_origin(origin)):
            raise _forbidden("This origin may not ask; the setting http_allowed_origins names those that may.")

    def cors_headers(self, variables: Mapping[str, Any]) -> Headers:
        """What lets a page read the answer: for origins that are let in."""
        origin = variables.get("HTTP_ORIGIN")
        if origin is None:
            return []
        allowed = [("Access-Control-Allow-Origin", origin), ("Vary", "Origin")]
        return [*allowed, ("Access-Control-Expose-Headers", EXPOSED_HEADERS)]

    def preflight(self, variables: Mapping[str, Any]) -> Response:
        """`OPTIONS`: a browser asks what a page may send. That it carries no token yet is as it should be."""
        self.require_good_names(variables)
        wanted = str(variables.get("HTTP_ACCESS_CONTROL_REQUEST_HEADERS", "")).split(",", MAX_NAMED_HEADERS)
        params = [name for name in map(str.strip, wanted[:MAX_NAMED_HEADERS]) if PARAM_HEADER.fullmatch(name)]
        headers = [
            ("Allow", ALLOWED_METHODS),
            ("Access-Control-Allow-Methods", ALLOWED_METHODS),
            ("Access-Control-Allow-Headers", ", ".join((*ALLOWED_HEADERS, *params))),
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
            raise self._unauthorized("A bearer token is needed." if not authorization else "This is no bearer token.")
        return self._holder_of(found[1])

    def _holder_of(self, token: str) -> Principal:
        from hmac import compare_digest

        from mcpgreen.links.principal import Principal

        if self._token and compare_digest(token.encode("latin-1"), self._token.encode("utf-8", "surrogateescape")):
            return Principal("token")
        if self._oauth is None:
            raise self._unauthorized("The token is not the right one.", error="invalid_token")
        return self._verified(token, self._oauth)

    def _verified(self, token: str, oauth: ResourceServer) -> Principal:
        from mcpgreen.transports.http.oauth.tokens import TokenRefused

        try:
            return oauth.verify(token)
        except TokenRefused as refused:
            headers = [("WWW-Authenticate", oauth.challenge_for(refused))]
            raise Refusal(STATUS_OF[refused.status], InvalidRequest(refused.description), headers=headers) from refused

    def _unauthorized(self, reason: str, *, error: str = "") -> Refusal:
        if self._oauth is not None:
            challenge = self._oauth.challenge(error=error, description=reason if error else "")
        else:
            challenge = f'Bearer error="{error}", error_description="{reason}"' if error else "Bearer"
        return Refusal("401 Unauthorized", InvalidRequest(reason), headers=[("WWW-Authenticate", challenge)])


def _forbidden(reason: str) -> Refusal:
    return Refusal("403 Forbidden", InvalidRequest(reason))
