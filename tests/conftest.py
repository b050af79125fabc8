"""Fixtures: a project on disk, and the real server in front of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.project import ProjectBuilder
from tests.support.wire import Wire


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "requirement(id, ...): the rows of requirements.yaml that this test covers")


@pytest.fixture
def project(tmp_path: Path) -> ProjectBuilder:
    return ProjectBuilder(tmp_path / "project")


@pytest.fixture
def start(project: ProjectBuilder) -> Iterator[Callable[..., Wire]]:
    """Start the server on the project; keyword arguments are settings (`page_size=2`) or those of `Wire`."""
    started: list[Wire] = []

    def start_server(*, env: dict[str, str] | None = None, wire: dict[str, Any] | None = None, **settings: Any) -> Wire:
        variables = {f"MCPGREEN_{name.upper()}": str(value) for name, value in settings.items()}
        server = Wire(project.root, env={**variables, **(env or {})}, **(wire or {}))
        started.append(server)
        return server

    yield start_server
    for server in started:
        server.kill()


@pytest.fixture
def wire(start: Callable[..., Wire]) -> Wire:
    """A server that has said nothing yet. Tools may be added to `project` before and after."""
    return start()


@pytest.fixture
def client(wire: Wire) -> Wire:
    """A server after the handshake of the latest handshake revision."""
    wire.handshake()
    return wire
