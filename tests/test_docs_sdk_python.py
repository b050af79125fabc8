"""docs/sdk-python.md: it names everything that the SDK exports, as it is, and every piece of code on it is run."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.asking import Say, Talk, answered, talk, unanswered
from tests.support.client import Client
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually
from tests.support.wire import text_of
from tests.test_docs_examples import CHECKOUT, Walk, blocks_of

SDK = CHECKOUT / "mcpgreen" / "sdk"
PAGE = CHECKOUT / "docs" / "sdk-python.md"
TEXT = PAGE.read_text(encoding="utf-8")
HEADING = re.compile(r"\*\*`(\w+)(?:\((.*?)\)(?: -> [^`]+)?)?`\*\*")
BLOCKS = blocks_of(PAGE)
GREET, DESK, DESCRIPTION, EXAMPLE = BLOCKS[:4]
[CLEANING_UP] = [block for block in BLOCKS if "signal.signal" in block.text]
HEAD = "import os, sys\nsys.path.insert(0, os.environ['MCP_SDK'])\nimport mcp_tool\n"
ANSWERS = {
    "question": {"action": "accept", "content": {"name": "Ada", "confirmed": True}},
    "name": {"action": "accept", "content": {"name": "Ada"}},
    "joke": {"role": "assistant", "content": {"type": "text", "text": "Ha."}, "model": "m"},
}


class Snippet(NamedTuple):
    """A piece that stands for itself: how to know it, what comes before and after it, and what is printed then."""

    mark: str
    before: str
    after: str
    printed: str


SNIPPETS = [
    Snippet("os.path.isfile", "path = 'gone'", "", "No file gone\\nHint: Call list-files first"),
    Snippet("image_block", "open('chart.png', 'wb').write(b'png')", "", '"structuredContent":{"rows":5}'),
    Snippet("convert-all", "os.environ['PATH'], folder = os.getcwd(), 'x'", "", '"message":"bad x\\n"'),
    Snippet(
        "CommandLine",
        "os.environ['PATH'] = f'{os.getcwd()}:{os.environ[\"PATH\"]}'\nos.environ['MCP_TOOL_ARGS_JSON'] = "
        '\'{"all": true, "label": ["a", "b"], "pattern": "-x", "file": ["f"]}\'',
        "",
        '"text":"seek --plain --all -l a -l b -- -x f\\n"',
    ),
    Snippet("remove_rows", "def remove_rows(): print('removed')", "", "removed"),
    Snippet("is_accepted", "greet = print", "", "Ada"),
    Snippet("mcp_tool.ask(", "", "print(name.content, joke['model'])", "{'name': 'Ada'} m"),
    Snippet("input_responses", "", "", '"resultType":"input_required"'),
]


def block_with(mark: str) -> str:
    [text] = [block.text for block in BLOCKS[4:] if mark in block.text]
    return text


def test_every_piece_of_code_is_run() -> None:
    run = [GREET.text, DESK.text, DESCRIPTION.text, EXAMPLE.text, CLEANING_UP.text]
    run += [block_with(snippet.mark) for snippet in SNIPPETS]

    assert {block.text for block in BLOCKS} == set(run)


@pytest.mark.parametrize("snippet", SNIPPETS, ids=lambda snippet: snippet.mark)
def test_a_piece_of_code_does_what_the_page_says(tmp_path: Path, snippet: Snippet) -> None:
    (tmp_path / "convert-all").write_text('#!/bin/sh\necho 50% >&2\necho "bad $1" >&2\nexit 3\n', encoding="utf-8")
    (tmp_path / "convert-all").chmod(0o755)
    (tmp_path / "seek").write_text('#!/bin/sh\necho "seek $*"\n', encoding="utf-8")
    (tmp_path / "seek").chmod(0o755)
    script = f"{HEAD}{snippet.before}\n{block_with(snippet.mark)}\n{snippet.after}\n"
    (tmp_path / "tool.py").write_text(script, encoding="utf-8")
    command = [sys.executable, "-B", str(tmp_path / "tool.py")]
    ended = talk(command, answered(**ANSWERS), env={"MCP_SDK": str(SDK)}, cwd=tmp_path)

    assert ended.exit_code == 0, ended.stderr
    assert snippet.printed in ended.stdout


def test_the_first_example_runs_at_the_desk(tmp_path: Path) -> None:
    reader = Walk(tmp_path, [])
    ProjectBuilder(tmp_path).tool("greet.py", GREET.text)
    reader.take(DESK)
    printed = reader.printed[DESK.line]

    assert (printed.status, printed.stderr) == (0, "")
    assert json.loads(printed.stdout)["structuredContent"]["result"] == {"greeting": "Hello Ada"}


def test_the_description_guards_the_first_example(project: ProjectBuilder, speak: Callable[..., Client]) -> None:
    project.tool("greet.py", GREET.text)
    project.write(DESCRIPTION.info, DESCRIPTION.text)
    client = speak()

    assert client.call_tool("greet", {"name": "Ada"})["structuredContent"]["result"] == {"greeting": "Hello Ada"}
    for arguments in ({}, {"name": 5}):
        refused = client.call_tool("greet", arguments)
        assert refused["isError"] and text_of(refused).startswith("Invalid arguments for tool 'greet'")


def test_a_cancelled_script_cleans_up(project: ProjectBuilder, speak: Callable[..., Client]) -> None:
    work = "def work_on(row, folder):\n    open('place', 'w').write(folder)\n    signal.pause()\n"
    project.python_tool("slow", f"{HEAD}{work}rows = [1]\n{CLEANING_UP.text}")
    client = speak()
    id = client.start_tool("slow")
    place = eventually(lambda: (project.root / "place").exists() and project.read("place"))
    assert os.path.isdir(place)
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
    done = subprocess.run(
        [sys.executable, "-B", "-c", script],
        env={"PYTHONPATH": str(SDK)},
        capture_output=True,
        check=True,
        timeout=120,
    )
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


def test_the_page_has_a_heading_for_every_exported_name_and_no_other(exported: dict[str, Any]) -> None:
    named = [found[1] for found in HEADING.finditer(TEXT)]

    assert sorted(named) == sorted(exported)


def test_the_page_shows_the_parameters_that_there_are(exported: dict[str, Any]) -> None:
    shown = {found[1]: parameters(found[2]) for found in HEADING.finditer(TEXT) if found[2] is not None}

    assert shown == {name: names for name, names in exported.items() if names is not None}


def test_the_python_on_the_page_is_python() -> None:
    for block in BLOCKS:
        if block.language == "python":
            ast.parse(block.text, feature_version=(3, 10))


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
    script.write_text(EXAMPLE.text, encoding="utf-8")
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
    assert clean_up(folder, answered(question={"action": action})).stdout == "Nothing was removed, as you wish."
    assert len(os.listdir(folder)) == 3


def test_the_complete_example_copes_without_an_answer(folder: Path) -> None:
    result = json.loads(clean_up(folder, unanswered("timeout")).stdout)

    assert result["isError"]
    assert result["content"][0]["text"].endswith("nobody could be asked: Nobody answered in time.")


def test_the_complete_example_runs_in_the_server(
    project: ProjectBuilder, folder: Path, speak: Callable[..., Client]
) -> None:
    """This client cannot be asked, so nothing is removed."""
    project.tool("clean-up.py", EXAMPLE.text)
    client = speak()

    assert "nobody could be asked" in text_of(client.call_tool("clean-up", {"folder": "folder"}))
    assert text_of(client.call_tool("clean-up", {"folder": "gone"})).startswith("There is no such folder.\nHint: ")
    assert client.call_tool("clean-up", {"folder": "tools"})["structuredContent"] == {"removed": [], "kept": []}
    assert client.error("tools/call", {"name": "clean-up", "arguments": {"folder": "/"}})["code"] == -32602
    assert len(os.listdir(folder)) == 3
