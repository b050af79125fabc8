"""What authors read when something of theirs cannot be used."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.cli.test_commands import mcpgreen, run_tool
from tests.support.prerequisites import require_program
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually
from tests.support.wire import Wire


def scanned(project: ProjectBuilder) -> str:
    return mcpgreen("scan", "--project-root", str(project.root)).stderr


def test_bad_yaml_is_said_without_the_loader_s_own_names(project: ProjectBuilder) -> None:
    project.tool("greet", "echo")
    project.write("tools/greet.meta.yaml", "description: one: two\n")
    said = scanned(project)
    assert "tools/greet.meta.yaml: not valid YAML: mapping values are not allowed in this context" in said
    assert "at line 1, column 17" in said
    assert "string>" not in said


@pytest.mark.parametrize("beginning", ['{"name": "x",', '{"arguments": {"type": "object"}'])
def test_a_comment_over_several_lines_is_recognised(project: ProjectBuilder, beginning: str) -> None:
    project.tool("greet", f"# mcp: {beginning}\n# }}\necho")
    said = scanned(project)
    assert "tools/greet: not valid JSON" in said
    assert "JSON after mcp: has to be on one line; the tool is left out" in said


def test_a_comment_that_is_wrong_within_its_line_is_not_too_long(project: ProjectBuilder) -> None:
    project.tool("greet", '# mcp: {"name": x}\necho')
    said = scanned(project)
    assert "tools/greet: not valid JSON" in said
    assert "one line" not in said


def test_the_shell_sdk_asks_for_bash(project: ProjectBuilder) -> None:
    """Another shell stopped at the first line that it did not know, with a message that named none."""
    project.tool("greet", f'#!{require_program("dash")}\n. "$MCP_SDK/tool-sdk.sh"\necho on')
    result = json.loads(run_tool(project, "greet").stdout)
    assert (result["isError"], result["_meta"]["exitCode"]) == (True, 1)
    assert result["_meta"]["stderr"] == "tool-sdk.sh needs bash: begin the script with #!/usr/bin/env bash\n"
    assert "on\n" not in str(result["content"])


@pytest.mark.parametrize(
    ("file", "told"),
    [
        (None, "it would be an executable file providers/engine, with any suffix"),
        ("providers/engine.py", "providers/engine.py is neither executable nor a script (chmod +x)"),
    ],
)
def test_a_provider_that_is_missing_is_told_to_the_operator(
    project: ProjectBuilder, start: Callable[..., Wire], file: str | None, told: str
) -> None:
    if file is not None:
        project.write(file, "print('no shebang')\n")
    project.described("state", uri="engine://state", provider="engine")
    server = start()
    server.handshake()
    error = server.error("resources/read", {"uri": "engine://state"})
    assert error == {"code": -32603, "message": "Unsupported resource provider 'engine'"}
    eventually(lambda: f"Resource provider 'engine' is missing: {told}\n" in server.stderr)


def test_a_name_that_had_to_be_changed_is_told(project: ProjectBuilder) -> None:
    project.tool("sp ace.sh", "echo")
    project.tool("named well", "echo", meta={"name": "well"})
    said = scanned(project)
    assert "tools/sp ace.sh: the tool is called sp-ace: a name consists of A-Z a-z 0-9 _ . -\n" in said
    assert "named well" not in said
