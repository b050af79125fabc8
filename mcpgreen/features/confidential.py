"""Decide which values in a request and its result are secret, by their names, the tool's schemas, the settings and
the environment."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from mcpgreen.errors import RpcError
from mcpgreen.logs.last_words import LastWords, Places
from mcpgreen.logs.secrets import Secrets, is_secret_name, secret_names
from mcpgreen.protocol.token import FALLBACK_KEY
from mcpgreen.text.json_types import Json

if TYPE_CHECKING:
    from mcpgreen.features.call import Call
    from mcpgreen.features.services import Services

UNKNOWN = frozenset({"arguments"})  # hidden until the tool is known
SHORTEST_VARIABLE = 8  # that is taken as a secret; a shorter value may be any word


class Confidential:
    def __init__(self, services: Services, environ: Mapping[str, str]) -> None:
        settings = services.settings
        self._services = services
        self._keys = {settings.remote_token_key, FALLBACK_KEY}
        self._values = [settings.remote_token, settings.state_key]
        for name, value in environ.items():
            is_directory = value.startswith("/") and os.path.isdir(value)  # as PASSWORD_STORE_DIR: shown as a path
            if len(value) >= SHORTEST_VARIABLE and is_secret_name(name) and not is_directory:
                self._values.append(value)
        self._places = Places(services.project.root, os.path.expanduser("~"))
        self.always = Secrets(self._keys, self._values)

    def add(self, values: Iterable[str]) -> None:
        """Hide these values from now on: variables that a tool gets."""
        self._values += [value for value in values if value not in self._values]
        self.always = Secrets(self._keys, self._values)

    def of(self, method: object, params: object) -> Secrets:
        """The secrets of a request and its answer."""
        if method != "tools/call" or type(params) is not dict:
            return self.always
        secrets = self._of_tool(params.get("name")) or Secrets(self._keys | UNKNOWN, self._values)
        return secrets.with_values_in({"arguments": params.get("arguments"), "_meta": params.get("_meta")})

    def of_call(self, call: Call | None) -> Secrets:
        """The secrets of a call, or, without one, those that are hidden always. They are looked for once: as long as
        nothing more is known that might be secret."""
        if call is None or call.method != "tools/call":
            return self.always
        if call.secrets is None or call.secrets[0] is not self.always:
            secrets = self.of(call.method, {**call.params, "arguments": call.arguments})
            if self.is_unknown(call.method, call.params):
                return secrets
            call.secrets = self.always, secrets
        return call.secrets[1]

    def last_words(self, stderr: bytes, call: Call | None = None) -> LastWords:
        """The end of a script's stderr as a client may read it. Values from the call itself are not hidden if its
        arguments are too large to search: the client knows them."""
        own = self.of_call(call)
        return LastWords(stderr, self.always if own.hides_all else own, self._places, of_server=self.always)

    def is_unknown(self, method: object, params: Json) -> bool:
        """Tell whether the project has to be read first to know what is secret."""
        return bool(method == "tools/call" and self._of_tool(params.get("name")) is None)

    def _of_tool(self, tool_name: object) -> Secrets | None:
        """The secrets of all calls of a tool: with the secret names in its schemas. None until the tools are known."""
        services = self._services
        try:
            if not services.catalog.is_known("tools"):
                return None
            snapshot = services.catalog.snapshot("tools")
        except (RpcError, OSError):
            return None
        tool = snapshot.by_name.get(tool_name) if isinstance(tool_name, str) else None
        if tool is None:
            return self.always
        key = "secrets", tool_name, len(self._values)
        secrets: Secrets | None = snapshot.cache.get(key)
        if secrets is None:
            names = secret_names(tool.definition.get("inputSchema"), whole=("arguments",))
            names |= secret_names(tool.definition.get("outputSchema"), whole=("structuredContent", "text"))
            secrets = snapshot.cache[key] = Secrets(self._keys | names, self._values)
        return secrets
