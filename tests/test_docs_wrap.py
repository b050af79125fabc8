"""What docs/wrap.md shows is built and run. A `text` block is what the commands before it print."""

from __future__ import annotations

import pytest

from tests.support.prerequisites import require_program
from tests.test_docs_examples import CHECKOUT, Block, Walk, blocks_of, values_in

BLOCKS = blocks_of(CHECKOUT / "docs" / "wrap.md")
STEPS = [
    (block, following)
    for block, following in zip(BLOCKS, [*BLOCKS[1:], None], strict=True)
    if (block.language, block.info) == ("bash", "") and following is not None
]
HOME = "/home/ada"


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory) -> Walk:
    require_program("make")
    reader = Walk(tmp_path_factory.mktemp("reader"), BLOCKS)
    reader.go()
    return reader


@pytest.mark.parametrize(("commands", "shown"), STEPS, ids=lambda block: f"line {block.line}")
def test_a_command_on_the_page_does_what_the_page_says(walk: Walk, commands: Block, shown: Block) -> None:
    printed = walk.printed[commands.line]

    assert printed.status == 0, printed.stderr
    if shown.language == "json":
        assert values_in(printed.stdout) == values_in(shown.text)
    else:
        assert printed.stdout.replace(str(walk.place.parent), HOME) == shown.text


def test_every_command_on_the_page_has_an_outcome() -> None:
    commands = [block for block in BLOCKS if (block.language, block.info) == ("bash", "")]

    assert [block for block, _ in STEPS] == commands
    assert all(shown.language in ("json", "text") for _, shown in STEPS)
