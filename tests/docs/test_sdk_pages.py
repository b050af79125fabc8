"""docs/sdk-python.md and docs/sdk-shell.md: their first tools are served, and every piece of code on them is run.

A piece that stands for itself is found by a mark in it. Some need a line before, or one that prints something.
"""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.docs.reader import CHECKOUT, DOCS, Reader, blocks_of
from tests.support.asking import Say, Talk, answered, talk, unanswered
from tests.support.client import Speak
from tests.support.programs import completed
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually
from tests.support.wire import text_of

SDK = CHECKOUT / "mcpgreen" / "sdk"
PYTHON, SHELL = "sdk-python.md", "sdk-shell.md"
BLOCKS = {page: blocks_of(DOCS / page) for page in (PYTHON, SHELL)}
HEAD = {
    PYTHON: "import os, sys\nsys.path.insert(0, os.environ['MCP_SDK'])\nimport mcp_tool\n",
    SHELL: 'source "$MCP_SDK/tool-sdk.sh"\n',
}
ANSWERS = {
    PYTHON: {
        "question": {"action": "accept", "content": {"name": "Ada", "confirmed": True}},
        "name": {"action": "accept", "content": {"name": "Ada"}},
        "joke": {"role": "assistant", "content": {"type": "text", "text": "Ha."}, "model": "m"},
    },
    SHELL: {
        "question": {"role": "assistant", "content": {"type": "text", "text": "Brief."}, "model": "m"},
        "name": {"action": "accept", "content": {"name": "Ada"}},
        "roots": {"roots": []},
    },
}
HEADING = re.compile(r"\*\*`(\w+)(?:\((.*?)\)(?: -> [^`]+)?)?`\*\*")
PROGRAMS = {
    "convert-all": 'echo 50% >&2; echo "bad $1" >&2; exit 3',
    "seek": 'echo "seek $*"',
    "plot-sales": "printf png",
}


class Snippet(NamedTuple):
    """A piece that stands for itself: how to know it, what comes before and after it, and what is printed then."""

    page: str
    mark: str
    before: str
    after: str
    printed: str


SNIPPETS = [
    Snippet(PYTHON, "os.path.isfile", "path = 'gone'", "", "No file gone\\nHint: Call list-files first"),
    Snippet(PYTHON, "image_block", "open('chart.png', 'wb').write(b'png')", "", '"structuredContent":{"rows":5}'),
    Snippet(PYTHON, "convert-all", "folder = 'x'", "", '"message":"bad x\\n"'),
    Snippet(
        PYTHON,
        "CommandLine",
        'os.environ[\'MCP_TOOL_ARGS_JSON\'] = \'{"all": true, "label": ["a", "b"], "pattern": "-x", "file": ["f"]}\'',
        "",
        '"text":"seek --plain --all -l a -l b -- -x f\\n"',
    ),
    Snippet(PYTHON, "remove_rows", "def remove_rows(): print('removed')", "", "removed"),
    Snippet(PYTHON, "is_accepted", "greet = print", "", "Ada"),
    Snippet(PYTHON, "mcp_tool.ask(", "", "print(name.content, joke['model'])", "{'name': 'Ada'} m"),
    Snippet(PYTHON, "testing.answers", "", "test_the_user_is_asked(); print('passed')", "passed"),
    Snippet(PYTHON, "input_responses", "", "", '"resultType":"input_required"'),
    Snippet(SHELL, "[[ -r $file", "file=gone", "", '"message":"No file gone"'),
    Snippet(SHELL, "plot-sales", "", "", '"Sales by month"'),
    Snippet(SHELL, "convert-all", "convert-all() { echo 50% >&2; }; folder=x", "echo status $status", "status 0"),
    Snippet(SHELL, "convert-all", "folder=x", "", '"message":"bad x"'),
    Snippet(SHELL, "mcp_sample", "text=long", 'echo "$summary"', "Brief."),
    Snippet(SHELL, "mcp_ask", "", 'echo "$answers"', '"roots":{"roots":[]}'),
    Snippet(SHELL, "mcp_config_load", "", 'echo "$units"', "metric"),
]


def block_with(page: str, mark: str) -> str:
    """The shortest block with this mark: whole tools may have it, too."""
    return min((block.text for block in BLOCKS[page] if mark in block.text), key=len)


GREET = {PYTHON: block_with(PYTHON, "Hello"), SHELL: block_with(SHELL, "Hello")}
EXAMPLE = next(block.text for block in BLOCKS[PYTHON] if block.info == "tools/clean-up.py")
CLEANING_UP = {PYTHON: block_with(PYTHON, "signal.signal"), SHELL: block_with(SHELL, "trap ")}
WHOLE_EXAMPLE = block_with(SHELL, "mcp_elicit")  # is run by tests/sdk/test_shell_sdk.py
each_page = pytest.mark.parametrize("page", BLOCKS)


@each_page
def test_every_piece_of_code_is_run(page: str) -> None:
    run = {GREET[page], CLEANING_UP[page], EXAMPLE, WHOLE_EXAMPLE}
    run |= {block_with(page, snippet.mark) for snippet in SNIPPETS if snippet.page == page}
    left = [block for block in BLOCKS[page] if block.text not in run]

    assert [block for block in left if block.info != "tools/greet.meta.json" and "tools/greet" not in block.text] == []


@pytest.mark.parametrize("snippet", SNIPPETS, ids=lambda snippet: f"{snippet.page}-{snippet.mark}-{snippet.after}")
def test_a_piece_of_code_does_what_the_page_says(tmp_path: Path, snippet: Snippet) -> None:
    for name, body in PROGRAMS.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "tool").write_text(
        f"{HEAD[snippet.page]}{snippet.before}\n{block_with(snippet.page, snippet.mark)}\n{snippet.after}\n",
        encoding="utf-8",
    )
    env = {
        "MCP_SDK": str(SDK),
        "MCPBASH_JSON_TOOL_BIN": shutil.which("jq") or str(SDK / "json-tool"),
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
    }
    command = [sys.executable, "-B"] if snippet.page == PYTHON else ["bash"]
    ended = talk([*command, str(tmp_path / "tool")], answered(**ANSWERS[snippet.page]), env=env, cwd=tmp_path)

    assert ended.exit_code == 0, ended.stderr
    assert snippet.printed in ended.stdout


@each_page
def test_the_first_example_can_be_run_without_a_server(page: str, tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    ProjectBuilder(tmp_path).tool("greet.py" if page == PYTHON else "greet.sh", GREET[page])
    (commands,) = (block for block in BLOCKS[page] if block.language == "bash" and "export " in block.text)
    reader.take(commands)

    assert '"greeting":"Hello Ada"' in reader.printed


@each_page
def test_the_description_guards_the_first_example(page: str, project: ProjectBuilder, speak: Speak) -> None:
    project.tool("greet.py" if page == PYTHON else "greet.sh", GREET[page])
    (description,) = (block for block in BLOCKS[page] if block.info == "tools/greet.meta.json")
    project.write(description.info, description.text)
    client = speak()

    assert client.call_tool("greet", {"name": "Ada"})["structuredContent"]["result"] == {"greeting": "Hello Ada"}
    for arguments in ({}, {"name": 5}):
        refused = client.call_tool("greet", arguments)
        assert refused["isError"] and text_of(refused).startswith("Invalid arguments for tool 'greet'")


@each_page
def test_a_cancelled_script_cleans_up(page: str, project: ProjectBuilder, speak: Speak) -> None:
    if page == PYTHON:
        work = "def work_on(row, folder):\n    open('place', 'w').write(folder)\n    signal.pause()\nrows = [1]\n"
        project.python_tool("slow", f"{HEAD[page]}{work}{CLEANING_UP[page]}")
    else:
        work = 'work_on() { printf "$PWD/part.txt" >place; sleep 600; }\n'
        project.tool("slow", f"{HEAD[page]}{work}{CLEANING_UP[page]}")
    client = speak()
    id = client.start_tool("slow")
    place = eventually(lambda: (project.root / "place").exists() and project.read("place"))
    eventually(lambda: os.path.exists(place))
    client.wire.notify("notifications/cancelled", {"requestId": id})

    eventually(lambda: not os.path.exists(place))


@pytest.fixture(scope="module")
def exported() -> dict[str, Any]:
    """Each name that the SDK exports, with the names of its parameters; None for what is not called."""
    script = """
import inspect, json, mcp_tool
def shown(value):
    if not inspect.isfunction(value): return None
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    return [stars.get(p.kind, "") + p.name for p in inspect.signature(value).parameters.values()]
print(json.dumps({name: shown(getattr(mcp_tool, name)) for name in mcp_tool.__all__}))"""
    done = completed([sys.executable, "-B", "-c", script], env={"PYTHONPATH": str(SDK)}, check=True)
    names: dict[str, Any] = json.loads(done.stdout)
    return names


def parameters(signature: str) -> list[str]:
    """The names in a signature as the page writes it: `…` is some default, a lone star separates."""
    function = ast.parse(f"def f({signature.replace('…', '...')}): pass").body[0]
    assert isinstance(function, ast.FunctionDef)
    given = function.args
    names = [each.arg for each in given.args]
    names += [f"*{given.vararg.arg}"] if given.vararg else []
    names += [each.arg for each in given.kwonlyargs]
    return names + ([f"**{given.kwarg.arg}"] if given.kwarg else [])


def headings() -> list[re.Match[str]]:
    return list(HEADING.finditer((DOCS / PYTHON).read_text(encoding="utf-8")))


def test_the_page_has_a_heading_for_every_exported_name_and_no_other(exported: dict[str, Any]) -> None:
    named = [found[1] for found in headings()]

    assert sorted(named) == sorted(exported)


def test_the_page_shows_the_parameters_that_there_are(exported: dict[str, Any]) -> None:
    shown = {found[1]: parameters(found[2]) for found in headings() if found[2] is not None}

    assert shown == {name: names for name, names in exported.items() if names is not None}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three files, of which two are old."""
    folder = tmp_path / "project" / "folder"
    folder.mkdir(parents=True)
    for name, time in (("a.log", 1), ("b.log", 1), ("new.log", None)):
        (folder / name).touch()
        if time:
            os.utime(folder / name, (time, time))
    return folder


def clean_up(folder: Path, say: Say) -> Talk:
    script = folder.parent / "clean-up.py"
    script.write_text(EXAMPLE, encoding="utf-8")
    env = {"PYTHONPATH": str(SDK), "MCP_TOOL_ARGS_JSON": json.dumps({"folder": str(folder)})}
    return talk([sys.executable, "-B", str(script)], say, env=env, cwd=folder.parent)


def test_the_complete_example_does_what_it_is_told(folder: Path) -> None:
    ended = clean_up(folder, answered(question={"action": "accept", "content": {"choices": ["a.log"]}}))

    assert json.loads(ended.stdout) == {"removed": ["a.log"], "kept": ["b.log"]}
    assert sorted(os.listdir(folder)) == ["b.log", "new.log"]
    assert ended.params == [
        {"progress": 100, "total": 100, "message": "removed a.log"},
        {"level": "info", "logger": "clean-up", "data": {"removed": 1}},
    ]


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_the_complete_example_takes_no_for_an_answer(folder: Path, action: str) -> None:
    assert clean_up(folder, answered(question={"action": action})).stdout == "Nothing was removed, as you asked."
    assert len(os.listdir(folder)) == 3


def test_the_complete_example_copes_without_an_answer(folder: Path) -> None:
    result = json.loads(clean_up(folder, unanswered("timeout")).stdout)

    assert result["isError"]
    assert result["content"][0]["text"].endswith("no one could be asked: There was no answer in time.")


def test_the_complete_example_runs_in_the_server(project: ProjectBuilder, folder: Path, speak: Speak) -> None:
    """This client cannot be asked, so nothing is removed."""
    project.tool("clean-up.py", EXAMPLE)
    client = speak()

    assert "no one could be asked" in text_of(client.call_tool("clean-up", {"folder": "folder"}))
    assert text_of(client.call_tool("clean-up", {"folder": "gone"})).startswith("There is no such folder.\nHint: ")
    assert client.call_tool("clean-up", {"folder": "tools"})["structuredContent"] == {"removed": [], "kept": []}
    assert client.error("tools/call", {"name": "clean-up", "arguments": {"folder": "/"}})["code"] == -32602
    assert len(os.listdir(folder)) == 3
