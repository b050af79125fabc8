"""Greeting, log level and the way out."""

from __future__ import annotations

from typing import Any

from mcpgreen.errors import InvalidParams, ShutdownNotRequested
from mcpgreen.features.call import Call
from mcpgreen.journal import LEVELS
from mcpgreen.protocol import welcome

Json = dict[str, Any]


def initialize(call: Call) -> Json:
    services = call.services
    result = welcome.initialize(
        call.params,
        call.link.handshake,
        services.identity,
        offered=services.offered,
        log_level=services.settings.log_level,
    )
    call.view = call.link.handshake.view
    return result


def discover(call: Call) -> Json:
    return welcome.discover(call.services.identity, offered=call.services.offered)


def set_level(call: Call) -> Json:
    level = call.params.get("level", "info")
    if not isinstance(level, str) or level.lower() not in LEVELS:
        raise InvalidParams(f"Invalid log level; use one of: {', '.join(LEVELS)}.")
    call.view.log_level = level.lower()
    return {}


def shutdown(call: Call) -> Json:
    call.link.begin_shutdown()
    return {}


def leave(call: Call) -> Json:
    """`exit` as a request."""
    if not call.link.handshake.is_shutting_down:
        raise ShutdownNotRequested()
    call.link.end("exit")
    return {}
