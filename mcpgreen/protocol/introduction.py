"""The results of `initialize` and `server/discover`, as pure functions.

They are not part of the features, because the server also answers them before gevent is imported (`first_answer`).
"""

from __future__ import annotations

from collections.abc import Set
from typing import NamedTuple

from mcpgreen.errors import InvalidParams, InvalidRequest
from mcpgreen.protocol import revision_fields, revisions
from mcpgreen.protocol.admission import ClientView, Handshake
from mcpgreen.text.json_types import Json

DISCOVER_TTL_MS = 60_000


class Identity(NamedTuple):
    """The `serverInfo` object and the instructions for the model."""

    info: Json
    instructions: str | None


def initialize(params: Json, handshake: Handshake, identity: Identity, *, offered: Set[str], log_level: str) -> Json:
    """Agree on a revision, remember it in the handshake, and return the result."""
    if handshake.view is not None:
        raise InvalidRequest("Server already initialized")
    requested = params.get("protocolVersion")
    if requested is None:
        requested = ""  # scripts of mcp-bash do not name a version; treat that like an unknown one
    if not isinstance(requested, str):
        raise InvalidParams("initialize: protocolVersion must be a string.")
    capabilities = _object_or_absent(params, "capabilities")
    info = _object_or_absent(params, "clientInfo")
    revision = revisions.negotiated(requested)
    handshake.view = ClientView(revision, capabilities, log_level, info)
    has_ui = revisions.Feature.UI_EXTENSION in revision.features and revisions.supports_ui(capabilities)
    result: Json = {
        "protocolVersion": revision.name,
        "capabilities": revisions.capabilities(offered, revision, has_ui=has_ui),
        "serverInfo": revision_fields.fit_fields("implementation", identity.info, revision),
    }
    if identity.instructions:
        result["instructions"] = identity.instructions
    return result


def discover(identity: Identity, *, offered: Set[str]) -> Json:
    result: Json = {
        "supportedVersions": list(revisions.NEWEST_FIRST),
        "capabilities": revisions.capabilities(offered, revisions.NEWEST, has_ui=True),
        "ttlMs": DISCOVER_TTL_MS,
    }
    if identity.instructions:
        result["instructions"] = identity.instructions
    return result


def _object_or_absent(params: Json, name: str) -> Json:
    value = params.get(name)
    if value is None:
        return {}
    if type(value) is not dict:
        raise InvalidParams(f"initialize: {name} must be an object.")
    return value
