"""A resource server that trusts the issuer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mcpgreen.settings.settings import load
from mcpgreen.transports.http.oauth.resource_server import ResourceServer
from mcpgreen.transports.http.serving import configured_resource_server
from tests.support.issuer import RESOURCE, Issuer


@pytest.fixture
def trusting(issuer: Issuer) -> Iterator[Callable[..., ResourceServer]]:
    """A resource server that trusts the issuer, with these settings."""
    servers: list[ResourceServer] = []

    def trust(**settings: Any) -> ResourceServer:
        given = {"issuer": issuer.name, **settings}
        environ = {f"MCPGREEN_HTTP_OAUTH_{name.upper()}": str(value) for name, value in given.items()}
        server = configured_resource_server(load({}, environ, {}), resource_url=RESOURCE, name="Notes")
        assert server is not None
        servers.append(server)
        return server

    yield trust
    for server in servers:
        server.close()


@pytest.fixture
def server(trusting: Callable[..., ResourceServer]) -> ResourceServer:
    return trusting()
