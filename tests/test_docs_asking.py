"""docs/asking.md and docs/asking-protocol.md tell the truth: what they show is built, run and said.

On the first, commands are run and print what the `text` block behind them says. On the second, conversations take
place; one marked `stateless` leaves the envelope out, and all states are written as one.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from mcpgreen.features import tools as call_of_tools
from mcpgreen.protocol.input.needs import NEEDS
from mcpgreen.protocol.input.requests import MAX_REQUESTS
from mcpgreen.settings.table import load
from tests.support.prerequisites import require_program
from tests.support.questions import ALL
from tests.support.wire import Wire, modern_meta
from tests.test_docs_examples import CHECKOUT, Block, Walk, at_line, blocks_of

HOW_TO = CHECKOUT / "docs" / "asking.md"
PROTOCOL = CHECKOUT / "docs" / "asking-protocol.md"
TEXT = " ".join(page.read_text(encoding="utf-8") for page in (HOW_TO, PROTOCOL))
BLOCKS = blocks_of(PROTOCOL)
CONVERSATIONS = [block for block in BLOCKS if block.info.startswith("wire")]
FILES = [block.info for block in BLOCKS if "/" in block.info]
STATE = "v1.…"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    walk = Walk(tmp_path_factory.mktemp("reader"), BLOCKS)
    for block in BLOCKS:
        walk.take(block)
    for script in walk.place.glob("tools/*.*"):
        script.chmod(0o755)
    return walk.place


def said_by_us(line: str, *, is_stateless: bool, state: str) -> Any:
    message = {"jsonrpc": "2.0", **json.loads(line[3:].replace(STATE, state))}
    if is_stateless:
        message["params"]["_meta"] = modern_meta(capabilities=ALL)
    return message


def as_on_the_page(message: dict[str, Any], *, is_stateless: bool) -> dict[str, Any]:
    result = message.get("result", {})
    if "requestState" in result:
        result["requestState"] = STATE
    if is_stateless:
        result.pop("_meta", None)
        for hint in ("ttlMs", "cacheScope"):
            result.pop(hint, None)
    return {key: value for key, value in message.items() if key != "jsonrpc"}


@pytest.mark.parametrize("block", CONVERSATIONS, ids=at_line)
def test_a_conversation_on_the_page_takes_place(place: Path, block: Block) -> None:
    require_program("jq")
    is_stateless = block.info == "wire stateless"
    state = ""
    with Wire(place) as server:
        if not is_stateless:
            server.handshake(capabilities=ALL)
        for line in block.text.splitlines():
            if line.startswith("-->"):
                server.send(said_by_us(line, is_stateless=is_stateless, state=state))
                continue
            heard = server.receive(lambda message: message.get("method") != "notifications/tools/list_changed")
            state = heard.get("result", {}).get("requestState", state)
            assert as_on_the_page(heard, is_stateless=is_stateless) == json.loads(line[3:])


def test_a_command_on_the_page_does_what_the_page_says(tmp_path: Path) -> None:
    require_program("jq")
    blocks = blocks_of(HOW_TO)
    walk = Walk(tmp_path, blocks)
    printed = []
    for block in blocks:
        walk.take(block)
        if block.line in walk.printed:
            done = walk.printed[block.line]
            assert (done.status, done.stderr) == (0, ""), f"line {block.line}"
            printed.append(done.stdout)
        elif (block.language, block.info) == ("text", ""):
            assert printed.pop() == block.text, f"line {block.line}"
    assert printed == [""]


def test_every_file_of_the_page_is_used() -> None:
    said = "".join(block.text for block in CONVERSATIONS)

    assert len(FILES) == 5
    assert [name for name in FILES if f'"{Path(name).name.partition(".")[0]}"' not in said] == []


def test_the_page_names_every_need_and_the_limits_that_there_are() -> None:
    settings = load({}, {}, {})

    assert [need for need in NEEDS if f"`{need}`" not in TEXT] == []
    for name in ("ask_timeout_secs", "parked_ttl_secs", "parked_max"):
        assert re.search(rf"`{name}`\s+\({getattr(settings, name):g}\)", TEXT), name
    assert f"up to {MAX_REQUESTS} questions" in TEXT
    assert f"After {call_of_tools.MAX_ROUNDS} rounds" in TEXT
