"""What the ways to serve a request over HTTP share."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mcpgreen.engine.link import Link
from mcpgreen.engine.server import Server
from mcpgreen.links.sink import Sink
from mcpgreen.settings.settings import Settings
from mcpgreen.transports.http.sessions import HttpSession, HttpSessions
from mcpgreen.transports.http.streams.outlet import Outlets

if TYPE_CHECKING:
    from mcpgreen.links.principal import Principal
    from mcpgreen.protocol.token import RemoteToken
    from mcpgreen.transports.http.oauth.resource_server import ResourceServer

TRANSPORT = "http"  # as scripts are told


class Parts(NamedTuple):
    """Of one server. `token` is what messages have to carry themselves, whatever their requests do; `oauth` knows the
    tokens of requests."""

    server: Server
    settings: Settings
    outlets: Outlets
    sessions: HttpSessions
    token: RemoteToken | None
    oauth: ResourceServer | None

    def connect(self, sink: Sink, session: HttpSession) -> Link:
        """Another stream of a session."""
        return self.server.connect(
            sink,
            transport=TRANSPORT,
            session=session.session,
            token=self.token,
            principal=session.principal,
            owner=session.key,
        )

    def connect_stateless(self, sink: Sink, principal: Principal | None, remote_address: str) -> Link:
        """A stream of no session. Callers are told apart by what they prove and where they are."""
        owner = (None if principal is None else principal.name, remote_address)
        return self.server.connect_stateless(
            sink, transport=TRANSPORT, token=self.token, principal=principal, owner=owner
        )
