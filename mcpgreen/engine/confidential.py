"""What must not be shown of a request and of what comes of it: by names, by the tool's schemas, by the settings."""

from __future__ import annotations

from typing import Any

from mcpgreen.errors import RpcError
from mcpgreen.features.services import Services
from mcpgreen.logs.secrets import Secrets, secret_names
from mcpgreen.text.json_types import Json

UNKNOWN = frozenset({"arguments"})  # hidden as long as nobody knows what they are


class Confidential:
    """Of one server."""

    def __init__(self, services: Services) -> None:
        settings = services.settings
        self._services = services
        self._keys = {key for key in (settings.remote_token_key, settings.remote_token_fallback_key) if key}
        self._values = [settings.remote_token, settings.state_key]
        self.always = Secrets(self._keys, self._values)

    def of(self, method: Any, params: Any) -> Secrets:
        """Of a request, and of its answer."""
        if method != "tools/call" or type(params) is not dict:
            return self.always
        names = self._names_of(params.get("name"))
        secrets = Secrets(self._keys | (UNKNOWN if names is None else names), self._values)
        return secrets.with_values_in({"arguments": params.get("arguments"), "_meta": params.get("_meta")})

    def is_unknown(self, method: Any, params: Json) -> bool:
        """Whether one has to look at the project first to know what is secret."""
        return bool(method == "tools/call" and self._names_of(params.get("name")) is None)

    def _names_of(self, tool_name: Any) -> set[str] | None:
        """What the schemas of a tool say; None as long as the tools are not known."""
        services = self._services
        try:
            if not services.catalog.is_known("tools"):
                return None
            snapshot = services.catalog.snapshot("tools")
        except (RpcError, OSError):
            return None
        tool = snapshot.by_name.get(tool_name) if isinstance(tool_name, str) else None
        if tool is None:
            return set()
        key = ("secret names", tool.name)
        names: set[str] | None = snapshot.cache.get(key)
        if names is None:
            names = secret_names(tool.definition.get("inputSchema"), whole=("arguments",))
            names |= secret_names(tool.definition.get("outputSchema"), whole=("structuredContent", "text"))
            snapshot.cache[key] = names
        return names
