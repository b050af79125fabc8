"""The ways to serve a call, as one table: feature tests of calls that use these fixtures run in each of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.project import ProjectBuilder
from tests.support.wire import Json

# What the description of a Python tool says for it.
WAYS: dict[str, Json] = {"fresh": {"warm": False}, "forked": {"warm": True}, "resident": {"stays": "server"}}
# A snippet of shell, in a process that stays: what it prints is the answer. Its exit status is not told.
LOOP = """#!/bin/bash
source "${{MCP_SDK:?}}/tool-sdk.sh"
export MCP_TOOL_ARGS_JSON
while mcp_next_call; do
  (
set +eu +o pipefail # as without the SDK
{}
  ) </dev/null | mcp_answer
done
"""


class WayProject(ProjectBuilder):
    """A project whose tools are all served in one way."""

    def __init__(self, root: Path, way: str) -> None:
        super().__init__(root)
        self.way = way

    def tool(self, name: str, script: str, *, meta: Json | None = None, **fields: Any) -> Path:
        if self.way == "resident" and not script.startswith("#!"):
            script = LOOP.format(script)
        return super().tool(name, script, meta={**WAYS[self.way], **(meta or {})}, **fields)


@pytest.fixture(scope="module", params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def shared_project(way: str, tmp_path_factory: pytest.TempPathFactory) -> ProjectBuilder:
    return WayProject(tmp_path_factory.mktemp("shared") / "project", way)


@pytest.fixture
def project(way: str, tmp_path: Path) -> ProjectBuilder:
    return WayProject(tmp_path / "project", way)


@pytest.fixture
def per_call(way: str) -> None:
    """Of a process that stays, the log has what programs print that it starts, and what it prints while it loads; its
    exit status ends it, and a shell loop loads the SDK once."""
    if way == "resident":
        pytest.skip("this belongs to the process")
