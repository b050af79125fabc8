"""docs/debugging.md tells the truth: its project is built, its conversations take place, and the log has its lines.

Besides files and commands, as on other pages: a `text wire LEVEL` block is what a client sends to a server with that
level, the `text log` block behind it is what the log has then, in this order, and a `text said` block is what the
commands before it print. Numbers that differ from time to time are not compared.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.support.wire import Wire
from tests.test_docs_examples import CHECKOUT, Block, Walk, blocks_of, values_in

NUMBERS = re.compile(r"\b\d+ (?=ms|bytes)|(?<=process )\d+|(?<=call )\d+|, waited \d+ ms")


def test_the_page_does_what_it_says(tmp_path: Path) -> None:
    walk = Walk(tmp_path, [])
    heard: list[str] = []
    printed = ""
    compared = 0
    for block in blocks_of(CHECKOUT / "docs" / "debugging.md"):
        where = f"line {block.line}"
        if block.info.startswith("wire "):
            heard = talk(block, walk.place)
        elif block.info == "log":
            left = iter(heard)
            missing = [
                line for line in comparable(block.text) if line not in left
            ]  # in this order, with others between
            assert not missing, (where, heard)
            compared += 1
        elif block.info == "said":
            assert printed == block.text, where
            compared += 1
        elif (block.language, block.info) == ("json", "") and printed:
            assert values_in(printed) == values_in(block.text), where
            compared += 1
        else:
            walk.take(block)
            if block.line in walk.printed:
                status, printed, stderr = walk.printed[block.line]
                assert (status, stderr) == (0, ""), where
    assert compared == 8


def talk(conversation: Block, root: Path) -> list[str]:
    level = conversation.info.removeprefix("wire ")
    with Wire(root, env={"MCPGREEN_STDERR_LEVEL": level}) as server:
        server.handshake()
        for line in conversation.text.splitlines():
            message = {"jsonrpc": "2.0", **json.loads(line.removeprefix("-->"))}
            server.send(message)
            server.receive(lambda answer, id=message["id"]: answer.get("id") == id)
        server.stop()
        return comparable(server.stderr)


def comparable(text: str) -> list[str]:
    return [NUMBERS.sub("", line) for line in text.splitlines()]
