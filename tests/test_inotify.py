"""What counts as watched when directories move, vanish or have two names."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mcpgreen.inotify import Inotify

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="inotify exists on Linux only")


@pytest.fixture
def inotify() -> Iterator[Inotify]:
    inotify = Inotify()
    yield inotify
    inotify.close()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "outer" / "inner").mkdir(parents=True)
    return tmp_path


def names(tree: Path) -> list[str]:
    return [str(tree / "outer"), str(tree / "outer" / "inner")]


def no_turn() -> None:
    pass


def test_what_takes_the_place_of_a_moved_directory_is_watched_anew_with_all_that_is_in_it(
    inotify: Inotify, tree: Path
) -> None:
    """The inner one gets no event of its own when the outer one moves."""
    assert inotify.watch_exactly(names(tree), no_turn)
    (tree / "outer").rename(tree / "elsewhere")
    (tree / "outer" / "inner").mkdir(parents=True)
    assert inotify.has_news()
    assert inotify.watch_also(names(tree))
    inotify.changed_paths()

    (tree / "outer" / "inner" / "new").mkdir()
    (tree / "elsewhere" / "inner" / "other").mkdir()

    assert inotify.changed_paths() == {str(tree / "outer" / "inner" / "new")}


def test_what_takes_the_place_of_a_removed_directory_is_watched_anew(inotify: Inotify, tree: Path) -> None:
    inner = tree / "outer" / "inner"
    assert inotify.watch_also(names(tree))
    inner.rmdir()
    inner.mkdir()
    assert inotify.has_news()
    assert inotify.watch_also(names(tree))
    inotify.changed_paths()

    (inner / "new").mkdir()

    assert inotify.changed_paths() == {str(inner / "new")}


def test_a_directory_with_two_names_is_watched_until_both_are_given_up(inotify: Inotify, tree: Path) -> None:
    (tree / "alias").symlink_to(tree / "outer")
    assert inotify.watch_also([str(tree / "outer"), str(tree / "alias")])
    inotify.unwatch(str(tree / "outer"))
    (tree / "outer" / "first").mkdir()
    assert inotify.changed_paths() == {str(tree / "alias" / "first")}

    assert inotify.watch_exactly([], no_turn)
    (tree / "outer" / "second").mkdir()
    assert not inotify.has_news()
    assert inotify.watches() == set()


def test_watching_ends_when_it_is_closed_in_between(inotify: Inotify, tree: Path) -> None:
    places = [str(tree / f"d{number}") for number in range(1200)]
    for place in places:
        Path(place).mkdir()
    other = Inotify()

    assert not other.watch_exactly(places, other.close)
