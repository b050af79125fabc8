"""What docs/checking.md shows is built and run, and it names every code of `lint`."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

from tests.support.prerequisites import require_program
from tests.test_docs_examples import CHECKOUT, Block, Walk, at_line, blocks_of

PAGE = CHECKOUT / "docs" / "checking.md"
BLOCKS = blocks_of(PAGE)
SHOWN = [
    (commands, shown)
    for commands, shown in pairwise(BLOCKS)
    if (commands.language, commands.info, shown.language) == ("bash", "", "text")
]


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory) -> Walk:
    reader = Walk(tmp_path_factory.mktemp("reader"), BLOCKS)
    reader.go()
    return reader


@pytest.mark.parametrize(("commands", "shown"), SHOWN, ids=at_line)
def test_a_command_on_the_page_prints_what_the_page_says(walk: Walk, commands: Block, shown: Block) -> None:
    require_program("jq")
    printed = walk.printed[commands.line]

    assert (printed.status, printed.stderr) == (0, "")
    assert re.sub(r"(?m)^Project: .*$", "Project: PROJECT", printed.stdout) == shown.text


def test_the_page_names_every_code_of_lint() -> None:
    text = PAGE.read_text(encoding="utf-8")
    sources = "".join(path.read_text(encoding="utf-8") for path in (CHECKOUT / "mcpgreen/cli/linting").glob("*.py"))
    codes = set(re.findall(r'source\.warning\(\s*"([a-z-]+)"', sources))
    codes |= set(re.findall(r'Finding\("warning", \w+, sentence, "([a-z-]+)"', sources))

    assert len(codes) > 20
    assert {code for code in codes if f"`{code}`" not in text} == set()
