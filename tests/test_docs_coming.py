"""docs/from-fastmcp.md and docs/from-mcpshell-and-just.md tell the truth: what they build is built and run.

Files are written and `bash` blocks run, in order; a `text` block behind one is what it prints, with `…` for a path
and any size for what a disk holds. What belongs to the other program is only read.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.test_docs_examples import CHECKOUT, Walk, blocks_of

OTHERS = ("fastmcp/", "mcpshell/")


@pytest.mark.parametrize("page", ["from-fastmcp.md", "from-mcpshell-and-just.md"])
def test_the_page_does_what_it_says(page: str, tmp_path: Path) -> None:
    blocks = [block for block in blocks_of(CHECKOUT / "docs" / page) if not block.info.startswith(OTHERS)]
    walk = Walk(tmp_path, blocks)
    printed = ""
    for block in blocks:
        walk.take(block)
        if block.line in walk.printed:
            done = walk.printed[block.line]
            assert done.status == 0, f"line {block.line}: {done}"
            printed = done.stdout + done.stderr
        elif (block.language, block.info) == ("text", ""):
            pattern = re.sub(r"\d+K(\\ )+", r"\\S+ +", re.escape(block.text)).replace("…", r"\S*")
            assert re.fullmatch(pattern, printed), f"line {block.line}: {printed}"


def test_the_servers_of_others_are_at_least_well_formed() -> None:
    yaml = pytest.importorskip("yaml")
    shown = [
        block
        for page in ("from-fastmcp.md", "from-mcpshell-and-just.md")
        for block in blocks_of(CHECKOUT / "docs" / page)
        if block.info.startswith(OTHERS)
    ]

    assert [block.language for block in shown] == ["python", "yaml"]
    compile(shown[0].text, "server.py", "exec")
    assert yaml.safe_load(shown[1].text)["mcp"]["tools"][0]["name"] == "disk_usage"
