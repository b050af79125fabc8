"""Cursors go round, and only the listing that issued one takes it back."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from mcpgreen.errors import InvalidParams
from mcpgreen.protocol.pagination import encode, offset_in, page_length

NOW = "2026-08-01T12:00:00Z"


def tools_page(
    total: int, cursor: Any = None, *, limit: Any = None, hash: str = "abc", page_size: int = 10, timestamp: str = NOW
) -> tuple[int, int, str | None]:
    start = offset_in(cursor, "tools", hash, total)
    stop = min(start + page_length(limit, page_size), total)
    return start, stop, encode("tools", stop, hash, timestamp) if stop < total else None


def encoded(content: Any) -> str:
    raw = content if isinstance(content, bytes) else json.dumps(content).encode()
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def decoded(cursor: str) -> Any:
    return json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))


def forged(**changes: Any) -> str:
    return encoded({"ver": 1, "collection": "tools", "offset": 10, "hash": "abc", "timestamp": NOW} | changes)


@pytest.mark.parametrize("total", [0, 1, 9, 10])
def test_a_list_that_fits_on_one_page_has_no_cursor(total: int) -> None:
    assert tools_page(total) == (0, total, None)


def test_a_cursor_is_base64url_without_padding_of_what_it_means() -> None:
    for stamp in (NOW, NOW + "?", NOW + "??", NOW + "~~~"):
        _, _, cursor = tools_page(25, timestamp=stamp)

        assert cursor is not None
        assert not set(cursor) & set("+/=")
        assert decoded(cursor) == {"ver": 1, "collection": "tools", "offset": 10, "hash": "abc", "timestamp": stamp}
        assert tools_page(25, cursor)[:2] == (10, 20)


@pytest.mark.parametrize(
    "cursor",
    [
        "!!!",
        "é",
        "\ud800",
        "A",
        "x" * 100_000,
        5,
        True,
        [],
        {},
        encoded(b"\xff\xfe"),
        encoded(b"not json"),
        encoded([1]),
        encoded("text"),
        encoded({}),
        forged() + "=",
        forged() + " ",
        "\n" + forged(),
        forged(ver=2),
        forged(ver="1"),
        forged(ver=True),
        forged(ver=1.0),
        forged(offset=-1),
        forged(offset=25),
        forged(offset=10**40),
        forged(offset="10"),
        forged(offset=10.0),
        forged(offset=None),
        forged(offset=True),
        forged(collection="prompts"),
        forged(collection=None),
        forged(hash="older"),
        forged(hash=None),
    ],
)
def test_a_cursor_that_this_listing_did_not_issue_is_refused_with_the_remedy(cursor: Any) -> None:
    with pytest.raises(InvalidParams, match="start again without a cursor"):
        tools_page(25, cursor)


def test_a_cursor_of_another_list_is_named_as_such() -> None:
    cursor = encode("prompts", 10, "abc", NOW)

    with pytest.raises(InvalidParams, match="another list"):
        tools_page(25, cursor)
