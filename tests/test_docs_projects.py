"""What docs/projects.md and docs/sharing.md show is done, as `test_docs_examples` does it for docs/tools.md.

A text block after commands is what they print; `…` stands for anything on a line.
"""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

from tests.test_docs_examples import CHECKOUT, Block, Walked, at_line, blocks_of, conversation_with, walked_once

PAGES = {name: blocks_of(CHECKOUT / "docs" / name) for name in ("projects.md", "sharing.md")}
STEPS = [
    (name, block, following if following and (following.language, following.info) == ("text", "") else None)
    for name, blocks in PAGES.items()
    for block, following in pairwise([*blocks, None])
    if block and (block.language, block.info) == ("bash", "")
]
CONVERSATIONS = [(name, block) for name, blocks in PAGES.items() for block in blocks if block.info == "wire"]


@pytest.fixture(scope="module")
def walks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Walked]:
    return {name: walked_once(tmp_path_factory, name, blocks) for name, blocks in PAGES.items()}


def pattern_of(shown: Block) -> str:
    return ".*".join(map(re.escape, shown.text.split("…")))


@pytest.mark.parametrize(
    ("page", "commands", "shown"), STEPS, ids=lambda value: at_line(value) if isinstance(value, Block) else None
)
def test_a_command_on_the_page_prints_what_the_page_says(
    walks: dict[str, Walked], page: str, commands: Block, shown: Block | None
) -> None:
    printed = walks[page].printed[commands.line]

    assert (printed.status, printed.stderr) == (0, "")
    if shown:
        assert re.fullmatch(pattern_of(shown), printed.stdout), printed.stdout


@pytest.mark.parametrize(("page", "conversation"), CONVERSATIONS)
def test_a_conversation_on_the_page_takes_place(walks: dict[str, Walked], page: str, conversation: Block) -> None:
    for said, heard in conversation_with(walks[page].place, conversation):
        assert heard == said
