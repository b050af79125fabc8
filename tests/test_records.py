"""Named tuples and patterns that cost nothing to import are what they stand for."""

from __future__ import annotations

import copy
import pickle

import pytest

from mcpgreen.text.patterns import pattern
from mcpgreen.text.records import NamedTuple


class Pair(NamedTuple):
    """Two things."""

    left: int
    right: list[int] = []  # as a named tuple has it

    @property
    def total(self) -> int:
        return self.left + sum(self.right)


def test_fields_have_names_places_and_defaults() -> None:
    pair = Pair(1, right=[2])

    assert (pair.left, pair[1], pair.total) == (1, [2], 3)
    assert Pair(left=1) == (1, [])
    assert pair._replace(left=5) == Pair(5, [2])
    assert pair._asdict() == {"left": 1, "right": [2]}
    assert Pair._fields == ("left", "right")
    assert repr(pair) == "Pair(left=1, right=[2])"
    assert (copy.copy(pair), pickle.loads(pickle.dumps(pair))) == (pair, pair)


def test_nothing_can_be_added() -> None:
    with pytest.raises(AttributeError):
        Pair(1).other = 2  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        Pair(1).left = 2  # type: ignore[misc]


@pytest.mark.parametrize("wrong", ["Pair()", "Pair(1, [], 3)", "Pair(1, left=1)", "Pair(1, other=1)"])
def test_each_field_is_given_once(wrong: str) -> None:
    with pytest.raises(TypeError):
        eval(wrong)
    with pytest.raises((TypeError, ValueError)):
        Pair(1)._replace(other=1)  # type: ignore[call-arg]


def test_a_pattern_is_compiled_when_it_is_used() -> None:
    found = pattern(rb"(\d+)").search(b"a 12")

    assert found is not None
    assert found[1] == b"12"
