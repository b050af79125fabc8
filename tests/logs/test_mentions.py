"""How often something is worth a line."""

from __future__ import annotations

from mcpgreen.logs.mentions import Mentions


def test_each_kind_is_counted_in_each_second_anew() -> None:
    now = [10.0]
    mentions = Mentions(clock=lambda: now[0])

    assert [mentions.count("refused") for _ in range(3)] == [1, 2, 3]
    assert mentions.count("failed") == 1
    now[0] = 11.5
    assert mentions.count("refused") == 1
