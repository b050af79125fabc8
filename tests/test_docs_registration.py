"""What docs/registration.md shows is built and run, as `test_docs_examples` does it for docs/tools.md."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest

from mcpgreen.catalog.manual.rules import KINDS
from mcpgreen.running.hooks.shell import PRELUDE
from tests.support.prerequisites import require_program
from tests.test_docs_examples import (
    CHECKOUT,
    Block,
    Step,
    Walk,
    at_line,
    blocks_of,
    conversation_with,
    steps_of,
    values_in,
)

BLOCKS = blocks_of(CHECKOUT / "docs" / "registration.md")
STEPS = steps_of(BLOCKS)
CONVERSATIONS = [block for block in BLOCKS if block.info == "wire"]


class Talk(Walk):
    """A reader who speaks with the server where the page does: later the project is another."""

    answers: dict[int, list[tuple[Any, Any]]]

    def take(self, block: Block) -> None:
        if block.info == "wire":
            self.answers[block.line] = conversation_with(self.place, block)
        else:
            super().take(block)


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory) -> Talk:
    reader = Talk(tmp_path_factory.mktemp("reader"), BLOCKS)
    reader.answers = {}
    reader.go()
    return reader


@pytest.mark.parametrize("step", STEPS, ids=at_line)
def test_a_command_on_the_page_does_what_the_page_says(walk: Walk, step: Step) -> None:
    require_program("jq")
    printed = walk.printed[step.commands.line]

    assert (printed.status, printed.stderr) == (0, "")
    assert values_in(printed.stdout) == (values_in(step.shown.text) if step.shown else [])


@pytest.mark.parametrize("conversation", CONVERSATIONS, ids=at_line)
def test_a_conversation_on_the_page_takes_place(walk: Talk, conversation: Block) -> None:
    assert walk.answers[conversation.line]
    for said, heard in walk.answers[conversation.line]:
        assert heard == said


def test_the_example_registers_something_of_each_kind() -> None:
    (example,) = (block for block in BLOCKS if block.info == "server.d/register.json")
    (registered,) = values_in(example.text)

    assert all(registered[kind] for kind in KINDS)


def test_the_page_names_every_function_that_hooks_find() -> None:
    listing = subprocess.run(
        ["bash", "-c", f"set -- functions 2 /dev/null; source {PRELUDE}; compgen -A function mcp_"],
        capture_output=True,
        text=True,
        check=True,
    )
    page = (CHECKOUT / "docs" / "registration.md").read_text(encoding="utf-8")
    missing = [name for name in listing.stdout.split() if name not in page]

    assert listing.stdout
    # Those that differ from a named one in their middle only, and an older name.
    assert [name for name in missing if "_manual_" not in name and not name.startswith("mcp_logging_")] == [
        "mcp_json_normalize_line",
        "mcp_json_quote_text",
    ]
