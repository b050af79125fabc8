"""Scripts whose first line asks for what cannot be had: the client is told what is wrong with the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcpgreen.running.scripts import shebang
from tests.support.project import ProjectBuilder
from tests.support.wire import Wire, text_of

FAULTS = {
    "#!/bin/sh\r\necho hi\r\n": "Windows line endings",
    "#!/usr/bin/env bash\r\necho hi\r\n": "Windows line endings",
    "#!/no/such/interpreter -x\n": "/no/such/interpreter, which does not exist",
    "#!  \n": "without an interpreter",
    "#!/usr/bin/env -S NAME=1 no-such-program\n": "no-such-program, which is not on the PATH",
}
SOUND = ["#!/bin/sh\n", "#! /bin/sh -e\n", "#!/usr/bin/env sh\n", "#!/usr/bin/env\n", "echo hi\n", "", "#!/bin/sh"]


@pytest.mark.parametrize(("content", "fault"), {**FAULTS, **dict.fromkeys(SOUND)}.items())
def test_a_first_line_that_cannot_be_obeyed_is_explained(tmp_path: Path, content: str, fault: str | None) -> None:
    script = tmp_path / "script"
    script.write_bytes(content.encode())
    found = shebang.fault_of(str(script), search_path="/bin:/usr/bin")

    assert found is None if fault is None else fault in (found or "")


def test_a_file_that_cannot_be_read_has_no_fault(tmp_path: Path) -> None:
    assert shebang.fault_of(str(tmp_path / "missing")) is None


@pytest.mark.parametrize("content", ["#!/bin/sh\r\necho hi\r\n", "#!/no/such/interpreter -x\n"])
def test_a_client_is_told_what_is_wrong_with_the_first_line(
    project: ProjectBuilder, client: Wire, content: str
) -> None:
    project.tool("odd", content)
    error = client.error("tools/call", {"name": "odd"})

    assert error["code"] == -32603
    assert error["message"].startswith("Tool 'odd' could not be started: its script ")
    assert FAULTS[content].replace("/no/such/", "") in error["message"]  # no paths of the machine
    assert "/no/such" not in error["message"]


WHO_RUNS_IT = 'if [ -z "${BASH_VERSION:-}" ] || shopt -oq posix; then printf sh; else printf bash; fi\n'


def without_first_line(project: ProjectBuilder, name: str, script: str) -> None:
    project.write("tools/said.meta.json", '{"description": "Says something."}').chmod(0o644)
    project.write(f"tools/{name}", script).chmod(0o755)


@pytest.mark.parametrize(("name", "shell"), [("said.sh", "bash"), ("said.bash", "bash"), ("said", "sh")])
def test_a_tool_without_a_first_line_is_run_by_the_shell_that_it_is_named_for(
    project: ProjectBuilder, client: Wire, name: str, shell: str
) -> None:
    """Where sh is another shell, a tool of mcp-bash with an array in it failed."""
    without_first_line(project, name, WHO_RUNS_IT)
    assert text_of(client.call_tool("said")) == shell


def test_without_bash_sh_runs_what_is_named_for_it(project: ProjectBuilder, tmp_path: Path) -> None:
    without_first_line(project, "said.sh", "printf hello\n")
    with Wire(project.root, env={"PATH": str(tmp_path)}).greeted() as server:
        assert text_of(server.call_tool("said")) == "hello"


def test_a_program_that_env_does_not_find_for_its_line_end_is_explained(project: ProjectBuilder, client: Wire) -> None:
    path = project.tool("windows", "echo hi")
    path.write_bytes(b"#!/usr/bin/env sh\r\necho hi\r\n")

    text = text_of(client.call_tool("windows"))
    assert "Windows line endings; mcpgreen validate --fix converts them" in text
