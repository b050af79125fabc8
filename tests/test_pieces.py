"""Bytes in chunks of any size."""

from __future__ import annotations

import random

import pytest

from mcpgreen.text.pieces import PIECE_BYTES, Pieces


@pytest.mark.parametrize("seed", range(10))
def test_the_content_is_the_same_however_it_came(seed: int) -> None:
    dice = random.Random(seed)
    chunks = [dice.randbytes(dice.choice([1, 2, 100, 5000, 70_000])) for _ in range(50)]
    pieces = Pieces()
    for chunk in chunks:
        pieces.add(chunk)

    assert b"".join(pieces.take()) == b"".join(chunks)
    assert pieces.take() == []


def test_tiny_chunks_are_put_together_and_large_ones_left_alone() -> None:
    """Three megabytes by two bytes took 228 MB, and 22 s to look at one by one."""
    pieces, large = Pieces(), bytes(PIECE_BYTES)
    for _ in range(PIECE_BYTES):
        pieces.add(b"xy")
    pieces.add(large)
    first, second, third = pieces.take()

    assert len(first) == len(second) == PIECE_BYTES
    assert third is large
