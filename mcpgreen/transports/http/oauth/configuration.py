"""From the settings to a resource server, or to the reason why the server cannot start.

Rule: what is half configured never means that everybody may come in. Whatever is wrong keeps the server from starting.
The issuer is not asked here: that it does not answer now is no reason not to start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcpgreen.catalog.descriptions.scopes import is_scope
from mcpgreen.errors import ProjectError

if TYPE_CHECKING:
    from mcpgreen.settings.settings import Settings
    from mcpgreen.text.json_types import Json
    from mcpgreen.transports.http.oauth.resource_server import ResourceServer

PREFIX = "MCPGREEN_HTTP_OAUTH_"
ALGORITHMS = ("RS256", "RS384", "RS512", "ES256", "ES384", "PS256", "EdDSA")  # unless the operator chooses others


def configured_resource_server(settings: Settings, *, resource_url: str, name: str = "") -> ResourceServer | None:
    """None if there is no issuer. Raises ProjectError for what cannot be."""
    issuer, keys_url = settings.http_oauth_issuer, settings.http_oauth_jwks_url
    if not issuer:
        for each in ("jwks_url", "audience", "required_scopes"):
            if getattr(settings, f"http_oauth_{each}"):
                raise _problem(each, "there is no issuer for it; set MCPGREEN_HTTP_OAUTH_ISSUER as well")
        return None
    try:
        from mcpgreen.transports.http.oauth import fetching
        from mcpgreen.transports.http.oauth.keys import KEY_OF, KeySet
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
    algorithms = settings.http_oauth_algorithms or ALGORITHMS
    _require_known(algorithms, tuple(KEY_OF))
    for scope in settings.http_oauth_required_scopes:
        if not is_scope(scope):
            raise _problem("required_scopes", "a scope is a text of printable ASCII without spaces and quotes")

    def look() -> Json:
        return fetching.document_at(keys_url or fetching.discovered_keys_url(issuer))

    keys = KeySet(look)
    if keys_url and fetching.path_of(keys_url) is not None:
        try:
            keys.take(look())
        except fetching.Unavailable as error:
            raise _problem("jwks_url", str(error)) from error
    return ResourceServer(
        keys,
        issuer=issuer,
        resource_url=resource_url,
        audiences=settings.http_oauth_audience,
        algorithms=algorithms,
        required_scopes=settings.http_oauth_required_scopes,
        clock_skew_secs=settings.http_oauth_clock_skew_secs,
        name=name,
    )


def _require_known(algorithms: tuple[str, ...], known: tuple[str, ...]) -> None:
    for each in algorithms:
        if each not in known:
            raise _problem("algorithms", f"{each} is not allowed; choose from {' '.join(known)}")


def _problem(setting: str, reason: str) -> ProjectError:
    return ProjectError(PREFIX + setting.upper(), reason)
