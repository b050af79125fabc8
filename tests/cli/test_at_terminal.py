"""What a person sees at a terminal."""

from __future__ import annotations

import base64
import json
import os
import re
from pathlib import Path

import pytest

from mcpgreen.cli.output import width_of
from mcpgreen.cli.trying import person
from tests.support.project import ProjectBuilder
from tests.support.terminal import at_terminal

IMPORT = 'import os, sys\nsys.path.insert(0, os.environ["MCP_SDK"])\nimport mcp_tool\n'
PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()


@pytest.fixture
def greeter(project: ProjectBuilder) -> ProjectBuilder:
    schema = {"type": "object", "properties": {"name": {"type": "string"}, "times": {"type": "integer"}}}
    project.tool("greet", "echo hi", description="Greet somebody", inputSchema={**schema, "required": ["name"]})
    project.write("tools/half.py", "#!/usr/bin/env python3\n")
    return project


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("env", [{}, {"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=["colour", "no colour", "dumb"])
def test_the_list_fits_the_screen(greeter: ProjectBuilder, width: int, env: dict[str, str]) -> None:
    seen = at_terminal(["list"], cwd=greeter.root, width=width, env=env)
    lines = [line.rstrip() for line in seen.text.splitlines() if line.strip() and "─" not in line]
    assert seen.status == 0
    assert lines[0] == "tools (1)"
    assert lines[1].split() == ["name", "description", "arguments", "from"]
    assert lines[2].split() == ["greet", "Greet", "somebody", "name!", "times", "tools/greet"]
    assert lines[3] == "left out (1)"
    assert "half.py" in lines[5]
    assert "not executable" in lines[5]
    assert max(map(len, seen.text.splitlines())) <= width
    assert ("\x1b[36m" in seen.raw) == (env == {})


def test_a_text_is_shown_as_it_is(project: ProjectBuilder) -> None:
    project.tool("greet", "printf 'Hello [bold]Ada[/bold]\\n\\033[31mred\\033[0m \\033]0;title\\007'")
    seen = at_terminal(["run-tool", "greet"], cwd=project.root)
    assert seen.status == 0
    assert "Hello [bold]Ada[/bold]\r\nred " in seen.raw
    assert "\x1b]0;" not in seen.raw


def test_a_picture_is_saved(project: ProjectBuilder, tmp_path: Path) -> None:
    block = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
    project.tool("draw", f"echo '{json.dumps({'content': [block]})}'")
    seen = at_terminal(["run-tool", "draw"], cwd=project.root, env={"TMPDIR": str(tmp_path)}, width=300)
    found = re.search(r"(\S+\.png) \(image/png, 8 bytes\)", seen.text)
    assert found is not None
    assert Path(found.group(1)).read_bytes() == base64.b64decode(PIXEL)


def test_a_failure_is_red_with_the_end_of_stderr(project: ProjectBuilder) -> None:
    project.tool("fail", "echo because >&2; exit 3")
    seen = at_terminal(["run-tool", "fail"], cwd=project.root)
    assert seen.status == 1
    assert "\x1b[1;31mThe tool reported an error:" in seen.raw
    assert "because" in seen.text


def test_progress_is_a_bar_and_logs_are_lines(project: ProjectBuilder) -> None:
    body = 'mcp_tool.progress(50, "half", total=100)\nmcp_tool.log("warning", "work", "careful")\nprint("done")'
    project.python_tool("work", IMPORT + body)
    seen = at_terminal(["run-tool", "work"], cwd=project.root)
    assert "50% half" in seen.text
    assert "━" in seen.text
    assert "warning: careful" in seen.text
    assert seen.text.rstrip().endswith("done")


FORM = """
answer = mcp_tool.elicit("Tell me more.", {"type": "object", "properties": {
    "name": {"type": "string", "title": "Your name", "minLength": 2},
    "mail": {"type": "string", "format": "email", "description": "for news"},
    "age": {"type": "integer", "minimum": 0},
    "height": {"type": "number", "default": 1.7},
    "fine": {"type": "boolean", "default": True},
    "colour": {"type": "string", "enum": ["red", "blue"]},
    "size": {"type": "string", "oneOf": [{"const": "s", "title": "Small"}, {"const": "l", "title": "Large"}]},
    "tags": {"type": "array", "items": {"type": "string", "enum": ["a", "b", "c"]}},
    }, "required": ["name", "age"]})
import json
import os
print(answer.action, json.dumps(answer.content))
"""


def test_a_form_with_all_kinds_of_fields(project: ProjectBuilder) -> None:
    project.python_tool("ask", IMPORT + FORM)
    answers = [
        ("Your name: ", "A\n"),
        ("Your name: ", "Ada\n"),
        ("mail (for news) []: ", "ada\n"),
        ("mail (for news) []: ", "\n"),
        ("age: ", "old\n"),
        ("age: ", "\n"),
        ("age: ", "36\n"),
        ("height [1.7]: ", "\n"),
        ("fine yes/no [yes]: ", "no\n"),
        ("colour []: ", "2\n"),
        ("size []: ", "Large\n"),
        ("tags, numbers or names separated by commas []: ", "1, c\n"),
    ]
    seen = at_terminal(["run-tool", "ask"], cwd=project.root, answers=answers)
    said = seen.text.splitlines()[-1]
    assert said.startswith("accept ")
    assert json.loads(said.removeprefix("accept ")) == {
        "name": "Ada",
        "age": 36,
        "height": 1.7,
        "fine": False,
        "colour": "blue",
        "size": "l",
        "tags": ["a", "c"],
    }
    assert "name must have at least 2 characters" in seen.text
    assert "age=old: this is not a valid integer." in seen.text
    assert "mail must be an email address, got ada" in seen.text


@pytest.mark.parametrize(
    ("form", "wrong", "right"),
    [
        ("email", "ada", "ada@example.com"),
        ("uri", "example", "https://example.com"),
        ("date", "tomorrow", "2026-01-31"),
        ("date-time", "2026-01-31", "2026-01-31T12:00:00Z"),
        ("colour", "", "red"),
    ],
)
def test_what_is_typed_has_the_format_of_its_field(form: str, wrong: str, right: str) -> None:
    assert [person.has_format(text, form) for text in (wrong, right)] == [form not in person.FORMATS, True]


def test_a_question_does_not_steer_the_terminal(project: ProjectBuilder) -> None:
    """What a script prints was cleaned, what it asks was not."""
    schema = {"type": "object", "properties": {"it": {"type": "string", "title": "It\033]0;title\007"}}}
    project.python_tool("ask", f'{IMPORT}print(mcp_tool.elicit("Tell\033[2J me", {schema}).action)')
    seen = at_terminal(["run-tool", "ask"], cwd=project.root, answers=[("[]: ", "yes\n")])
    assert seen.text.splitlines()[-1] == "accept"
    assert "\x1b[2J" not in seen.raw
    assert "\x1b]0;" not in seen.raw


STEERING = "\x1b]0;mine\x07\x1b[2J\x9b31m\u202eevil"


def test_no_command_prints_what_a_name_in_the_project_would_have_a_terminal_do(project: ProjectBuilder) -> None:
    """Names of files, and texts in them, are of whoever wrote the project."""
    project.tool("plain", "echo hi", description=f"Says {STEERING}\n✓ all is well")
    project.tool("broken", "echo hi", meta={"name": f"b{STEERING}", "inputSchema": {"type": STEERING}})
    project.tool("schema", "echo hi", inputSchema={"type": "object", "properties": {STEERING: {"type": "wrong"}}})
    project.write(f"tools/{STEERING}", "#!/bin/sh\n").chmod(0o777)
    project.write("tools/typo.meta.json", json.dumps({"name": "typo", f"descripton{STEERING}": 1}))
    project.write(f"resources/a{STEERING}\nb.txt", "x")
    project.write("prompts/p.txt", "{{" + STEERING + "}}")
    project.write("server.d/server.meta.json", json.dumps({"name": f"x{STEERING}", "version": STEERING, "icons": 5}))
    project.write("server.d/env", f"MCPGREEN_LOG_LEVEL={STEERING}\nbad{STEERING}\n")
    project.write("Makefile", f"X ?= {STEERING}\na{STEERING}: ; $(X)\nb: ; $(X)\n")
    commands = [
        ["validate"],
        ["validate", "--explain-defaults"],
        ["lint"],
        ["doctor"],
        ["list"],
        ["scan"],
        ["health"],
        ["run-tool", "plain", "--dry-run"],
        ["run-tool", STEERING],
        ["run-tool", "plain", f"nmae{STEERING}=1"],
        ["run-tool", "--print-env", "plain"],
        ["prompt", "p"],
        ["read", STEERING],
        ["config", "--client", "cursor"],
        ["bundle", "--validate"],
        ["server-json", "--name", "a.b/c"],
        ["wrap", "--makefile", "Makefile"],
        ["completion", "words", "--", "run-tool", "schema", ""],
    ]
    for command in commands:
        seen = at_terminal([*command], cwd=project.root, env={"NO_COLOR": "1"}, width=300)
        text = seen.raw.replace("\r\n", "\n").replace("\n", "").replace("\t", "")
        text = text.replace("\x1b[?25l", "").replace("\x1b[?25h", "")  # the cursor, while something takes a while
        odd = {char for char in text if not char.isprintable()}
        assert not odd, (command, odd, seen.raw)
        assert "\n✓ all is well" not in seen.raw.replace("\r\n", "\n"), command


def test_a_terminal_that_does_not_know_its_width_is_as_wide_as_usual(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    leader, follower = os.openpty()  # which has no size
    with os.fdopen(leader), os.fdopen(follower, "w") as terminal:
        assert width_of(terminal) == 80


@pytest.mark.parametrize(
    ("env", "access"),
    [
        ({}, "no token is set, so any program that can reach the server can call the tools"),
        ({"MCPGREEN_HTTP_TOKEN": "t" * 40}, "clients need the token in MCPGREEN_HTTP_TOKEN"),
    ],
    ids=["open", "token"],
)
def test_a_server_over_http_says_what_it_serves_and_to_whom(
    greeter: ProjectBuilder, env: dict[str, str], access: str
) -> None:
    seen = at_terminal(["serve", "--http", "127.0.0.1:0"], cwd=greeter.root, env=env, answers=[("serving", "\x03")])
    assert f"in {greeter.root}: 1 tool, " in seen.text
    assert f"mcpgreen: {access}\n" in seen.text
