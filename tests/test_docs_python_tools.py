"""docs/python-tools.md tells the truth: its files are served, its commands are run, and print what the page shows."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.wire import Wire
from tests.test_docs_examples import CHECKOUT, Walk, blocks_of, values_in


def test_the_page_does_what_it_says(tmp_path: Path) -> None:
    walk = Walk(tmp_path, [])
    (tmp_path / "server.d").mkdir()
    printed = ""
    compared = 0
    for block in blocks_of(CHECKOUT / "docs" / "python-tools.md"):
        where = f"line {block.line}"
        if block.language == "json" and not printed:
            with Wire(tmp_path) as server:
                server.handshake()
                assert server.result("tools/list")["tools"] == [json.loads(block.text)], where
            compared += 1
        elif block.language == "json":
            assert values_in(printed) == values_in(block.text), where
            compared += 1
        elif block.language == "text":
            assert printed == block.text, where
            compared += 1
        else:
            walk.take(block)
            if block.line in walk.printed:
                status, printed, stderr = walk.printed[block.line]
                assert (status, stderr) == (0, ""), where
    assert compared == 4
