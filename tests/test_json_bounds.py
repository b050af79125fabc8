"""What a JSON text would cost, found out over its bytes."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from mcpgreen.text import jsontext
from mcpgreen.text.jsontext import MAX_DEPTH, MAX_PARTS, PIECE_BYTES, Bounds, TooCostly, require_parsable


def random_value(chance: random.Random, depth: int = 4) -> Any:
    kind = chance.choice(["text", "number", "list", "object"] if depth else ["text", "number"])
    if kind == "text":
        return "".join(chance.choice('ab[]{},:"\\\n/é\x00NI') for _ in range(chance.randrange(12)))
    if kind == "number":
        return chance.choice([0, -1, 2.5, 1e30, True, None])
    if kind == "list":
        return [random_value(chance, depth - 1) for _ in range(chance.randrange(5))]
    return {f"{chance.random()}\\": random_value(chance, depth - 1) for _ in range(chance.randrange(5))}


def parts_of(value: Any) -> int:
    """Openings, commas and colons, counted the slow way."""
    if isinstance(value, list):
        return 1 + max(0, len(value) - 1) + sum(map(parts_of, value))
    if isinstance(value, dict):
        return 1 + max(0, len(value) - 1) + len(value) + sum(map(parts_of, value.values()))
    return 0


@pytest.mark.parametrize("seed", range(40))
def test_what_is_inside_strings_does_not_count_however_the_text_is_cut(seed: int) -> None:
    chance = random.Random(seed)
    value = [random_value(chance) for _ in range(6)]
    text = json.dumps(value, ensure_ascii=chance.random() < 0.5).encode()
    bounds = Bounds()
    at = 0
    while at < len(text):
        size = chance.choice([1, 2, 3, 50])
        bounds.feed(text[at : at + size])
        at += size

    assert bounds.parts == parts_of(value)


@pytest.mark.parametrize("opening, closing", [(b"[", b"]"), (b'{"a":', b"}")])
def test_the_depth_is_bounded_wherever_it_is_reached(opening: bytes, closing: bytes) -> None:
    def nested(levels: int) -> bytes:
        return b"[" + b"[]," * 200 + opening * (levels - 1) + b"1" + closing * (levels - 1) + b"]"

    require_parsable(nested(MAX_DEPTH))
    with pytest.raises(TooCostly, match="nested deeper than 128"):
        require_parsable(nested(MAX_DEPTH + 1))


def test_depth_is_remembered_from_piece_to_piece() -> None:
    bounds = Bounds()
    bounds.feed(b"[" + b"[]," * 200 + b"[" * (MAX_DEPTH - 1))

    with pytest.raises(TooCostly):
        bounds.feed(b"[")


def test_depth_that_is_left_again_does_not_add_up() -> None:
    value = jsontext.loads(b"[" + (b"[" * 100 + b"]" * 100 + b",") * 50 + b"1]")

    assert len(value) == 51


def test_the_number_of_parts_is_bounded() -> None:
    require_parsable(b"[" + b"1," * (MAX_PARTS - 1) + b"1]")
    for part in (b"1,", b"[],", b'"a":', b'"","",', b"{}"):
        with pytest.raises(TooCostly, match="more than 250000 values"):
            require_parsable(b"[" + part * MAX_PARTS)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
@pytest.mark.parametrize("padding", ["", "x" * PIECE_BYTES], ids=["short", "long"])
def test_numbers_that_json_does_not_know_are_found_outside_of_strings_only(number: str, padding: str) -> None:
    assert jsontext.loads(f'["{padding}{number}"]') == [padding + number]
    with pytest.raises(ValueError, match="NaN and Infinity are not JSON"):
        jsontext.loads(f'["{padding}", {number}]')


def test_others_get_turns_while_a_long_text_is_looked_at() -> None:
    turns: list[None] = []
    jsontext.loads(b'"' + b"x" * (5 << 20) + b'"', turn=lambda: turns.append(None))

    assert len(turns) >= 5
