"""Make a resource server from the settings, or say why the server cannot start.

Rule: a server that is half configured never lets everybody in; any mistake keeps it from starting. The issuer is not
asked here: the server starts even if the issuer does not answer now.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcpgreen.catalog.descriptions.metadata import is_scope
from mcpgreen.errors import ProjectError

if TYPE_CHECKING:
    from mcpgreen.settings.settings import Settings
    from mcpgreen.text.json_types import Json
    from mcpgreen.transports.http.oauth.resource_server import ResourceServer

PREFIX = "MCPGREEN_HTTP_OAUTH_"
ALGORITHMS = ("RS256", "RS384", "RS512", "ES256", "ES384", "PS256", "EdDSA")
CLOCK_SKEW_SECS = 60.0  # by which the clock of the issuer may differ from ours

CONNECTIONS_PART = 16  # one in so many connections may wait for the issuer


def configured_resource_server(settings: Settings, *, resource_url: str, name: str = "") -> ResourceServer | None:
    """The resource server; None if no issuer is set. Raises ProjectError for settings that cannot work."""
    issuer, keys_url = settings.http_oauth_issuer, settings.http_oauth_jwks_url
    if not issuer:
        useless = {
            "jwks_url": keys_url,
            "audience": settings.http_oauth_audience,
            "required_scopes": settings.http_oauth_required_scopes,
        }
        for each, value in useless.items():
            if value:
                raise _problem(each, "there is no issuer for it; set MCPGREEN_HTTP_OAUTH_ISSUER as well")
        return None
    try:
        from mcpgreen.transports.http.oauth import fetching
        from mcpgreen.transports.http.oauth.keys import KeySet
        from mcpgreen.transports.http.oauth.resource_server import ResourceServer
    except ImportError as error:
        raise _problem("issuer", "tokens need the extra oauth; docs/install.md#extras says how to add it") from error
    if not resource_url.startswith(("http://", "https://")):
        reason = "tokens are for a URL, and a socket has none; set MCPGREEN_HTTP_PUBLIC_URL as well"
        raise _problem("issuer", reason)
    fault = fetching.fault_of_url(issuer)
    if fault or "?" in issuer:
        raise _problem("issuer", f"it {fault or 'must have no query'}")
    fault = fetching.fault_of_url(keys_url) if keys_url and fetching.path_of(keys_url) is None else None
    if fault:
        raise _problem("jwks_url", f"it {fault}, or be a file")
    for scope in settings.http_oauth_required_scopes:
        if not is_scope(scope):
            raise _problem("required_scopes", "a scope is a text of printable ASCII without spaces and quotes")

    def fetch() -> Json:
        return fetching.document_at(keys_url or fetching.discovered_keys_url(issuer))

    keys = KeySet(fetch, max_waiting=max(1, settings.http_max_connections // CONNECTIONS_PART))
    if keys_url and fetching.path_of(keys_url) is not None:
        try:
            keys.take(fetch())
        except fetching.Unavailable as error:
            raise _problem("jwks_url", str(error)) from error
    return ResourceServer(
        keys,
        issuer=issuer,
        resource_url=resource_url,
        audiences=settings.http_oauth_audience,
        algorithms=ALGORITHMS,
        required_scopes=settings.http_oauth_required_scopes,
        clock_skew_secs=CLOCK_SKEW_SECS,
        name=name,
    )


def _problem(setting: str, reason: str) -> ProjectError:
    return ProjectError(PREFIX + setting.upper(), reason)
