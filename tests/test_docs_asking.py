"""docs/asking.md tells the truth: its scripts are put into a project, and its conversations take place.

A conversation marked `stateless` leaves the envelope out, and all states are written as one.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from mcpgreen.features import tools as call_of_tools
from mcpgreen.protocol.input.requests import MAX_REQUESTS, NEEDS
from mcpgreen.settings.table import load
from tests.support.prerequisites import require_program
from tests.support.questions import ALL
from tests.support.wire import Wire, modern_meta
from tests.test_docs_examples import CHECKOUT, Block, Walk, at_line, blocks_of

PAGE = CHECKOUT / "docs" / "asking.md"
TEXT = PAGE.read_text(encoding="utf-8")
BLOCKS = blocks_of(PAGE)
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
