"""Modes and private directories: nothing is changed through a link, and nothing of another user is trusted."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from mcpgreen.files import regular_files

SOMEBODY_ELSE = 12_345
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of other users")


def mode_of(path: Path) -> int:
    return path.lstat().st_mode & 0o7777


@pytest.fixture
def made(tmp_path: Path) -> Path:
    path = tmp_path / "script.sh"
    path.write_text("#!/bin/sh\n", encoding="utf-8")
    path.chmod(0o664)
    return path


def make_private(path: Path) -> None:
    os.close(regular_files.private_directory(str(path)))


def test_bits_are_added_and_removed(made: Path) -> None:
    regular_files.change_mode(str(made), add=0o111, remove=0o022)
    assert mode_of(made) == 0o755
    regular_files.change_mode(str(made.parent), add=0o010)
    assert mode_of(made.parent) & 0o010


def test_a_link_changes_nothing(made: Path) -> None:
    """The mode of a link is 0777, which `validate --fix` gave to what it led to."""
    link = made.with_name("link.sh")
    link.symlink_to(made)

    with pytest.raises(OSError):
        regular_files.change_mode(str(link), add=0o111)
    assert mode_of(made) == 0o664


@needs_root
def test_what_belongs_to_somebody_else_keeps_its_mode(made: Path) -> None:
    os.chown(made, SOMEBODY_ELSE, -1)

    with pytest.raises(PermissionError, match="belongs to another user"):
        regular_files.change_mode(str(made), add=0o111)
    assert mode_of(made) == 0o664


@pytest.mark.parametrize("mode", [0o000, 0o300])
def test_a_directory_that_is_shut_to_us_can_be_opened(tmp_path: Path, mode: int) -> None:
    place = tmp_path / "shut"
    place.mkdir()
    place.chmod(mode)
    assert regular_files.change_mode(str(place), add=0o700)
    assert not regular_files.change_mode(str(place), add=0o700)
    assert mode_of(place) == 0o700


def test_a_private_directory_is_made_and_shut(tmp_path: Path) -> None:
    place = tmp_path / "private"
    for mode in (None, 0o755, 0o700):
        if mode is not None:
            place.chmod(mode)
        make_private(place)
        assert mode_of(place) == 0o700


def a_link(place: Path) -> None:
    (place.parent / "elsewhere").mkdir(mode=0o700)
    place.symlink_to("elsewhere")


def a_file(place: Path) -> None:
    place.touch()


def open_to_others(place: Path) -> None:
    place.mkdir()
    place.chmod(0o777)


def owned_by_somebody_else(place: Path) -> None:
    place.mkdir(mode=0o700)
    os.chown(place, SOMEBODY_ELSE, -1)


@pytest.mark.parametrize(
    "prepare", [a_link, a_file, open_to_others, pytest.param(owned_by_somebody_else, marks=needs_root)]
)
def test_what_others_could_have_made_is_not_private(prepare: Callable[[Path], None], tmp_path: Path) -> None:
    place = tmp_path / "private"
    prepare(place)
    before = mode_of(place)

    with pytest.raises(OSError):
        make_private(place)
    assert mode_of(place) == before


def test_a_new_directory_is_not_made_in_a_place_that_is_gone(tmp_path: Path) -> None:
    """A temporary place that somebody removed is the operator's to make."""
    with pytest.raises(FileNotFoundError):
        regular_files.private_directory(str(tmp_path / "gone" / "new"), must_be_new=True)
