"""Methods that don't concern a single item: `initialize`, `server/discover`, ping, log level, shutdown and lists."""

from __future__ import annotations

from mcpgreen.catalog.snapshot import KINDS, page
from mcpgreen.errors import InvalidParams, ShutdownNotRequested
from mcpgreen.features.call import Call, without_target
from mcpgreen.journal import LEVELS
from mcpgreen.links.session import Session
from mcpgreen.protocol import admission
from mcpgreen.text.json_types import Json


def initialize(call: Call) -> Json:
    services, session = call.services, _session_of(call)
    result = admission.initialize(
        call.params,
        session.handshake,
        services.identity,
        offered=services.offered,
        log_level=services.settings.log_level,
    )
    if session.handshake.view is not None:
        call.view = session.handshake.view
        services.meet(call.stream, call.view, session)
    return result


def discover(call: Call) -> Json:
    return admission.discover(call.services.identity, offered=call.services.offered)


def set_level(call: Call) -> Json:
    level = call.params.get("level", "info")
    if not isinstance(level, str) or level.lower() not in LEVELS:
        raise InvalidParams(f"Invalid log level; use one of: {', '.join(LEVELS)}.")
    call.view.log_level = level.lower()
    return {}


def shutdown(call: Call) -> Json:
    _session_of(call).begin_shutdown()
    return {}


def leave(call: Call) -> Json:
    """Serve `exit` as a request."""
    session = _session_of(call)
    if not session.handshake.is_shutting_down:
        raise ShutdownNotRequested()
    session.end("exit")
    return {}


def _session_of(call: Call) -> Session:
    """Return the session, which these methods always have."""
    assert call.session is not None
    return call.session


def list_page(call: Call) -> bytes:
    services, view = call.services, call.view
    snapshot = services.catalog.snapshot(KINDS[call.method])
    return page(snapshot, view.revision, call.params, services.list_terms, for_fastmcp=view.is_fastmcp)


INITIALIZE = without_target(initialize)
DISCOVER = without_target(discover)
SET_LEVEL = without_target(set_level)
SHUTDOWN = without_target(shutdown)
EXIT = without_target(leave)
LIST = without_target(list_page, uses_catalog=True)
PING = without_target(lambda call: {})
