"""A client of each wire, over each transport."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.client import Speak
from tests.support.http import Serve
from tests.tasks.clients import ASKABLE, LATEST_HANDSHAKE, MODERN

Connect = Callable[..., Any]  # starts a server with these settings, and returns a client


@pytest.fixture(autouse=True)
def _with_tasks(default_tasks: None) -> None:
    """These tests are about tasks."""


@pytest.fixture(params=["stdio", "http"])
def connect(request: pytest.FixtureRequest, speak: Speak, serve: Serve) -> Connect:
    def connected(revision: str = MODERN, capabilities: Any = ASKABLE, **settings: Any) -> Any:
        if request.param == "stdio":
            return speak(revision, capabilities=capabilities, **settings)
        server = serve(**settings)
        if revision == MODERN:
            return server.stateless(capabilities=capabilities)
        return server.session(revision, capabilities=capabilities)

    return connected


@pytest.fixture
def client(connect: Connect) -> Any:
    """Speaks the extension."""
    return connect()


@pytest.fixture
def older(connect: Connect) -> Any:
    """Speaks the older wire."""
    return connect(LATEST_HANDSHAKE)
