"""What docs/from-mcp-bash.md shows is built and run, as `test_docs_examples` does it for docs/tools.md."""

from __future__ import annotations

import json
import re
import sys
from itertools import pairwise

import pytest

from mcpgreen.cli.commands import BY_NAME
from mcpgreen.settings.table import ROWS
from tests.support.wire import Wire
from tests.test_docs_examples import CHECKOUT, Block, Walk, at_line, blocks_of, values_in

PAGE = CHECKOUT / "docs" / "from-mcp-bash.md"
BLOCKS = blocks_of(PAGE)
SHOWN = [
    (commands, shown)
    for commands, shown in pairwise(BLOCKS)
    if (commands.language, commands.info) == ("bash", "") and shown.info == ""
]


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory) -> Walk:
    reader = Walk(tmp_path_factory.mktemp("reader"), BLOCKS)
    reader.go()
    return reader


@pytest.mark.parametrize(("commands", "shown"), SHOWN, ids=at_line)
def test_a_command_on_the_page_prints_what_the_page_says(walk: Walk, commands: Block, shown: Block) -> None:
    printed = walk.printed[commands.line]

    assert (printed.status, printed.stderr) == (0, "")
    if shown.language == "json":
        assert values_in(printed.stdout) == values_in(shown.text)
    else:
        assert printed.stdout == shown.text


def test_the_configuration_of_the_page_starts_a_server(walk: Walk) -> None:
    (entry,) = json.loads(BLOCKS[0].text)["mcpServers"].values()
    assert entry["command"].endswith("scripts/mcpgreen")
    assert "args" not in entry
    wire = Wire(
        None,
        command=[str(walk.place.parent / "bin" / "mcpgreen")],
        env={**entry["env"], "MCPBASH_PROJECT_ROOT": str(walk.place), "MCPGREEN_PYTHON": sys.executable},
    )
    try:
        wire.handshake("2025-06-18")
        assert wire.call_tool("greet", {"name": "Ada"})["structuredContent"]["success"] is True
    finally:
        wire.end()


def test_settings_that_the_page_says_are_not_read_are_not_there() -> None:
    text = PAGE.read_text(encoding="utf-8")
    known = {variable for row in ROWS for variable in row.variables}
    (row,) = [line for line in text.splitlines() if "They are not read." in line]
    named = re.findall(r"MCP(?:BASH)?_\w+", row.split("|")[1])

    assert named
    assert not known & set(named)
    others = set(re.findall(r"\bMCPBASH_[A-Z_]+[A-Z]\b", text)) - set(named)
    for_scripts = {"MCPBASH_ELICITATION_TIMEOUT", "MCPBASH_FRAMEWORK_VERSION"}
    unseen = {"MCPBASH_DIRECT_FD", "MCPBASH_SERVER_ICONS", "MCPBASH_SERVER_INSTRUCTIONS"}
    assert others - known == for_scripts | unseen


def test_commands_that_the_page_says_do_not_exist_do_not() -> None:
    (row,) = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if "They do not exist." in line]
    assert not set(re.findall(r"`([\w-]+)`", row)) & set(BY_NAME)
