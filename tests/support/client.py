"""One way to ask in both eras: a `Client` speaks one revision over a wire."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.support.wire import MODERN, Asker, Wire, modern_meta

Json = dict[str, Any]

HANDSHAKE_REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
ALL_REVISIONS = (*HANDSHAKE_REVISIONS, MODERN)


class Client(Asker):
    """Asks in the words of its revision. A handshake, where the revision needs one, is made at birth."""

    def __init__(self, wire: Wire, revision: str, *, capabilities: Json | None = None) -> None:
        self.wire = wire
        self.revision = revision
        self.capabilities = capabilities or {}
        if revision != MODERN:
            wire.handshake(revision, self.capabilities)

    def start(self, method: str, params: Json | None = None, *, meta: Json | None = None, id: Any = None) -> Any:
        """Send a request and give its id without waiting."""
        own_meta = modern_meta(capabilities=self.capabilities) if self.revision == MODERN else {}
        full_meta = {**own_meta, **(meta or {})}
        full = {**(params or {}), **({"_meta": full_meta} if full_meta else {})}
        return self.wire.start_request(method, full, id=id)

    def request(self, method: str, params: Json | None = None, **options: Any) -> Json:
        return self.wire.response(self.start(method, params, **options))

    def asked(self, method: str) -> Json:
        """The next request of the server's with this method."""
        return self.wire.receive(lambda message: message.get("method") == method and "id" in message)

    def answer(self, request: Json, result: Any = None, *, error: Any = None) -> None:
        """Answer a request of the server's, by a result unless an error is given."""
        outcome = {"result": result} if error is None else {"error": error}
        self.wire.send({"jsonrpc": "2.0", "id": request["id"], **outcome})

    def start_tool(self, name: str, arguments: Json | None = None, **options: Any) -> Any:
        return self.start("tools/call", {"name": name, "arguments": arguments or {}}, **options)

    def call_tool(self, name: str, arguments: Json | None = None, **options: Any) -> Json:
        return self.result("tools/call", {"name": name, "arguments": arguments or {}}, **options)

    def tools(self) -> dict[str, Json]:
        """The first page of the list, by name."""
        return {tool["name"]: tool for tool in self.result("tools/list")["tools"]}

    def get_prompt(self, name: str, arguments: Json | None = None, **options: Any) -> Json:
        return self.result("prompts/get", {"name": name, "arguments": arguments or {}}, **options)


Speak = Callable[..., Client]  # what the fixture `speak` gives
