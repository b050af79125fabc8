"""What is heard of when directories move, vanish, have two names or are wanted by two; where there are no events."""

from __future__ import annotations

import errno
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mcpgreen.running import disk_watcher
from mcpgreen.running.disk_watcher import DiskWatcher, Interest

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="inotify exists on Linux only")


class Ear:
    """One who is interested, and what was said."""

    def __init__(self, disk: DiskWatcher) -> None:
        self.heard: dict[str, bool] = {}
        self.times = 0
        self._disk = disk
        self.interest: Interest = disk.interest(self._hear)

    def _hear(self, changed: dict[str, bool]) -> None:
        self.heard.update(changed)
        self.times += 1

    def news(self) -> set[str]:
        """The paths that changed since the last time."""
        self._disk.catch_up()
        heard, self.heard = set(self.heard), {}
        return heard


@pytest.fixture
def disk() -> Iterator[DiskWatcher]:
    disk = DiskWatcher(uses_events=True)
    yield disk
    disk.close()


@pytest.fixture
def ear(disk: DiskWatcher) -> Ear:
    return Ear(disk)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "outer" / "inner").mkdir(parents=True)
    return tmp_path


def names(tree: Path) -> list[str]:
    return [str(tree / "outer"), str(tree / "outer" / "inner")]


def no_turn() -> None:
    pass


def test_what_takes_the_place_of_a_moved_directory_is_watched_anew_with_all_that_is_in_it(ear: Ear, tree: Path) -> None:
    """The inner one gets no event of its own when the outer one moves."""
    ear.interest.want_only(names(tree), no_turn)
    (tree / "outer").rename(tree / "elsewhere")
    (tree / "outer" / "inner").mkdir(parents=True)
    assert ear.news()
    assert ear.interest.want(names(tree))
    ear.news()

    (tree / "outer" / "inner" / "new").mkdir()
    (tree / "elsewhere" / "inner" / "other").mkdir()

    assert ear.news() == {str(tree / "outer" / "inner" / "new")}
    assert not ear.interest.want(names(tree))


def test_what_takes_the_place_of_a_removed_directory_is_watched_anew(ear: Ear, tree: Path) -> None:
    inner = tree / "outer" / "inner"
    assert ear.interest.want(names(tree))
    inner.rmdir()
    assert str(inner) in ear.news()
    assert not ear.interest.want(names(tree))
    inner.mkdir()
    assert ear.interest.want(names(tree))
    ear.news()

    (inner / "new").mkdir()

    assert ear.news() == {str(inner / "new")}


def test_a_directory_with_two_names_is_watched_until_both_are_given_up(ear: Ear, tree: Path) -> None:
    (tree / "alias").symlink_to(tree / "outer")
    assert ear.interest.want([str(tree / "outer"), str(tree / "alias")])
    ear.interest.leave([str(tree / "outer")])
    (tree / "outer" / "first").mkdir()
    assert ear.news() == {str(tree / "alias" / "first")}

    ear.interest.want_only([], no_turn)
    (tree / "outer" / "second").mkdir()
    assert not ear.news()


def test_each_hears_of_its_own_directories_until_it_leaves_them(disk: DiskWatcher, ear: Ear, tree: Path) -> None:
    other = Ear(disk)
    ear.interest.want(names(tree))
    assert other.interest.want(names(tree)[1:])  # it is new to this one
    (tree / "outer" / "first").mkdir()
    (tree / "outer" / "inner" / "second").mkdir()
    assert ear.news() == {str(tree / "outer" / "first"), str(tree / "outer" / "inner" / "second")}
    assert other.news() == {str(tree / "outer" / "inner" / "second")}

    ear.interest.want_only(names(tree)[:1], no_turn)
    (tree / "outer" / "inner" / "third").mkdir()

    assert not ear.news()
    assert other.news() == {str(tree / "outer" / "inner" / "third")}


def test_a_file_that_has_merely_appeared_is_told_from_one_that_was_written(
    disk: DiskWatcher, ear: Ear, tree: Path
) -> None:
    ear.interest.want(names(tree))
    written, begun = tree / "outer" / "written", tree / "outer" / "begun"
    written.write_text("text", encoding="utf-8")
    with begun.open("w", encoding="utf-8"):
        disk.catch_up()
        assert ear.heard == {str(written): False, str(begun): True}


def test_a_watcher_hears_of_its_changes_behind_a_flood_of_others(disk: DiskWatcher, ear: Ear, tree: Path) -> None:
    """What one read holds is looked at, so that the hub is not held; an answer given now must not be stale."""
    other = Ear(disk)
    ear.interest.want(names(tree)[:1])
    other.interest.want(names(tree)[1:])
    for number in range(disk_watcher.READ_BYTES // 200):
        (tree / "outer" / f"{number}-{'x' * 200}").touch()
    (tree / "outer" / "inner" / "new").mkdir()

    disk.catch_up()
    assert (other.times, other.heard) == (1, {})
    while not other.heard:
        disk.catch_up()
    told = other.times
    disk.catch_up()
    assert other.times == told


def test_where_the_system_has_no_room_it_is_asked_once_and_the_remedy_is_named_once(
    disk: DiskWatcher, ear: Ear, tree: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    asked: list[None] = []

    def refuse() -> None:
        asked.append(None)
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(disk_watcher, "Inotify", refuse)
    for each in (ear, Ear(disk)):
        assert not each.interest.want(names(tree))
        assert not each.interest.hears_all
    assert not ear.news()

    assert len(asked) == 1
    assert capfd.readouterr().err.count("max_user_instances") == 1


def test_a_directory_that_may_not_be_watched_leaves_the_others_watched(
    ear: Ear, tree: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    watch = disk_watcher.Inotify.watch

    def watch_all_but_inner(self: disk_watcher.Inotify, directory: str) -> None:
        if directory.endswith("inner"):
            raise OSError(errno.ENOSPC, "No space left on device", directory)
        watch(self, directory)

    monkeypatch.setattr(disk_watcher.Inotify, "watch", watch_all_but_inner)
    for _ in range(2):
        ear.interest.want([*names(tree), str(tree / "absent")])
    (tree / "outer" / "new").mkdir()

    assert ear.news() == {str(tree / "outer" / "new")}
    assert not ear.interest.hears_all
    assert capfd.readouterr().err.count("raise fs.inotify.max_user_watches") == 1
