"""A plugin of pytest: the fixture `mcpgreen_client`, a client of the project's server, for tests in Python.

    def test_stats(mcpgreen_client):
        assert mcpgreen_client.call("stats", {"path": "a.txt"}).structured == {"lines": 3}

The project is the rootdir of pytest, or the folder in it that the ini option `mcpgreen_project` names. The mark
`mcpgreen(project=..., environment=..., revision=..., capabilities=...)` says otherwise for some tests.

Rule: pytest loads this module in every run. It imports nothing but pytest, and the server is a process of its own, so
that nothing in pytest's process is changed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from mcpgreen.cli.testing.client import ProjectClient


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("mcpgreen_project", "the project of mcpgreen_client, relative to the rootdir", default="")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "mcpgreen(project, environment, revision, capabilities): see mcpgreen_client")


@pytest.fixture
def mcpgreen_client(request: pytest.FixtureRequest) -> Iterator[ProjectClient]:
    """A client of the project's server, which is started for this test."""
    from mcpgreen.cli.testing.client import ProjectClient

    options: dict[str, Any] = {"project": request.config.getini("mcpgreen_project")}
    for mark in reversed(list(request.node.iter_markers("mcpgreen"))):  # the nearest counts last
        options |= mark.kwargs
    project_root = os.path.join(request.config.rootpath, options.pop("project"))
    with closing(ProjectClient(project_root, **options)) as client:
        yield client
