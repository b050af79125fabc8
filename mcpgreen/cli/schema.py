"""`mcpgreen schema` and `sdk-path`: the JSON Schemas of project files, and the location of `mcp_tool`, for editors.

The schemas are in `templates/schemas/`, from where `new` and `scaffold` copy them. `make docs` writes them
(scripts/file_schemas.py).
"""

from __future__ import annotations

import sys

from mcpgreen.cli.commands import Options
from mcpgreen.cli.making.drafts import filled
from mcpgreen.errors import UsageError
from mcpgreen.running.scripts.environment import PYTHON_DIR

SUFFIX = ".schema.json"
# The files that each schema is for, and what it describes.
FILES = {
    "tool": "tools/**/*.meta.json: a tool",
    "prompt": "prompts/**/*.meta.json: a prompt",
    "resource": "resources/**/*.meta.json: a resource or a resource template",
    "app": "ui.meta.json: an MCP App, a page that clients show",
    "register": "server.d/register.json: what the server offers, instead of what it finds",
    "test": "tests/*.test.yaml and tools/*/*.test.yaml: tests of tools",
    "server": "server.d/server.meta.json: how the server introduces itself",
}


def run(options: Options) -> int:
    kind = options["KIND"]
    if kind is None:
        for name, text in FILES.items():
            print(f"{name:10}{text}")
        return 0
    if kind not in FILES:
        raise UsageError(f"There is no schema {kind}; choose one of {', '.join(FILES)}.")
    sys.stdout.write(filled(f"schemas/{kind}{SUFFIX}"))
    return 0


def run_sdk_path(options: Options) -> int:
    sys.stdout.write(f"{PYTHON_DIR}\n")
    return 0
