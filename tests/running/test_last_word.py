"""The last word of a forked script is found among its reports, wherever the pipe cuts it."""

from __future__ import annotations

import pytest

from mcpgreen.running.processes.last_word import LastWord, new_word

REPORT = b'{"progress":1}\n'


def heard(*chunks: bytes, word: bytes = b"abcdefgh") -> tuple[bytes, list[int]]:
    """What is left for others, and the ends that were told."""
    rest: list[bytes] = []
    ends: list[int] = []
    last_word = LastWord(word, rest.append, ends.append)
    for chunk in chunks:
        last_word.take(chunk)
    last_word.give_back()
    return b"".join(rest), ends


@pytest.mark.parametrize("cut", range(len(REPORT) + 12))
def test_it_is_taken_out_of_what_comes(cut: int) -> None:
    said = REPORT + b"\0abcdefgh003"

    assert heard(said[:cut], said[cut:]) == (REPORT, [3])


def test_it_comes_byte_by_byte() -> None:
    said = REPORT + b"\0abcdefgh255"

    assert heard(*(said[at : at + 1] for at in range(len(said)))) == (REPORT, [255])


@pytest.mark.parametrize(
    "said",
    [REPORT, b"\0", b"\0abcdefgX003", b"\0abcdefghXYZ", b"\0abcdefgh00", b"a\0b\0c", b"\0" * 40],
)
def test_what_is_another_word_is_for_others(said: bytes) -> None:
    assert heard(said) == (said, [])
    assert heard(*(said[at : at + 1] for at in range(len(said)))) == (said, [])


def test_each_script_has_a_word_of_its_own() -> None:
    assert new_word() != new_word()
