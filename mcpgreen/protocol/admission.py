"""Admit a request: return what is known about its client, or raise the error that rejects it. Introduce the server:
the results of `initialize` and `server/discover`, which are also needed before gevent is imported (`first_answer`).

The era is decided for each request: a request with the modern envelope is stateless, even after a handshake, and a
handshake is possible after stateless requests. The rest of the server knows nothing of eras; it sees a `ClientView`.

Rule: the order of the checks is part of the protocol. The first check that fails decides.
"""

from __future__ import annotations

from collections.abc import Set
from typing import NamedTuple

from mcpgreen.errors import (
    InvalidParams,
    InvalidRequest,
    MethodNotFound,
    MissingClientCapability,
    NotInitialized,
    ShuttingDown,
    UnsupportedVersion,
)
from mcpgreen.journal import LEVELS
from mcpgreen.protocol import revision_fields, revisions
from mcpgreen.protocol.revisions import CAPABILITY_OF, Era, Revision
from mcpgreen.text.json_types import Json

PROTOCOL_VERSION = "io.modelcontextprotocol/protocolVersion"
CLIENT_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
CLIENT_INFO = "io.modelcontextprotocol/clientInfo"
LOG_LEVEL = "io.modelcontextprotocol/logLevel"
FASTMCP = ("fastmcp", "mcp")  # how its client introduces itself: since 4.2, and before by the default of the SDK

CAPABILITY_OBJECTS = ("roots", "sampling", "elicitation", "experimental", "extensions")

MAX_TOKEN_CHARS = 1024  # each report of progress repeats it
MAX_TOKEN_DIGITS = 1000
TOO_LARGE = 10**MAX_TOKEN_DIGITS

DISCOVER_TTL_MS = 60_000
NO_META: Json = {}

# Served before `notifications/initialized`, and still served after `shutdown`.
LIFECYCLE_REQUESTS = frozenset({"ping", "shutdown", "exit"})


class ClientView:
    """The client of a request: its revision, its capabilities, and the lowest level of log messages that it wants
    (None: no messages). Lists for FastMCP's client have an additional member."""

    def __init__(self, revision: Revision, capabilities: Json, log_level: str | None, info: object = None) -> None:
        """`info`: the `clientInfo` that the client sent."""
        self.revision = revision
        self.capabilities = capabilities
        self.log_level = log_level
        self.is_fastmcp = isinstance(info, dict) and info.get("name") in FASTMCP
        self.variables: dict[str, str] | None = None  # for scripts; made when the first script runs

    @property
    def has_tasks(self) -> bool:
        """Whether a call of this client may be answered with a task: in the handshake era, if it asks for one."""
        if self.revision.era == Era.STATELESS:
            return revisions.supports(revisions.TASKS_EXTENSION, self.capabilities)
        return revisions.Feature.TASKS in self.revision.features

    def require_tasks(self, reason: str = "The client does not support the tasks extension.") -> None:
        """Raises MissingClientCapability."""
        if not self.has_tasks:
            raise MissingClientCapability(reason, data=revisions.TASKS_NEEDED)


class Handshake:
    """What a connection remembers of `initialize`: the client, and how far the lifecycle has come."""

    def __init__(self) -> None:
        self.view: ClientView | None = None
        self.stateless: tuple[Json, ClientView] | None = None  # `_meta` of the last stateless request, and its client
        self.is_ready = False
        self.is_shutting_down = False


def admit(method: str, params: Json, handshake: Handshake, offered: Set[str]) -> ClientView:
    """Return the client for which this request is served. Raises the `RpcError` that refuses the request."""
    meta = params.get("_meta", NO_META)
    if type(meta) is not dict:
        if meta is not None:
            raise InvalidParams("_meta must be an object.")
        meta = NO_META
    if "progressToken" in meta:
        _require_short(meta["progressToken"])
    if method == "initialize":
        return _admit_initialize(params, meta, handshake)
    if PROTOCOL_VERSION in meta:
        return _admit_stateless(method, params, handshake, offered)
    if method in revisions.STATELESS_ONLY_REQUESTS:
        _require_offered(method, offered)
        raise incomplete_envelope(meta)
    return _admit_handshake(method, meta, handshake, offered)


def is_stateless(params: object) -> bool:
    """Tell whether a request has the modern envelope, complete or not."""
    meta = params.get("_meta") if isinstance(params, dict) else None
    return isinstance(meta, dict) and PROTOCOL_VERSION in meta


def progress_token(params: Json) -> str | int | None:
    meta = params.get("_meta")
    token = meta.get("progressToken") if type(meta) is dict else None
    return token if type(token) in (str, int) else None


def _require_short(token: object) -> None:
    is_long = isinstance(token, str) and len(token) > MAX_TOKEN_CHARS
    if is_long or (isinstance(token, int) and abs(token) >= TOO_LARGE):
        raise InvalidParams(
            f"_meta progressToken may have at most {MAX_TOKEN_CHARS} characters or {MAX_TOKEN_DIGITS} digits."
        )


def _admit_initialize(params: Json, meta: Json, handshake: Handshake) -> ClientView:
    if PROTOCOL_VERSION in meta and not isinstance(params.get("protocolVersion"), str):
        # A stateless client that sends a method which its revision does not have.
        raise MethodNotFound("initialize does not exist in the stateless era; send server/discover.")
    if handshake.is_shutting_down:
        raise ShuttingDown()
    return ClientView(revisions.LATEST_HANDSHAKE, {}, None)


def _admit_handshake(method: str, meta: Json, handshake: Handshake, offered: Set[str]) -> ClientView:
    view = handshake.view
    if view is None and (CLIENT_CAPABILITIES in meta or CLIENT_INFO in meta):
        raise incomplete_envelope(meta)
    revision = revisions.LATEST_HANDSHAKE if view is None else view.revision
    if method not in revision.requests:
        raise MethodNotFound(f"Unknown method: {method}")
    if method not in LIFECYCLE_REQUESTS:
        if handshake.is_shutting_down:
            raise ShuttingDown()
        if not handshake.is_ready:
            raise NotInitialized(data=NotInitialized.remedy)
        _require_offered(method, offered)
    return view or ClientView(revision, {}, None)


def _admit_stateless(method: str, params: Json, handshake: Handshake, offered: Set[str]) -> ClientView:
    known = handshake.stateless
    if known is None or known[0] != params["_meta"]:
        known = handshake.stateless = params["_meta"], _stateless_view(params["_meta"])
    params["_meta"], view = known  # requests that wait hold the same objects
    if method not in view.revision.requests:
        raise MethodNotFound(f"Unknown method: {method}")
    _require_offered(method, offered)
    return view


def _stateless_view(meta: Json) -> ClientView:
    version = meta[PROTOCOL_VERSION]
    if type(version) is not str:
        raise InvalidParams(f"_meta {PROTOCOL_VERSION} must be a string.")
    revision = revisions.BY_NAME.get(version)
    if revision is None or revision.era != Era.STATELESS:
        # A client that named a handshake revision learns what it may put here. Others may fall back to a handshake.
        supported = revisions.NEWEST_FIRST if revision is None else revisions.STATELESS_NAMES
        raise UnsupportedVersion(data={"supported": list(supported), "requested": version})
    capabilities = meta.get(CLIENT_CAPABILITIES)
    if type(capabilities) is not dict:
        raise incomplete_envelope(meta)
    for name in CAPABILITY_OBJECTS:
        if name in capabilities and type(capabilities[name]) is not dict:
            raise InvalidParams(f"_meta {CLIENT_CAPABILITIES}: {name} must be an object.")
    log_level = meta.get(LOG_LEVEL)
    if log_level is not None and log_level not in LEVELS:
        raise InvalidParams(f"_meta {LOG_LEVEL} must be one of: {', '.join(LEVELS)}.")
    if "progressToken" in meta and type(meta["progressToken"]) not in (str, int):
        raise InvalidParams("_meta progressToken must be a string or an integer.")
    return ClientView(revision, capabilities, log_level, meta.get(CLIENT_INFO))


def _require_offered(method: str, offered: Set[str]) -> None:
    capability = CAPABILITY_OF.get(method)
    if capability is not None and capability not in offered:
        raise MethodNotFound(f"{method}: this server does not offer the {capability} capability.")


def incomplete_envelope(meta: Json) -> InvalidParams:
    """Return the error for a request without all members that the stateless era requires."""
    absent = [key for key in (PROTOCOL_VERSION, CLIENT_CAPABILITIES) if key not in meta]
    if not absent:
        return InvalidParams(f"_meta {CLIENT_CAPABILITIES} must be an object.")
    return InvalidParams(f"Missing in params._meta: {', '.join(absent)}.")


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
    shows_ui = revisions.supports(revisions.UI_EXTENSION, capabilities)
    has_ui = shows_ui and revisions.Feature.UI_EXTENSION in revision.features
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
