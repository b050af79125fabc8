"""Make a resource server from the settings, or say why the server cannot start.

Rule: a half-configured server is never open to anyone; any mistake keeps it from starting. The issuer is not
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
CONNECTIONS_PART = 16  # one of this many connections may wait for the issuer


def configured_resource_server(settings: Settings, *, resource_url: str, name: str = "") -> ResourceServer | None:
    """Return the resource server; None if no issuer is set. Raises ProjectError for settings that cannot work."""
    issuer, keys_url = settings.http_oauth_issuer, settings.http_oauth_jwks_url
    audiences, required_scopes = settings.http_oauth_audience, settings.http_oauth_required_scopes
    if not issuer:
        for each, value in {"jwks_url": keys_url, "audience": audiences, "required_scopes": required_scopes}.items():
            if value:
                raise _problem(each, "there is no issuer for it; set MCPGREEN_HTTP_OAUTH_ISSUER as well")
        return None
    try:
        from mcpgreen.transports.http.oauth import keys
        from mcpgreen.transports.http.oauth.resource_server import ResourceServer
    except ImportError as error:
        raise _problem("issuer", "tokens need the extra oauth; docs/install.md#extras says how to add it") from error
    if not resource_url.startswith(("http://", "https://")):
        reason = "tokens are for a URL, and a socket has none; set MCPGREEN_HTTP_PUBLIC_URL as well"
        raise _problem("issuer", reason)
    fault = keys.fault_of_url(issuer)
    if fault or "?" in issuer:
        raise _problem("issuer", f"it {fault or 'must have no query'}")
    is_file = keys.path_of(keys_url) is not None
    fault = keys.fault_of_url(keys_url) if keys_url and not is_file else None
    if fault:
        raise _problem("jwks_url", f"it {fault}, or be a file")
    if not all(map(is_scope, required_scopes)):
        raise _problem("required_scopes", "a scope is printable ASCII without spaces and quotes")

    def fetch() -> Json:
        return keys.document_at(keys_url or keys.discovered_keys_url(issuer))

    key_set = keys.KeySet(fetch, max_waiting=max(1, settings.http_max_connections // CONNECTIONS_PART))
    if is_file:
        try:
            key_set.take(fetch())
        except keys.Unavailable as error:
            raise _problem("jwks_url", str(error)) from error
    return ResourceServer(
        key_set,
        issuer=issuer,
        resource_url=resource_url,
        audiences=audiences,
        required_scopes=required_scopes,
        name=name,
    )


def _problem(setting: str, reason: str) -> ProjectError:
    return ProjectError(PREFIX + setting.upper(), reason)
