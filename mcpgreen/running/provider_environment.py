"""What a provider or completion script may see: less than a tool, because it is run for the server, not for a call.

`isolate`: the names below and our own; `allowlist`: also the named ones; `inherit`: everything, when the operator has
confirmed it. Secrets of the server are in none of them.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from mcpgreen import journal
from mcpgreen.running.environment import SECRETS
from mcpgreen.settings import Settings

NAMES = (
    *("PATH", "HOME", "TMPDIR", "TMP", "TEMP", "LANG"),
    *("USERPROFILE", "APPDATA", "SYSTEMROOT", "MSYSTEM", "MSYS2_ARG_CONV_EXCL"),
    *("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"),
)
PREFIXES = ("LC_", "MCP_", "MCPBASH_", "MCPGREEN_")
CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE")
NAMES_OF = {
    "git": ("SSH_AUTH_SOCK", "GIT_SSH_COMMAND", "GIT_ASKPASS", *CERTIFICATES),
    "https": CERTIFICATES,
}


class ProviderEnvironment:
    """Builds the environment of each run from the server's own and from what tools are told about the server."""

    def __init__(self, environ: Mapping[str, str], *, settings: Settings, about_the_server: Mapping[str, str]) -> None:
        self._environ = environ
        self._about_the_server = about_the_server
        self._more_names: tuple[str, ...] = ()
        self._inherits = settings.provider_env_mode == "inherit" and settings.provider_env_inherit_allow
        if settings.provider_env_mode == "inherit" and not self._inherits:
            journal.warning(
                "provider_env_mode=inherit needs MCPGREEN_PROVIDER_ENV_INHERIT_ALLOW=true; isolated instead"
            )
        if settings.provider_env_mode == "allowlist":
            self._more_names = tuple(settings.provider_env_allowlist)

    def for_run(self, provider: str, variables: Mapping[str, str]) -> dict[str, str]:
        """For a script of this provider ("" for a completion), with the variables of this run."""
        names = {*NAMES, *NAMES_OF.get(provider, ()), *self._more_names}
        kept = {
            name: value
            for name, value in self._environ.items()
            if (self._inherits or name in names or name.startswith(PREFIXES)) and name not in SECRETS
        }
        return {"MCPGREEN_PYTHON": sys.executable, **kept, **self._about_the_server, **variables}
