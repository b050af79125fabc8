"""README.md tells the truth: its commands are run, and its figures are those of the benchmark's page.

`bash` blocks are run in order, in a folder that has `scripts/` as the checkout has; a `text` block behind one is what
it prints. `sh` blocks install or test, and are only read: their targets of make have to exist.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.wire import clean_environment
from tests.test_docs_examples import CHECKOUT, Block, blocks_of

PAGE = CHECKOUT / "README.md"
TEXT = PAGE.read_text(encoding="utf-8")
BLOCKS = blocks_of(PAGE)


def run(block: Block, home: Path) -> str:
    done = subprocess.run(
        ["bash", "-c", f"set -euo pipefail\numask 022\n{block.text}"],
        cwd=home / "mcpgreen",
        env=clean_environment({"MCPGREEN_PYTHON": sys.executable, "HOME": str(home)}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), f"line {block.line}"
    return done.stdout


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "mcpgreen").mkdir()
    (tmp_path / "mcpgreen" / "scripts").symlink_to(CHECKOUT / "scripts")
    return tmp_path


def test_the_commands_do_what_the_page_says(home: Path) -> None:
    printed = ""
    for block in BLOCKS:
        if block.language == "bash":
            printed = run(block, home)
        elif block.language == "text":
            assert printed == block.text, f"line {block.line}"
    entry = json.loads((home / ".cursor" / "mcp.json").read_text(encoding="utf-8"))
    assert list(entry["mcpServers"]) == ["my-server"]


def test_the_result_that_the_page_shows_is_what_goes_over_the_wire(home: Path) -> None:
    first_tool = next(block for block in BLOCKS if block.language == "bash")
    shown = next(block for block in BLOCKS if block.language == "json")
    assert run(first_tool._replace(text=first_tool.text.replace("--plain", "--json")), home) == shown.text


def test_the_two_commands_come_first_and_every_target_exists() -> None:
    targets = re.findall(r"^([a-z]+):", (CHECKOUT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    read = [block.text for block in BLOCKS if block.language == "sh"]

    assert [line.split()[:2] for line in BLOCKS[0].text.splitlines()] == [["make", "run"], ["make", "test"]]
    assert [name for name in re.findall(r"make ([a-z]+)", "".join(read)) if name not in targets] == []


def test_the_figures_are_those_of_the_benchmark() -> None:
    measured = (CHECKOUT / "docs" / "benchmark.md").read_text(encoding="utf-8").splitlines()
    why = TEXT.partition("## Why")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in why.splitlines() if " | " in line][1:]

    assert len(rows) == 3
    for _, ours, beside in rows:
        assert any(f"| {ours} |" in line and line.endswith(f"| {beside} |") for line in measured), (ours, beside)
    cost = re.search(r"a process: (\S+ ms) for a small shell script, (\S+ to \S+ ms) in Python", TEXT)
    ratio = re.search(r"takes (\S+ to \S+ x) the time of a function in FastMCP", why)
    assert cost is not None and ratio is not None
    assert any(line.startswith(f"| a call, one by one | {cost[1]} |") for line in measured)
    python = [line for line in measured if line.startswith(f"| a Python tool, 8 ms between two calls | {cost[2]} |")]
    assert len(python) == 1 and f" {ratio[1]} " in python[0]


def test_the_pictures_of_the_page_exist() -> None:
    pictures = re.findall(r'(?:srcset|src)="([^"]+)"', TEXT)

    assert len(pictures) == 2
    assert [name for name in pictures if not (CHECKOUT / name).is_file()] == []
