"""docs/warm-python.md tells the truth: its tool is served and forked, and its table says which first lines are."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from mcpgreen.running.warm.interpreters import Interpreters
from tests.running.warm.programs import DIFFERENT_ON_PURPOSE
from tests.support.waiting import eventually
from tests.support.wire import Wire
from tests.test_docs_examples import CHECKOUT, Walk, blocks_of

PAGE = CHECKOUT / "docs" / "warm-python.md"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="scripts are forked on Linux only")
def test_the_tool_of_the_page_is_forked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MCPGREEN_WARM_PYTHON", raising=False)
    walk = Walk(tmp_path, [])
    (code,) = (block for block in blocks_of(PAGE) if block.language.startswith("python"))
    (line,) = (block.text for block in blocks_of(PAGE) if block.language == "text")
    walk.take(code)
    with Wire(tmp_path, env={"MCPGREEN_STDERR_LEVEL": "info"}) as server:
        server.handshake()

        def is_forked() -> bool:
            result = server.call_tool("prices", {"text": "[1, 2.5]"})
            assert result["structuredContent"] == {"result": 1.75}
            return re.search(re.sub(r"\d+ ms", r"\\d+ ms", line.strip()), server.stderr) is not None

        eventually(is_forked)


def test_the_page_lists_what_is_different_on_purpose() -> None:
    section = PAGE.read_text(encoding="utf-8").partition("## What is different")[2]
    rows = re.findall(r"^\| `?([^|`]+)`? \|", section, re.MULTILINE)

    assert set(rows) - {"What"} == set(DIFFERENT_ON_PURPOSE)


def test_the_table_says_which_first_lines_are_forked(tmp_path: Path) -> None:
    rows = re.findall(r"^\| (`#!.*) \| (.*) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(rows) == 4
    script = tmp_path / "script"
    for lines, said in rows:
        for line in re.findall(r"`(#!.*?)`", lines):
            script.unlink(missing_ok=True)
            script.write_text(f"{line}\n")
            is_forked = Interpreters().of(str(script), [str(script)]) is not None
            assert is_forked == said.startswith("forked"), line
