"""Decide which values are secret: by their names, the schemas of tools and questions, the settings and the environment.

What viewers, the log, traces, recordings and spans show is without what is `learned`, too: names that a schema has
declared secret, and values that came under such names, which others may repeat. While nobody looks, only questions are
learned from.

Rule: clients never read what depends on what was learned, because they could find out what others have sent.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from mcpgreen.errors import RpcError
from mcpgreen.logs.last_words import LastWords, Places
from mcpgreen.logs.secrets import MAX_NAMES, MAX_VALUE_NODES, MAX_VALUES, Secrets, is_secret_name, secret_names
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
        self.learned = self.always  # all that is known to be secret, wherever it is found
        self._names: deque[str] = deque(maxlen=10 * MAX_NAMES)  # that were learned
        self._heard: deque[str] = deque(maxlen=MAX_VALUES)

    def add(self, values: Iterable[str]) -> None:
        """Hide these values from now on: variables that a tool gets."""
        self._values += [value for value in values if value not in self._values]
        self.always = Secrets(self._keys, self._values)
        self.learned = Secrets(self.learned.names, {*self._values, *self.learned.values})

    def hear(self, message: object) -> Secrets:
        """Learn from a message of a client, or a batch. Return what to hide in it: all, if it cannot be searched."""
        parts, hidden = [], frozenset[str]()
        messages = message[:MAX_VALUE_NODES] if isinstance(message, list) else [message]
        for each in [each for each in messages if isinstance(each, dict)]:
            params = each.get("params")
            if (tool := self._of_request(each.get("method"), params)) is None:
                params, hidden = {**each["params"], "arguments": None}, UNKNOWN
            self._learn(tool or self.always)
            parts.extend([params, each.get("result")])
        found = Secrets(self.learned.names).with_values_in(parts)
        if found.hides_all:
            return found
        self._learn(found)
        return Secrets(self.learned.names | hidden, self.learned.values) if hidden else self.learned

    def hear_questions(self, asked: Json) -> None:
        """Learn which fields of forms are secret, which clients are not told."""
        self._learn(Secrets(secret_names(asked, whole=())))

    def _learn(self, found: Secrets) -> None:
        """Hide these names and values, too, until too many others have come."""
        names, values = found.names - self.learned.names, found.values - self.learned.values
        if names or values:
            self._names += names
            self._heard += values
            self.learned = Secrets({*self._keys, *self._names}, [*self._values, *self._heard])

    def of(self, method: object, params: Json) -> Secrets:
        """The secrets of a request and its answer."""
        secrets = self._of_request(method, params) or Secrets(self._keys | UNKNOWN, self._values)
        return secrets.with_values_in([params.get("arguments"), params.get("_meta")])

    def of_call(self, call: Call | None) -> Secrets:
        """The secrets of a call, or, without one, those that are hidden always. They are looked for once."""
        if call is None or call.method != "tools/call":
            return self.always
        secrets = call.secrets or self.of(call.method, {**call.params, "arguments": call.arguments})
        if self._of_request(call.method, call.params) is not None:
            call.secrets = secrets
        return secrets

    def shown_of(self, call: Call | None) -> Secrets:
        """What to hide in all that is shown of a call."""
        own = self.of_call(call)
        if own.hides_all or (call is not None and own not in (self.always, call.secrets)):  # the tools are not known
            return own
        self._learn(own)
        return self.learned

    def last_words(self, stderr: bytes, call: Call | None = None) -> LastWords:
        """The end of a script's stderr as a client may read it. Values from the call itself are not hidden if its
        arguments are too large to search: the client knows them."""
        own = self.of_call(call)
        return LastWords(stderr, self.always if own.hides_all else own, self._places, of_server=self.always)

    def _of_request(self, method: object, params: object) -> Secrets | None:
        """What is always secret, and in calls of a tool the names in its schemas. None until the tools are known."""
        if method != "tools/call" or not isinstance(params, dict):
            return self.always
        services, tool_name = self._services, params.get("name")
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
