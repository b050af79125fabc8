"""docs/errors.md: the messages on it are those that the server says."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parent.parent
SOURCES = [*(CHECKOUT / "mcpgreen").rglob("*.py"), CHECKOUT / "scripts" / "mcpgreen"]

spec = importlib.util.spec_from_file_location("known_messages", CHECKOUT / "scripts" / "known_messages.py")
assert spec and spec.loader
known_messages = importlib.util.module_from_spec(spec)
sys.modules["known_messages"] = known_messages
spec.loader.exec_module(known_messages)
ALL = [known.message for group in known_messages.MESSAGES.values() for known in group]


@pytest.fixture(scope="module")
def sources() -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in SOURCES)


@pytest.mark.parametrize("message", ALL)
def test_a_message_of_the_page_is_in_the_sources(message: str, sources: str) -> None:
    pieces = [piece.strip() for piece in message.split("…") if len(piece.strip(" :;'.")) > 3]

    assert pieces
    assert [piece for piece in pieces if piece not in sources] == []


def test_the_page_has_each_message_with_cause_and_cure() -> None:
    page = (CHECKOUT / "docs" / "errors.md").read_text(encoding="utf-8")

    for group, rows in known_messages.MESSAGES.items():
        assert f"\n### {group}\n" in page
        for known in rows:
            assert f"| `{known.message}` | {known.cause} | {known.cure} |" in page
