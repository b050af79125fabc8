"""Greeting, log level and the way out."""

from __future__ import annotations

from mcpgreen.errors import InvalidParams, ShutdownNotRequested
from mcpgreen.features.call import Call
from mcpgreen.journal import LEVELS
from mcpgreen.links.session import Session
from mcpgreen.protocol import introduction
from mcpgreen.text.json_types import Json


def initialize(call: Call) -> Json:
    services, session = call.services, _session_of(call)
    result = introduction.initialize(
        call.params,
        session.handshake,
        services.identity,
        offered=services.offered,
        log_level=services.settings.log_level,
    )
    call.view = session.handshake.view or call.view
    return result


def discover(call: Call) -> Json:
    return introduction.discover(call.services.identity, offered=call.services.offered)


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
    """`exit` as a request."""
    session = _session_of(call)
    if not session.handshake.is_shutting_down:
        raise ShutdownNotRequested()
    session.end("exit")
    return {}


def _session_of(call: Call) -> Session:
    """These methods exist only where there is one."""
    assert call.session is not None
    return call.session
