"""The ways to serve a call, as one table: feature tests of calls that use these fixtures run in each of them."""

from __future__ import annotations

import json
import sys
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

from tests.support.project import ProjectBuilder
from tests.support.wire import Json

# What the description of a Python tool says for it.
WAYS: dict[str, Json] = {"fresh": {"warm": False}, "forked": {"warm": True}, "resident": {"stays": "server"}}
# A snippet of shell, served so. Python that is forked becomes bash. In a process that stays, the snippet has the
# variables of a process of its own, as far as they come with the call. What it prints is the answer; its exit status is
# not told.
SHELL = {
    "fresh": "#!/bin/bash\n{comments}{script}",
    "forked": f"#!{sys.executable}\n{{comments}}import os\n"
    "os.environ.pop('LC_CTYPE', '')  # of Python\n"
    "os.execv('/bin/bash', ['bash', '-c', {script!r}, os.environ['MCP_TOOL_PATH']])\n",
    "resident": """#!/bin/bash
{comments}
source "${{MCP_SDK:?}}/tool-sdk.sh"
of_call='.meta | .client + {{
  MCP_TOOL_META_JSON: (._meta | tojson),
  MCP_ROOTS_JSON: (.roots | tojson),
  MCP_ROOTS_COUNT: (.roots | length | tostring),
  MCP_ROOTS_PATHS: ([.roots[].path] | join("\n"))
}} | to_entries[] | "export \\(.key)=\\(.value | @sh)"'
while mcp_next_call; do
  export MCP_TOOL_ARGS_JSON MCP_TOOL_NAME
  eval "$(jq -r "$of_call" <<<"$__MCP_CALL_LINE")"
  (
set +eu +o pipefail # as without the SDK
{script}
  ) </dev/null | mcp_answer
done
""",
}


class WayProject(ProjectBuilder):
    """A project whose tools are all served in one way."""

    def __init__(self, root: Path, way: str) -> None:
        super().__init__(root)
        self.way = way

    def tool(self, name: str, script: str, *, meta: Json | None = None, **fields: Any) -> Path:
        if script.startswith("#!"):
            return super().tool(name, script, meta={**WAYS[self.way], **(meta or {})}, **fields)
        own = WAYS[self.way] if self.way == "resident" else {}
        comments = "".join(takewhile(lambda line: line.startswith("#"), script.splitlines(keepends=True)))
        if comments and not (meta or fields):  # they are the description, in shell
            served = SHELL["resident" if own else "fresh"]
            comments = f"# mcp: {json.dumps(own)}\n{comments}" if own else comments
            return super().tool(name, served.format(comments=comments, script=script))
        served = SHELL[self.way].format(comments="", script=script)
        return super().tool(name, served, meta={**own, **(meta or {})}, **fields)


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


# What belongs to the process if it stays, as docs/resident-tools.md says: tests of this are for a process per call.
OF_PROCESS = """its exit status; what it prints while it loads, and what programs print that it starts; variables and
files of a call that its line has in another form, as MCP_PROGRESS_TOKEN and MCP_TOOL_RESOURCES_FILE; the SDK, which a
loop in shell loads once; a script that knows nothing of staying"""


@pytest.fixture
def per_call(way: str) -> None:
    if way == "resident":
        pytest.skip("this belongs to the process: see OF_PROCESS")
