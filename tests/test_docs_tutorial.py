"""docs/tutorial.md tells the truth: every step is done as a reader would, at a terminal, and shows what the page shows.

Blocks are taken in order:

* a block with a file name is written, in the place that the step before has led to; below `shop/` in its own;
* a bash block is run at a terminal, and the `text` block behind it is what it prints, `…` standing for a path;
* a `text part` block stands somewhere in what was printed;
* a `text wire` block is a conversation with a server on what there is by then.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.questions import ALL
from tests.support.terminal import at_terminal
from tests.support.wire import Wire, command_of_tests
from tests.test_docs_examples import CHECKOUT, Block, blocks_of

PAGE = CHECKOUT / "docs" / "tutorial.md"
TEXT = PAGE.read_text(encoding="utf-8")
WIDTH = 120
QUESTIONS = ("Title [", "What is it for [")  # the reader presses Return


class Reader:
    """Somebody who does what the page says, and remembers what was printed."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.place = home
        self.printed = ""
        programs = home / "bin"
        programs.mkdir()
        (programs / "mcpgreen").symlink_to(command_of_tests())
        (programs / "python3").symlink_to(sys.executable)

    def write(self, block: Block) -> None:
        target = (self.home if block.info.startswith("shop/") else self.place) / block.info
        target.write_text(block.text, encoding="utf-8")
        target.chmod(0o644)  # whatever the umask: the page says who gets the executable bit

    def run(self, block: Block) -> None:
        told = self.home / "place"
        script = f'set -euo pipefail\numask 022\n{block.text}\npwd > "{told}"\n'
        environment = {
            "PATH": f"{self.home / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(self.home),
            "MCPGREEN_PYTHON": sys.executable,
            "NO_COLOR": "1",
        }
        answers = [(question, "\n") for question in QUESTIONS] if "mcpgreen new" in block.text else []
        seen = at_terminal(
            ["-c", script], cwd=self.place, width=WIDTH, env=environment, answers=answers, program=["bash"]
        )
        assert seen.status == 0, f"line {block.line}: {seen.text}"
        self.printed = seen.text
        self.place = Path(told.read_text(encoding="utf-8").strip())

    def converse(self, block: Block) -> None:
        with Wire(self.place) as server:
            server.handshake(capabilities=ALL)
            for line in block.text.splitlines():
                arrow, message = line[:3], {"jsonrpc": "2.0", **json.loads(line[3:])}
                if arrow == "-->":
                    server.send(message)
                else:
                    assert (arrow, server.receive(lambda _: True)) == ("<--", message), f"line {block.line}"


def same(shown: str, printed: str) -> bool:
    pattern = re.escape(shown.strip()).replace("…", r"\S*")
    return re.fullmatch(pattern, "\n".join(line.rstrip() for line in printed.strip().splitlines())) is not None


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Reader:
    reader = Reader(tmp_path_factory.mktemp("reader"))
    for block in blocks_of(PAGE):
        if "/" in block.info:
            reader.write(block)
        elif block.language == "bash":
            reader.run(block)
        elif block.info == "wire":
            reader.converse(block)
        elif block.info == "part":
            assert block.text.strip() in reader.printed, f"line {block.line}: {reader.printed}"
        else:
            assert same(block.text, reader.printed), f"line {block.line}: {reader.printed}"
    return reader


def test_every_step_does_what_the_page_says(reader: Reader) -> None:
    assert reader.place == reader.home / "shop" / "helper"


@pytest.mark.parametrize("info", [block.info for block in blocks_of(PAGE) if "/" in block.info])
def test_the_text_says_into_which_file_a_block_goes(info: str) -> None:
    """Where Markdown is shown, nobody sees what stands beside the language of a block, and readers had to guess."""
    step = TEXT.partition(f" {info}\n")[0].rpartition("\n## ")[2]
    assert f"`{info.removeprefix('shop/')}`" in step


def test_there_are_ten_steps() -> None:
    assert re.findall(r"^## (\d+)\.", TEXT, re.MULTILINE) == [str(number) for number in range(1, 11)]


def test_at_the_end_the_client_starts_the_server_with_all_that_was_built(reader: Reader) -> None:
    entry: dict[str, Any] = json.loads((reader.home / ".cursor" / "mcp.json").read_text(encoding="utf-8"))
    (server,) = entry["mcpServers"].values()
    with Wire(reader.place) as wire:
        wire.handshake()
        tools = [tool["name"] for tool in wire.result("tools/list")["tools"]]
        prompts = [prompt["name"] for prompt in wire.result("prompts/list")["prompts"]]
        templates = wire.result("resources/templates/list")["resourceTemplates"]

    assert str(reader.place) in server["args"]
    assert tools == ["clear-log", "last-lines", "run-tests", "search-log"]
    assert prompts == ["review"]
    assert [template["uriTemplate"] for template in templates] == ["repo://{+path}"]
