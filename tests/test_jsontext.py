"""Large values on their way into a line of JSON."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from mcpgreen.text import jsontext


def line(value: Any) -> Any:
    return json.loads(b"".join(jsontext.dump_pieces(value)))


@pytest.mark.parametrize("sizes", [[], [0], [1], [2], [3], [1, 1, 1, 1], [2, 0, 5], [65_536, 65_536, 7], [4, 3, 2, 1]])
def test_a_blob_is_the_base64_of_all_its_chunks(sizes: list[int]) -> None:
    chance = random.Random(0)
    chunks = [chance.randbytes(size) for size in sizes]

    assert line({"blob": jsontext.LargeBlob(chunks)}) == {"blob": base64.b64encode(b"".join(chunks)).decode()}


def test_a_line_holds_several_large_values_each_in_its_place() -> None:
    value = {
        "contents": [
            {"uri": "a:1", "text": jsontext.LargeText([b"one \xe2\x82", b"\xac\n"])},
            {"uri": "a:2", "blob": jsontext.LargeBlob([b"t", b"wo"])},
            {"uri": "a:3", "text": jsontext.LargeText([])},
            {"uri": "a:4", "text": "short"},
        ],
        "last": True,
    }

    assert line(value) == {
        "contents": [
            {"uri": "a:1", "text": "one €\n"},
            {"uri": "a:2", "blob": "dHdv"},
            {"uri": "a:3", "text": ""},
            {"uri": "a:4", "text": "short"},
        ],
        "last": True,
    }


def test_what_is_not_json_is_refused_beside_a_large_value() -> None:
    with pytest.raises(ValueError, match="object is not JSON"):
        jsontext.dump_pieces([jsontext.LargeText([b"x"]), object()])


EVERY_ASCII = bytes(range(128))


@pytest.mark.parametrize(
    "chunks",
    [
        [b'say "yes"\\no\n', b"\ttab\r\n"],
        [EVERY_ASCII],
        [bytes([code]) for code in EVERY_ASCII],
        [b"euro \xe2\x82", b"\xac plain", b"plain"],
        [b"broken \xe2\x82", b"plain \\ again"],
        [b"broken \xff", b"plain"],
        [b"cut off \xf0\x9f"],
        ["\ud83d\ude00 as a pair".encode("utf-8", "surrogatepass"), b"x"],
    ],
)
def test_a_text_is_what_all_its_chunks_say(chunks: list[bytes]) -> None:
    assert line([jsontext.LargeText(chunks)]) == [b"".join(chunks).decode("utf-8", "replace")]


def test_a_large_text_stops_at_its_limit() -> None:
    taken = []

    def chunks() -> Iterator[bytes]:
        for number in range(10):
            taken.append(number)
            yield b"\1" * 100

    with pytest.raises(jsontext.TooLong):
        jsontext.LargeText(chunks(), limit_bytes=1500)
    assert len(taken) == 3
