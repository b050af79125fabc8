"""A server for all tests of a module that change neither it nor its project."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.http import HttpServer
from tests.support.project import ProjectBuilder


@pytest.fixture(scope="module")
def shared_server(shared_project: ProjectBuilder) -> Iterator[HttpServer]:
    with HttpServer(shared_project.root) as server:
        yield server
        assert "Traceback" not in server.stderr, server.stderr
