"""Trees as mcp-bash 1.3 projects have them, served the way that server was started.

No arguments, MCPBASH_PROJECT_ROOT and an allow-list in the environment, some other directory as the current one. Each
tree is of our own writing and uses the functions and files that such a project uses.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.providers.conftest import authority, site  # noqa: F401 (fixtures)
from tests.support.client import Client, Speak
from tests.support.project import ProjectBuilder
from tests.support.wire import LATEST_HANDSHAKE, Json, Wire

Serve = Speak

# Which starts in a tenth of the time that jq takes. Where there is none, this says nothing.
QUICK = {"MCPBASH_JSON_TOOL": "gojq"}

# What nearly every tool of such a project begins with.
HEAD = '#!/usr/bin/env bash\nset -euo pipefail\nsource "${MCP_SDK:?MCP_SDK is not set}/tool-sdk.sh"\n'

# What those projects promise of a result that mcp_result_success prints.
ENVELOPE: Json = {
    "type": "object",
    "required": ["success", "result"],
    "properties": {"success": {"type": "boolean"}, "result": {"type": "object"}},
}


class OldTree(ProjectBuilder):
    """A directory for each tool, with tool.sh and tool.meta.json."""

    def shell_tool(self, directory: str, script: str, *, head: str = HEAD, **fields: Any) -> Path:
        self.json(f"tools/{directory}/tool.meta.json", fields)
        return self.program(f"tools/{directory}/tool.sh", head + script)

    def json(self, relative: str, value: Any) -> Path:
        path = self.write(relative, json.dumps(value, indent=2) + "\n")
        path.chmod(0o644)
        return path


@pytest.fixture
def tree(tmp_path: Path) -> OldTree:
    return OldTree(tmp_path / "tree")


@pytest.fixture
def authority_file(authority: Any, tmp_path: Path) -> Path:  # noqa: F811
    """Whom a client of the site has to trust."""
    path = tmp_path / "authority.pem"
    authority.cert_pem.write_to_path(str(path))
    return path


@pytest.fixture
def serve(tree: OldTree, tmp_path: Path) -> Iterator[Serve]:
    """Start the server as mcp-bash is started and speak one revision; keyword arguments are variables."""
    started: list[Wire] = []

    def serve_revision(revision: str = LATEST_HANDSHAKE, *, capabilities: Json | None = None, **env: str) -> Client:
        variables = {"MCPBASH_PROJECT_ROOT": str(tree.root), "MCPBASH_TOOL_ALLOWLIST": "*", **QUICK, **env}
        wire = Wire(None, arguments=(), env=variables, cwd=tmp_path)
        started.append(wire)
        return Client(wire, revision, capabilities=capabilities)

    yield serve_revision
    for wire in started:
        wire.end()
