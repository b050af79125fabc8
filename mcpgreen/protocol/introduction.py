"""The results of `initialize` and `server/discover`, as pure functions.

They live below the features because the server answers them before gevent is imported (`first_answer`), and again, by
the same code, once it runs (`features.lifecycle`).
"""

from __future__ import annotations

from mcpgreen.errors import InvalidParams, InvalidRequest
from mcpgreen.protocol import revision_fields, revisions
from mcpgreen.protocol.admission import ClientView, Handshake

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Set
    from typing import Any

DISCOVER_TTL_MS = 60_000


class Identity:
    """Who we are: the `serverInfo` object and the instructions for the model."""

    __slots__ = ("info", "instructions")

    def __init__(self, info: dict[str, Any], instructions: str | None) -> None:
        self.info = info
        self.instructions = instructions


def initialize(
    params: dict[str, Any], handshake: Handshake, identity: Identity, *, offered: Set[str], log_level: str
) -> dict[str, Any]:
    """Agree on a revision, remember it in the handshake, and give the result."""
    if handshake.view is not None:
        raise InvalidRequest("Server already initialized")
    requested = params.get("protocolVersion")
    if requested is None:
        requested = ""  # a client that does not say, as old smoke scripts do not, is like one that nobody knows
    if not isinstance(requested, str):
        raise InvalidParams("initialize: protocolVersion must be a string.")
    capabilities = _object_or_absent(params, "capabilities")
    _object_or_absent(params, "clientInfo")
    revision = revisions.negotiated(requested)
    handshake.view = ClientView(revision, capabilities, log_level)
    has_ui = revision.has(revisions.Feature.UI_EXTENSION) and revisions.supports_ui(capabilities)
    result: dict[str, Any] = {
        "protocolVersion": revision.name,
        "capabilities": revisions.capabilities(offered, revision, has_ui=has_ui),
        "serverInfo": revision_fields.fit_fields("implementation", identity.info, revision),
    }
    if identity.instructions:
        result["instructions"] = identity.instructions
    return result


def discover(identity: Identity, *, offered: Set[str]) -> dict[str, Any]:
    result: dict[str, Any] = {
        "supportedVersions": list(revisions.NEWEST_FIRST),
        "capabilities": revisions.capabilities(offered, revisions.NEWEST, has_ui=True),
        "ttlMs": DISCOVER_TTL_MS,
    }
    if identity.instructions:
        result["instructions"] = identity.instructions
    return result


def _object_or_absent(params: dict[str, Any], name: str) -> dict[str, Any]:
    value = params.get(name)
    if value is None:
        return {}
    if type(value) is not dict:
        raise InvalidParams(f"initialize: {name} must be an object.")
    return value
