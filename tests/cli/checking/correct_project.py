"""A project in which nothing is to be found, with one of everything, and what is planted in it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mcpgreen.cli import linting
from mcpgreen.cli.checking import validate
from mcpgreen.cli.checking.findings import Finding, Report
from tests.support.project import ProjectBuilder

GREET = {
    "name": "greet",
    "description": "Greets somebody by name",
    "inputSchema": {
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "Who is greeted"},
            "times": {"type": "integer", "description": "How often", "default": 1},
        },
        "required": ["name"],
    },
    "annotations": {"readOnlyHint": True},
}

ADD = """\
name: add
description: Adds numbers
inputSchema:
  type: object
  properties:
    numbers:
      type: array
      description: What is added
      items: {type: number}
  required: [numbers]
"""

COUNT = """\
#!/usr/bin/env python3
# mcp: {"description": "Counts words", "inputSchema": {"type": "object", "properties": {}}}
import os
import sys

sys.path.insert(0, os.environ["MCP_SDK"])
from mcp_tool import args

print(len(args()))
"""


def correct_project(root: Path) -> ProjectBuilder:
    project = ProjectBuilder(root)
    project.write("server.d/server.meta.json", '{\n  "name": "correct",\n  "version": "1.0.0"\n}\n')
    project.write("server.d/policy.sh", "mcp_tools_policy_check() { return 0; }\n").chmod(0o644)
    project.write("server.d/env", "GREETING=hi\n").chmod(0o644)
    described(project, "tools/greet", GREET)
    project.program("tools/greet.sh", 'printf "hi\\n"\n')
    project.write("tools/add.meta.yaml", ADD)
    project.program("tools/add", "#!/bin/sh\necho 1\n")
    project.program("tools/count.py", COUNT)
    arguments = [{"name": "to", "description": "Who gets it"}]
    described(project, "prompts/letter", {"description": "A letter", "arguments": arguments})
    project.write("prompts/letter.txt", "Dear {{to}}\n")
    project.resource("note.txt", "a note")
    fields = {"name": "row", "uriTemplate": "table://{id}", "description": "A row of the table, by its id"}
    described(project, "resources/row", fields)
    project.provider("table.sh", "echo row\n")
    return project


def described(project: ProjectBuilder, stem: str, fields: Any) -> None:
    """A description with a line for each member."""
    project.write(f"{stem}.meta.json", json.dumps(fields, indent=2) + "\n")


def greet(project: ProjectBuilder, **changes: Any) -> None:
    """Describe the tool `greet` otherwise; None removes a member."""
    fields = {key: value for key, value in {**GREET, **changes}.items() if value is not None}
    described(project, "tools/greet", fields)


def greet_with(project: ProjectBuilder, **properties: Any) -> None:
    """The same, with other arguments."""
    greet(project, inputSchema={"type": "object", "properties": properties})


def validated(project: ProjectBuilder, *flags: str) -> Report:
    names = ("--fix", "--strict", "--json", "--explain-defaults")
    options = {"--project-root": str(project.root), **{name: name in flags for name in names}}
    with _without_our_variables():
        return validate.report_on(options)


def linted(project: ProjectBuilder) -> Report:
    with _without_our_variables():
        return linting.report_on({"--project-root": str(project.root), "--strict": False, "--json": False})


@contextmanager
def _without_our_variables() -> Iterator[None]:
    """Those that are meant for the tests are no settings, and would be told."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("MCP")]:
            patch.delenv(name)
        yield


def faults_in(report: Report) -> list[Finding]:
    return [finding for finding in report.findings if finding.level in ("error", "warning")]
