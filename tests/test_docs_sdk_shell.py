"""docs/sdk-shell.md: every piece of code on the page is run. That it names every function, and its whole example, are
tested in tests/sdk/test_shell_sdk.py."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.asking import answered, talk
from tests.support.client import Client
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually
from tests.support.wire import text_of
from tests.test_docs_examples import CHECKOUT, Walk, blocks_of

SDK = CHECKOUT / "mcpgreen" / "sdk"
PAGE = CHECKOUT / "docs" / "sdk-shell.md"
BLOCKS = blocks_of(PAGE)
GREET, DESK, DESCRIPTION, WHOLE_EXAMPLE = BLOCKS[:4]
[CLEANING_UP] = [block for block in BLOCKS if block.text.startswith("trap ")]
ANSWERS = {
    "question": {"role": "assistant", "content": {"type": "text", "text": "Brief."}, "model": "m"},
    "name": {"action": "accept", "content": {"name": "Ada"}},
    "roots": {"roots": []},
}


class Snippet(NamedTuple):
    """A piece that stands for itself: how to know it, what comes before and after it, and what is printed then."""

    mark: str
    before: str
    after: str
    printed: Any


SNIPPETS = [
    Snippet("[[ -r $file", "file=gone", "", {"type": "not_found", "message": "No file gone"}),
    Snippet("plot-sales", "plot-sales() { printf png; }", "", "Sales by month"),
    Snippet("convert-all", "convert-all() { echo 50% >&2; }; folder=x", "echo $status", 0),
    Snippet("convert-all", "convert-all() { echo bad >&2; return 3; }; folder=x", "", {"message": "bad"}),
    Snippet("mcp_sample", "text=long", 'mcp_json_escape "$summary"', "Brief."),
    Snippet("mcp_ask", "", 'echo "$answers"', {key: ANSWERS[key] for key in ("name", "roots")}),
    Snippet("mcp_config_load", "", 'mcp_json_escape "$units"', "metric"),
]


def block_with(mark: str) -> str:
    [text] = [block.text for block in BLOCKS[4:] if mark in block.text]
    return text


def test_every_piece_of_code_is_run() -> None:
    run = [GREET.text, DESK.text, DESCRIPTION.text, WHOLE_EXAMPLE.text, CLEANING_UP.text]
    run += [block_with(snippet.mark) for snippet in SNIPPETS]

    assert {block.text for block in BLOCKS} == set(run)


@pytest.mark.parametrize("snippet", SNIPPETS, ids=lambda snippet: f"{snippet.mark}-{snippet.after}")
def test_a_piece_of_code_does_what_the_page_says(tmp_path: Path, snippet: Snippet) -> None:
    script = f'source "$MCP_SDK/tool-sdk.sh"\n{snippet.before}\n{block_with(snippet.mark)}\n{snippet.after}\n'
    (tmp_path / "tool.sh").write_text(script, encoding="utf-8")
    env = {"MCP_SDK": str(SDK), "MCPBASH_JSON_TOOL_BIN": shutil.which("jq") or str(SDK / "json-tool")}
    ended = talk(["bash", str(tmp_path / "tool.sh")], answered(**ANSWERS), env=env, cwd=tmp_path)
    printed = json.loads(ended.stdout)

    assert ended.exit_code == 0, ended.stderr
    if isinstance(snippet.printed, dict) and "message" in snippet.printed:
        assert snippet.printed.items() <= printed["structuredContent"]["error"].items()
    elif isinstance(printed, dict) and "content" in printed:
        assert printed["content"][0]["text"] == snippet.printed
    else:
        assert printed == snippet.printed


def test_the_first_example_runs_at_the_desk(tmp_path: Path) -> None:
    reader = Walk(tmp_path, [])
    project = ProjectBuilder(tmp_path)
    project.tool("greet.sh", GREET.text)
    reader.take(DESK)
    printed = reader.printed[DESK.line]

    assert (printed.status, printed.stderr) == (0, "")
    assert json.loads(printed.stdout)["structuredContent"]["result"] == {"greeting": "Hello Ada"}


def test_the_description_guards_the_first_example(project: ProjectBuilder, speak: Callable[..., Client]) -> None:
    project.tool("greet.sh", GREET.text)
    project.write(DESCRIPTION.info, DESCRIPTION.text)
    client = speak()

    assert client.call_tool("greet", {"name": "Ada"})["structuredContent"]["result"] == {"greeting": "Hello Ada"}
    assert client.tools()["greet"]["description"] == "Greet somebody"
    for arguments in ({}, {"name": 5}):
        refused = client.call_tool("greet", arguments)
        assert refused["isError"] and text_of(refused).startswith("Invalid arguments for tool 'greet'")


def test_a_cancelled_script_cleans_up(project: ProjectBuilder, speak: Callable[..., Client]) -> None:
    project.tool("slow", f'source "$MCP_SDK/tool-sdk.sh"\nwork_on() {{ sleep 600; }}\n{CLEANING_UP.text}')
    client = speak()
    id = client.start_tool("slow")
    eventually(lambda: (project.root / "part.txt").exists())
    client.wire.notify("notifications/cancelled", {"requestId": id})

    eventually(lambda: not (project.root / "part.txt").exists())
