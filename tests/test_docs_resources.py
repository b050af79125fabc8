"""docs/resources.md tells the truth: its project is built, and its conversations take place, from top to bottom.

Its fenced blocks are taken as on docs/tools.md, but each conversation is held at its place on the page, with a server
of its own: the project grows from one to the next.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

import pytest

from tests.support.wire import Wire
from tests.test_docs_examples import CHECKOUT, Block, Walk, at_line, blocks_of

PAGE = CHECKOUT / "docs" / "resources.md"
PLACE_ON_THE_PAGE = "/home/me/my-server"
BLOCKS = blocks_of(PAGE)
CONVERSATIONS = [block for block in BLOCKS if block.info == "wire"]
COMMANDS = [block for block in BLOCKS if (block.language, block.info) == ("bash", "")]


class Heard(NamedTuple):
    answers: list[Any]
    stderr: str


@pytest.fixture(scope="module")
def heard(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Heard]:
    """What the server said in each conversation, by its line."""
    walk = Walk(tmp_path_factory.mktemp("reader"), BLOCKS)
    found: dict[int, Heard] = {}
    for block in BLOCKS:
        walk.take(block)
        if block.info == "wire":
            found[block.line] = conversation(block, walk)
    assert [walk.printed[block.line] for block in COMMANDS] == [(0, "", "")] * len(COMMANDS)
    return found


def conversation(block: Block, walk: Walk) -> Heard:
    answers = []
    with Wire(walk.place, env={"MCPGREEN_STDERR_LEVEL": "error"}) as server:  # some requests are to be refused
        server.handshake()
        for line in block.text.splitlines():
            if line.startswith("-->"):
                server.send(message_in(line.replace(PLACE_ON_THE_PAGE, str(walk.place))))
            else:
                said = json.dumps(server.receive(lambda _: True)).replace(str(walk.place), PLACE_ON_THE_PAGE)
                answers.append(json.loads(said))
        server.stop()
        return Heard(answers, server.stderr)


def message_in(line: str) -> Any:
    return {"jsonrpc": "2.0", **json.loads(line[3:])}


@pytest.mark.parametrize("block", CONVERSATIONS, ids=at_line)
def test_a_conversation_on_the_page_takes_place(heard: dict[int, Heard], block: Block) -> None:
    expected = [message_in(line) for line in block.text.splitlines() if line.startswith("<--")]

    assert heard[block.line] == (expected, "")


def test_every_description_and_provider_of_the_page_is_used() -> None:
    said = "".join(block.text for block in CONVERSATIONS)
    files = [block.info for block in BLOCKS if "/" in block.info]
    schemes = [re.split(r"[/.]", name)[1] for name in files if name.startswith("providers/")]

    assert len(files) == 6
    assert [scheme for scheme in schemes if f'"{scheme}://' not in said] == []


def test_every_variable_of_a_provider_that_the_page_names_exists() -> None:
    named = set(re.findall(r"MCP_RESOURCE_[A-Z_]*[A-Z]", PAGE.read_text(encoding="utf-8")))
    source = (CHECKOUT / "mcpgreen" / "features" / "resources.py").read_text(encoding="utf-8")

    assert [name for name in named if name not in source] == []
