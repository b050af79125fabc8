"""`mcpgreen sdk-path`: where editors, type checkers and people at a terminal find `mcp_tool`."""

from __future__ import annotations

import sys

from mcpgreen.cli.commands import Options
from mcpgreen.running.scripts.environment import PYTHON_DIR


def run(options: Options) -> int:
    sys.stdout.write(f"{PYTHON_DIR}\n")
    return 0
