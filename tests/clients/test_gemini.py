"""Gemini CLI over HTTP, as far as it goes without its model: it connects and sends a ping."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.support.http import HttpServer
from tests.support.prerequisites import require_gemini
from tests.support.programs import completed
from tests.support.project import ProjectBuilder

PATIENCE_SECS = 60.0


@pytest.mark.requirement("G-http-clients", "G-http-version-header")
def test_gemini_cli_connects(project: ProjectBuilder, tmp_path: Path) -> None:
    """It sends no MCP-Protocol-Version."""
    node, program = require_gemini()
    with HttpServer(project.root) as server:
        settings = {"mcpServers": {"green": {"httpUrl": server.url}}}
        (tmp_path / ".gemini").mkdir()
        (tmp_path / ".gemini" / "settings.json").write_text(json.dumps(settings))
        run = completed(
            [node, str(program), "mcp", "list"],
            env={"HOME": str(tmp_path), "PATH": os.environ["PATH"], "GEMINI_CLI_TRUST_WORKSPACE": "true"},
            cwd=tmp_path,
            timeout=PATIENCE_SECS,
        )

    assert f"green: {server.url} (http) - Connected" in run.stdout + run.stderr
