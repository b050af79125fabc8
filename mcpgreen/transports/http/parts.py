"""What the ways to serve a request over HTTP share."""

from __future__ import annotations

from typing import NamedTuple

from mcpgreen.engine.server import Server
from mcpgreen.settings.settings import Settings
from mcpgreen.transports.http.sessions import HttpSessions
from mcpgreen.transports.http.streams.outlet import Outlets

TRANSPORT = "http"  # as scripts are told


class Parts(NamedTuple):
    """Of one server."""

    server: Server
    settings: Settings
    outlets: Outlets
    sessions: HttpSessions
