"""What a person sees at a terminal."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path

import pytest

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
    assert lines[3] == "left out"
    assert "half.py" in lines[5]
    assert "not executable" in lines[5]
    assert max(map(len, seen.text.splitlines())) <= width
    assert ("\x1b[36m" in seen.raw) == (env == {})


def test_plain_is_plain(greeter: ProjectBuilder) -> None:
    assert "\x1b" not in at_terminal(["list", "--plain"], cwd=greeter.root).raw


def test_a_text_is_shown_as_it_is(project: ProjectBuilder) -> None:
    project.tool("greet", "printf 'Hello [bold]Ada[/bold]\\n\\033[31mred\\033[0m \\033]0;title\\007'")
    seen = at_terminal(["run-tool", "greet"], cwd=project.root)
    assert seen.status == 0
    assert "Hello [bold]Ada[/bold]\r\nred " in seen.raw
    assert "\x1b]0;" not in seen.raw


def test_a_structured_result_is_indented_and_shown_once(project: ProjectBuilder) -> None:
    project.tool("count", "echo '{\"words\": 3}'", outputSchema={"type": "object"})
    assert at_terminal(["run-tool", "count"], cwd=project.root).text.strip() == '{\n  "words": 3\n}'


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
    assert "\x1b[1;31mThe tool reports an error:" in seen.raw
    assert "because" in seen.text


def test_an_unknown_name_is_told_with_its_neighbour(greeter: ProjectBuilder) -> None:
    seen = at_terminal(["run-tool", "gret"], cwd=greeter.root)
    assert (seen.status, seen.text) == (1, "Tool 'gret' not found\nmcpgreen: info: Did you mean greet?\n")


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
        ("tags, numbers or names with commas []: ", "1, c\n"),
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
    assert "age=old: this is no integer." in seen.text
    assert "mail must be an email address, got ada" in seen.text


@pytest.mark.parametrize(("typed", "action"), [("!\n", "decline"), ("\x04", "cancel")])
def test_a_form_that_is_not_filled_in(project: ProjectBuilder, typed: str, action: str) -> None:
    project.python_tool("ask", IMPORT + FORM)
    seen = at_terminal(["run-tool", "ask"], cwd=project.root, answers=[("Your name: ", typed)])
    assert seen.text.splitlines()[-1].startswith(action)
    assert "Traceback" not in seen.text


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


def test_a_url_is_shown(project: ProjectBuilder) -> None:
    project.python_tool("ask", IMPORT + 'print(mcp_tool.elicit_url("Sign in", "https://example.com/in").action)')
    seen = at_terminal(["run-tool", "ask"], cwd=project.root, answers=[("no declines: ", "yes\n")])
    assert "https://example.com/in" in seen.text
    assert seen.text.splitlines()[-1] == "accept"


@pytest.mark.parametrize(("typed", "said"), [("Well, hello.\n", "Well, hello."), ("\n", "refused")])
def test_a_model_is_played_by_whoever_types(project: ProjectBuilder, typed: str, said: str) -> None:
    body = """
try:
    print(mcp_tool.sample("Say something", 100).text)
except mcp_tool.AskFailed:
    print("refused")
"""
    project.python_tool("ask", IMPORT + body)
    seen = at_terminal(["run-tool", "ask"], cwd=project.root, answers=[("Return alone refuses): ", typed)])
    assert "[user] Say something" in seen.text
    assert seen.text.splitlines()[-1] == said


def test_serve_quotes_what_to_try(tmp_path: Path) -> None:
    project = ProjectBuilder(tmp_path / "my project")
    seen = at_terminal(["serve"], cwd=project.root, width=200, answers=[("run-tool NAME", "\x04")])
    assert f"mcpgreen list --project-root '{project.root}'" in seen.text


def test_serve_says_what_it_serves_and_what_to_try(greeter: ProjectBuilder) -> None:
    seen = at_terminal(["serve"], cwd=greeter.root, width=200, answers=[("run-tool greet", "\x04")])
    assert seen.status == 0
    assert "1 tool, 0 resources, 0 templates, 0 prompts\n" in seen.text
    assert f"from {greeter.root}\n" in seen.text
    assert "waits for a client" in seen.text
