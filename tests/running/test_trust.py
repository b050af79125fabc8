from __future__ import annotations

import os
from pathlib import Path

import pytest

from mcpgreen.running.trust import problem_with


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory with a file, both fit to be trusted."""
    directory = tmp_path / "server.d"
    directory.mkdir(mode=0o755)
    (directory / "hook.sh").write_text("", encoding="utf-8")
    (directory / "hook.sh").chmod(0o644)
    return directory


def problem(place: Path) -> str | None:
    return problem_with(str(place / "hook.sh"), str(place))


def test_nothing_speaks_against_a_file_of_our_own(place: Path) -> None:
    assert problem(place) is None


@pytest.mark.parametrize("mode", [0o664, 0o646, 0o666])
def test_a_file_that_others_may_write_to_is_not_trusted(place: Path, mode: int) -> None:
    (place / "hook.sh").chmod(mode)

    assert problem(place) == "it may be written to by others (chmod go-w)"


@pytest.mark.parametrize("mode", [0o775, 0o777, 0o1777])
def test_a_directory_that_others_may_write_to_is_not_trusted(place: Path, mode: int) -> None:
    place.chmod(mode)

    assert problem(place) == "its directory server.d may be written to by others (chmod go-w)"


def test_a_link_is_not_trusted_wherever_it_leads(place: Path) -> None:
    (place / "hook.sh").rename(place / "real.sh")
    (place / "hook.sh").symlink_to("real.sh")

    assert problem(place) == "it is a symbolic link"


def test_a_linked_directory_is_not_trusted(place: Path) -> None:
    place.rename(place.with_name("elsewhere"))
    place.symlink_to("elsewhere")

    assert problem(place) == "its directory server.d is a symbolic link"


def test_what_is_no_file_is_not_trusted(place: Path) -> None:
    (place / "hook.sh").unlink()
    os.mkfifo(place / "hook.sh", 0o600)

    assert problem(place) == "it is no regular file"


def test_what_does_not_exist_is_not_trusted(place: Path) -> None:
    (place / "hook.sh").unlink()

    assert problem(place) == "it cannot be examined: No such file or directory"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("given_away", ["hook.sh", "."])
def test_what_belongs_to_somebody_else_is_not_trusted(place: Path, given_away: str) -> None:
    os.chown(place / given_away, 12345, -1)

    assert str(problem(place)).endswith("belongs to another user")
