"""`list`, `run-tool`, `read`, `prompt` and `complete`, as scripts call them."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from mcpgreen.cli.trying.person import values_of
from mcpgreen.errors import UsageError
from tests.cli.test_commands import mcpgreen
from tests.support.project import ProjectBuilder

ECHO = 'cat "$MCP_TOOL_ARGS_FILE" 2>/dev/null || printf %s "$MCP_TOOL_ARGS_JSON"'


def command(project: ProjectBuilder, *arguments: str) -> subprocess.CompletedProcess[str]:
    return mcpgreen(*arguments, "--project-root", str(project.root))


# An object that may be null, with an object and an array of texts in it.
DEEP: dict[str, Any] = {"properties": {"b": {"properties": {"c": {"type": "integer"}}}, "d": {"type": "array"}}}
DEEP = {"anyOf": [DEEP, {"type": "null"}]}


@pytest.mark.parametrize(
    ("words", "schema", "values"),
    [
        (["a=1"], {"a": {"type": "string"}}, {"a": "1"}),
        (["a=1"], {}, {"a": "1"}),
        (["a=1"], {"a": {"type": "integer"}}, {"a": 1}),
        (["a=1.5"], {"a": {"type": "number"}}, {"a": 1.5}),
        (["a=yes"], {"a": {"type": "boolean"}}, {"a": True}),
        (["a=off"], {"a": {"type": "boolean"}}, {"a": False}),
        (["a=null"], {"a": {"type": ["integer", "null"]}}, {"a": None}),
        (["a=5"], {"a": {"type": ["string", "integer"]}}, {"a": 5}),
        (["a=x"], {"a": {"anyOf": [{"type": "integer"}, {"type": "string"}]}}, {"a": "x"}),
        (["a=1", "a=2"], {"a": {"type": "array", "items": {"type": "integer"}}}, {"a": [1, 2]}),
        (["a=[1, 2]"], {"a": {"type": "array", "items": {"type": "integer"}}}, {"a": [1, 2]}),
        (['a={"b": 1}'], {"a": {"type": "object"}}, {"a": {"b": 1}}),
        (["a:=[true]"], {}, {"a": [True]}),
        (["a=b=c"], {}, {"a": "b=c"}),
        (["a="], {}, {"a": ""}),
        (["a.b=1"], {}, {"a.b": "1"}),
        (["a.b=1"], {"a.b": {}}, {"a.b": "1"}),
        (["a.b=*.py", "a.n:=2"], {"a": {"type": "object"}}, {"a": {"b": "*.py", "n": 2}}),
        (["a.b.c=1", "a.d=x", "a.d=y"], {"a": DEEP}, {"a": {"b": {"c": 1}, "d": ["x", "y"]}}),
    ],
)
def test_words_become_values_by_the_schema(words: list[str], schema: dict[str, Any], values: dict[str, Any]) -> None:
    assert values_of(words, schema) == values


@pytest.mark.parametrize(
    ("word", "schema", "said"),
    [
        ("a", {}, "a: write key=value"),
        ("=a", {}, "=a: write key=value"),
        ("a=x", {"a": {"type": "integer"}}, "a=x: this is not a valid integer."),
        ("a=maybe", {"a": {"type": "boolean"}}, "a=maybe: this is not a valid boolean."),
        ("a:={", {}, "a:= is not valid JSON"),
        ("a.b=x", {"a": {"properties": {"b": {"type": "integer"}}}}, "a.b=x: this is not a valid integer."),
        ("a=@/does/not/exist", {}, "@/does/not/exist: No such file or directory."),
    ],
)
def test_words_that_make_no_sense(word: str, schema: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said.replace("(", r"\(")):
        values_of([word], schema)


def test_an_object_is_given_whole_or_by_its_members() -> None:
    with pytest.raises(UsageError, match="a already has a value; set its members or the whole value, not both"):
        values_of(["a:=5", "a.b=1"], {"a": {"type": "object"}})


def test_the_name_of_a_file_leads_to_its_tools(project: ProjectBuilder) -> None:
    project.write("tools/maths.py", "import mcp_tool\n@mcp_tool.tool\ndef sub(): 0\n@mcp_tool.tool\ndef add(): 0\n")

    assert "maths is a file that contains the tools add, sub." in command(project, "run-tool", "maths").stderr


def test_a_value_from_a_file(project: ProjectBuilder) -> None:
    path = project.write("text.txt", "two\nlines\n")
    assert values_of([f"a=@{path}"], {}) == {"a": "two\nlines\n"}


def test_arguments_of_a_tool_as_words(project: ProjectBuilder) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}, "who": {"type": "string"}}}
    project.tool("echo", ECHO, inputSchema=schema)
    done = command(project, "run-tool", "echo", "n=3", "who=7", "--args", '{"who": "x", "more": []}')
    text = json.loads(done.stdout)["content"][0]["text"]
    assert json.loads(text) == {"n": 3, "who": "7", "more": []}


def test_an_argument_of_a_tool_that_describes_none_is_told(project: ProjectBuilder) -> None:
    project.tool("usage", "echo $1")
    told = command(project, "run-tool", "usage", "folder=/home").stderr
    assert "usage has no argument folder; its description" in told and "it reads $1, but a tool gets no" in told


def test_check_makes_an_error_result_a_failure(project: ProjectBuilder) -> None:
    project.tool("sorry", """echo '{"content": [], "isError": true}'""")
    assert command(project, "run-tool", "sorry").returncode == 0
    assert command(project, "run-tool", "sorry", "--check").returncode == 1


def test_the_lists_as_json(project: ProjectBuilder) -> None:
    project.tool("greet", "echo hi", description="Greet")
    project.write("tools/half.py", "#!/usr/bin/env python3\n")
    project.write("tools/bad.sh", "#!/bin/sh\n").chmod(0o755)
    project.write("tools/bad.meta.json", "{")
    project.resource("a.txt", "A")
    project.prompt("p.txt", "Hello")
    listed = json.loads(command(project, "list", "--json").stdout)
    assert [tool["name"] for tool in listed["tools"]] == ["greet"]
    assert [each["name"] for each in listed["resources"]] == ["a"]
    assert (listed["resourceTemplates"], [each["name"] for each in listed["prompts"]]) == ([], ["p"])
    assert {(each["kind"], each["path"]) for each in listed["leftOut"]} == {
        ("tools", "tools/half.py"),
        ("tools", "tools/bad.meta.json"),
    }
    assert all(each["reason"] for each in listed["leftOut"])


def test_a_list_of_more_than_a_page(project: ProjectBuilder) -> None:
    for number in range(120):
        project.resource(f"r{number}.txt", "x")
    assert len(json.loads(command(project, "list", "--json").stdout)["resources"]) == 120


@pytest.mark.parametrize("arguments", [[], ["--json"], ["tools"]])
def test_what_is_left_out_is_told_once(project: ProjectBuilder, arguments: list[str]) -> None:
    """It stood in the table, and on stderr as a warning."""
    project.tool("greet", "echo hi", descripton="Greet")
    project.write("tools/bad.meta.json", "{")
    project.write("tools/bad.sh", "#!/bin/sh\n").chmod(0o755)
    done = command(project, "list", *arguments)

    assert (done.stdout.count("bad.meta.json"), done.stderr.count("bad.meta.json")) == (1, 0)
    assert done.stderr == "mcpgreen: warning: 1 problem in the project; run mcpgreen validate\n"  # of greet


@pytest.mark.parametrize(
    ("name", "own", "others"),
    [
        ("greet", "⚠ tools/greet.meta.json:1:", 3),
        ("lost", "✗ tools/lost.meta.json:1:", 3),
        ("lonely", "✗ tools/lonely.meta.json: there is no script with the same name", 3),
        ("half", "· tools/half.py: not a tool", 4),
        ("search", "", 4),
    ],
)
def test_run_tool_tells_what_is_wrong_with_its_tool(project: ProjectBuilder, name: str, own: str, others: int) -> None:
    """It told what was wrong with all of them."""
    for each in ("greet", "find"):
        project.tool(each, "echo hi", descripton="Greet")
    project.tool("search", "echo hi")
    for each in ("lost", "lonely"):
        project.write(f"tools/{each}.meta.json", "{" if each == "lost" else "{}")
    project.write("tools/lost.sh", "#!/bin/sh\n").chmod(0o755)
    project.write("tools/half.py", "#!/usr/bin/env python3\n")
    done = command(project, "run-tool", name)

    more = f"{others} problems in other files; run mcpgreen validate"
    assert done.stderr.count(".meta.json") + done.stderr.count("half.py") == bool(own)
    assert done.stderr.startswith(own or f"mcpgreen: warning: {more}")
    assert done.stderr.endswith(f"{more}\n")


def test_read_prints_the_bytes_as_they_are(project: ProjectBuilder) -> None:
    project.resource("a.txt", "Zoë\n\n")
    assert command(project, "read", "a").stdout == "Zoë\n\n"
    answer = json.loads(command(project, "read", "a", "--json").stdout)
    assert answer["contents"][0]["text"] == "Zoë\n\n"


def test_a_prompt_with_arguments(project: ProjectBuilder) -> None:
    project.prompt("p.txt", "Hello {{name}}", arguments=[{"name": "name", "required": True}])
    assert command(project, "prompt", "p", "name=Ada").stdout == "Hello Ada\n"
    assert json.loads(command(project, "prompt", "p", "name=Ada", "--json").stdout)["messages"][0]["role"] == "user"
    missing = command(project, "prompt", "p")
    assert (missing.returncode, missing.stdout) == (1, "")
    assert "there is no pp; did you mean p?" in command(project, "prompt", "pp").stderr


def test_completion(project: ProjectBuilder) -> None:
    project.prompt("p.txt", "{{name}}", arguments={"properties": {"name": {"enum": ["Ada", "Alan", "Bob"]}}})
    done = command(project, "complete", "prompt:p", "name", "A")
    assert (done.returncode, done.stdout.splitlines()) == (0, ["Ada", "Alan"])
    nothing = command(project, "complete", "prompt:p", "name", "x")
    assert (nothing.returncode, nothing.stdout, nothing.stderr) == (0, "", "(nothing)\n")
    assert command(project, "complete", "prompt:none", "name").returncode == 1


IMPORT = 'import os, sys\nsys.path.insert(0, os.environ["MCP_SDK"])\nimport mcp_tool\n'
FORM = """
answer = mcp_tool.elicit("Who are you?", {"type": "object", "properties": {
    "name": {"type": "string"}, "age": {"type": "integer"}, "fine": {"type": "boolean", "default": True}},
    "required": ["name"]})
print(answer.action, answer.content)
"""


def test_a_script_that_asks_is_answered_by_the_command_line(project: ProjectBuilder) -> None:
    project.python_tool("ask", IMPORT + FORM)
    done = command(project, "run-tool", "ask", "--answer", "name=Ada", "--answer", "age=36")
    text = json.loads(done.stdout)["content"][0]["text"]
    assert text.strip() == "accept {'name': 'Ada', 'age': 36, 'fine': True}"


def test_an_answer_that_is_missing_is_named(project: ProjectBuilder) -> None:
    project.python_tool("ask", IMPORT + FORM)
    done = command(project, "run-tool", "ask", "--answer", "age=36")
    assert "--answer name=VALUE" in done.stderr
    assert json.loads(done.stdout)["content"][0]["text"].startswith("cancel")


def test_an_answer_for_a_model(project: ProjectBuilder) -> None:
    project.python_tool("ask", IMPORT + 'print(mcp_tool.sample("Say something", 100).text)')
    done = command(project, "run-tool", "ask", "--answer", "sampling=Well, hello.")
    assert json.loads(done.stdout)["content"][0]["text"].strip() == "Well, hello."
