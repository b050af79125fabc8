"""docs/prompts.md and docs/completion.md tell the truth: what they show is built, run and said.

Fenced blocks are taken in order: with a file name a block is that file, a bash block without one is run, and a `text
wire` block is a conversation with a server on what stands there by then: `-->` is sent, `<--` has to come.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.support.prerequisites import require_program
from tests.support.wire import Wire, clean_environment
from tests.test_docs_examples import CHECKOUT, COMMAND_SECS, Block, blocks_of


@pytest.mark.parametrize("page", ["prompts.md", "completion.md"])
def test_the_page_does_what_it_says(page: str, tmp_path: Path) -> None:
    require_program("jq")
    conversations = 0
    for block in blocks_of(CHECKOUT / "docs" / page):
        if "/" in block.info:
            target = tmp_path / "my-server" / block.info
            target.write_text(block.text, encoding="utf-8")
            target.chmod(0o644)  # whatever the umask: the page says who gets the executable bit
        elif (block.language, block.info) == ("bash", ""):
            run(block.text, tmp_path)
        elif block.info == "wire":
            talk(block, tmp_path / "my-server")
            conversations += 1
    assert conversations >= 3


def run(commands: str, home: Path) -> None:
    place = home / "my-server"
    done = subprocess.run(
        ["bash", "-c", f"set -euo pipefail\numask 022\n{commands}"],
        cwd=place if place.exists() else home,
        env=clean_environment({"PATH": os.environ["PATH"]}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=COMMAND_SECS,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), commands


def talk(conversation: Block, root: Path) -> None:
    with Wire(root) as server:
        server.handshake()
        for line in conversation.text.splitlines():
            arrow, message = line[:3], {"jsonrpc": "2.0", **json.loads(line[3:])}
            if arrow == "-->":
                server.send(message)
            else:
                assert (arrow, server.receive(lambda _: True)) == ("<--", message), f"line {conversation.line}"
