"""Findings as people and programs get them, and what a project may have in it without harm."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from mcpgreen.cli.checking.findings import Position
from mcpgreen.cli.checking.places import Description
from mcpgreen.cli.checking.scripts import FROM_FASTMCP, LIST_PACKAGE, MAX_SCRIPT_BYTES
from tests.cli.checking.correct_project import faults_in, linted, validated
from tests.cli.test_commands import mcpgreen
from tests.support.project import ProjectBuilder
from tests.support.wire import CHECKOUT


def test_a_message_says_where_and_what_to_do(correct: ProjectBuilder) -> None:
    correct.write("tools/count.py", '#!/usr/bin/env python3\n# mcp: {"description" "x"}\n')
    done = mcpgreen("validate", "--json", "--project-root", str(correct.root))
    report = json.loads(done.stdout)
    (message,) = (each for each in report["messages"] if each["level"] == "error")

    assert done.returncode == 1
    assert all(each["code"] for each in report["messages"])
    assert message.pop("message").startswith(
        "tools/count.py: not valid JSON: Expecting ':' delimiter, line 2 column 23"
    )
    assert message.pop("fix")
    assert message == {
        "level": "error",
        "section": "tools",
        "code": "json-syntax",
        "file": "tools/count.py",
        "line": 2,
        "column": 23,
    }


def test_tools_that_share_a_file_share_its_problems(project: ProjectBuilder) -> None:
    """What a function declares counts for that function, what is wrong with the file is said once."""
    head = "import os\nimport no_such_module\nfrom mcp_tool import tool\nKEY = os.environ['A_KEY']\n"
    marks = ("@tool(env=['A_KEY!'])", "@tool", "@tool")
    functions = (f'{mark}\ndef f{at}() -> str:\n    """Do it."""\n' for at, mark in enumerate(marks))
    path = project.write("tools/orders.py", head + "".join(functions))
    findings = [each for each in validated(project).findings if each.file == "tools/orders.py"]

    assert [(each.code, each.subject) for each in findings] == [
        ("import", "tools/orders.py"), ("env", "tool f1"), ("env", "tool f2"),
    ]  # fmt: skip
    assert re.match(r"tools/orders.py: line 2: \S+ has no module no_such_module$", findings[0].message)
    assert findings[0].fix == LIST_PACKAGE
    shown = mcpgreen("validate", "--project-root", str(project.root)).stdout
    assert re.search(r"(?ms)^✗ tools/orders.py:2:1: .*^tool f1, tool f2\n  ⚠ tools/orders.py:4: it reads", shown)

    path.write_text(f'# mcp: {{"env": ["A_KEY!"]}}\n{path.read_text()}'.replace("(env=['A_KEY!'])", ""))
    assert [each.code for each in validated(project).findings if each.file == "tools/orders.py"] == ["import"]


@pytest.mark.parametrize(
    ("path", "module", "fix"),
    [
        ("tools/say.py", "no_such_module", LIST_PACKAGE),
        ("tools/say.py", "fastmcp", FROM_FASTMCP),
        ("prompts/say.py", "nomodule", "install nomodule for that interpreter, or use another one in the shebang"),
    ],
)
def test_a_missing_module_can_be_had_in_the_way_of_its_script(
    project: ProjectBuilder, path: str, module: str, fix: str
) -> None:
    project.program(path, f"#!/usr/bin/python3\nimport {module}\n")

    assert [each.fix for each in validated(project).findings if each.code == "import"] == [fix]


@pytest.mark.parametrize("mode", [0o644, 0o755])
@pytest.mark.parametrize("first", ["from fastmcp import FastMCP", "from mcp.server.fastmcp import FastMCP"])
def test_a_fastmcp_server_is_not_to_be_made_executable(project: ProjectBuilder, first: str, mode: int) -> None:
    project.write("tools/server.py", f"{first}\nmcp = FastMCP('a')\n").chmod(mode)
    (finding,) = (each for each in validated(project).findings if each.file == "tools/server.py")

    assert (finding.code, finding.fix) == ("not-a-tool", FROM_FASTMCP)


def test_executables_that_are_no_tools_are_told_with_the_reason(correct: ProjectBuilder) -> None:
    correct.program("tools/.hidden", "echo")
    correct.program("tools/sub/smoke.sh", "echo")
    correct.write("tools/library.sh", "true\n").chmod(0o644)
    os.mkfifo(correct.root / "tools" / "pipe")
    (correct.root / "tools" / "greet.meta.json").chmod(0o755)
    (correct.root / "tools" / "gone").symlink_to("nowhere")
    report = validated(correct)
    told = {finding.file for finding in report.findings if finding.code == "not-a-tool"}

    assert told == {
        f"tools/{name}" for name in (".hidden", "sub/smoke.sh", "library.sh", "pipe", "greet.meta.json", "gone")
    }
    assert not [each for each in report.findings if each.level == "error"]


def test_nothing_of_a_project_is_run(correct: ProjectBuilder, tmp_path: Path) -> None:
    """An interpreter that lies in the project, a script that would do something, and Perl, which would run BEGIN."""
    mark = tmp_path / "ran"
    correct.program("tools/bash", f"#!/bin/sh\ntouch {mark}\n")
    correct.program("tools/greet.sh", f"#!{correct.root}/tools/bash\ntouch {mark}\n")
    correct.program("tools/count.py", f"#!/usr/bin/env python3\nopen({str(mark)!r}, 'w')\n")
    correct.program("tools/add", f"#!/usr/bin/env perl\nBEGIN {{ open(F, '>', {str(mark)!r}); }}\n")
    environ = {"PATH": f"{correct.root}/tools:{os.environ['PATH']}", "BASH_ENV": f"{correct.root}/tools/bash"}
    for command in ("validate", "lint"):
        mcpgreen(command, "--project-root", str(correct.root), env=environ)

    assert not mark.exists()


def test_odd_files_are_survived(correct: ProjectBuilder) -> None:
    correct.program("tools/huge.sh", "if then\n" + "#" * MAX_SCRIPT_BYTES)
    (correct.root / "tools" / "binary").write_bytes(b"\x7fELF\0\xff" * 100)
    (correct.root / "tools" / "binary").chmod(0o755)
    correct.program("tools/deep.py", "#!/usr/bin/env python3\n" + "(" * 100_000)
    correct.write("tools/deep.meta.json", '{"inputSchema":' * 5000)
    correct.write("tools/add.meta.yaml", "a: &a [*a, *a]\n" + "- x\n" * 3)
    found = {finding.file: finding.code for finding in faults_in(validated(correct)) if finding.level == "error"}

    assert found == {"tools/deep.meta.json": "json-syntax", "tools/add.meta.yaml": "yaml-syntax"}
    assert linted(correct).findings


@pytest.mark.parametrize("command", ["validate", "lint"])
def test_the_bundled_example_is_an_example(command: str) -> None:
    done = mcpgreen(command, "--strict", "--project-root", str(CHECKOUT / "project"))
    is_told = "validate checks whether everything works.\n" in done.stdout
    assert (done.returncode, is_told) == (0, command == "lint")


def test_members_of_json_have_a_place() -> None:
    text = '{"a": [1,\n {"b\\u0063": "}"}],\n\t"d": {"e": 1, "e": 2}}'
    description = Description(text, Position(3, 8))

    assert description.position_of("a", 0) == (3, 15)
    assert description.position_of("a", 1, "bc") == (4, 3)
    assert description.position_of("d", "absent") == (5, 2)
    assert description.position_of("absent") is None
    assert description.doubles() == [(("d", "e"), (5, 16))]


def test_members_of_yaml_have_a_place() -> None:
    description = Description("a:\n  - 1\n  - b: &x 2\nc: *x\n", is_yaml=True)

    assert description.position_of("a", 1, "b") == (3, 5)
    assert description.position_of("c") == (4, 1)
    assert Description("a: &x\n  - *x\n", is_yaml=True).position_of("a") == (1, 1)
