from __future__ import annotations

import os
from pathlib import Path

import pytest

from mcpgreen.files import writers
from mcpgreen.running.trust import Ground

OPEN = "can be written to by others (run mcpgreen validate --fix)"

only_root_gives_away = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project with a script two directories down, all of it fit to be trusted."""
    place = tmp_path / "project"
    script(place / "tools" / "sub" / "run.sh")
    for directory in (place, place / "tools", place / "tools" / "sub"):
        directory.chmod(0o755)
    return place


def script(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("", encoding="utf-8")
    path.chmod(0o755)
    return path


def problem(root: Path, path: str = "sub/run.sh", *, directory: str = "tools", may_be_link: bool = True) -> str | None:
    home = root / directory
    ground = Ground(os.path.realpath(home), root=str(root), named=str(home))
    return ground.problem_with(os.path.join(os.path.realpath(home), path), may_be_link=may_be_link)


@pytest.fixture
def shared_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """The user has no private group."""
    monkeypatch.setattr(writers, "_own_group", lambda: None)


def test_nothing_speaks_against_a_file_of_our_own(root: Path) -> None:
    assert problem(root) is None


@pytest.mark.parametrize("mode", [0o664, 0o646, 0o666])
@pytest.mark.usefixtures("shared_group")
def test_a_file_that_others_may_write_to_is_not_trusted(root: Path, mode: int) -> None:
    (root / "tools/sub/run.sh").chmod(mode)

    assert problem(root) == f"it {OPEN}"


@pytest.mark.parametrize("mode", [0o775, 0o777, 0o1777])
@pytest.mark.parametrize("directory", ["tools/sub", "tools"])
@pytest.mark.usefixtures("shared_group")
def test_a_directory_on_the_way_that_others_may_write_to_is_not_trusted(root: Path, mode: int, directory: str) -> None:
    (root / directory).chmod(mode)

    assert problem(root) == f"its directory {directory} {OPEN}"


def test_nor_is_the_project_itself(root: Path) -> None:
    root.chmod(0o777)

    assert problem(root) == f"the project directory {OPEN}"


def test_what_is_above_the_project_does_not_matter(root: Path) -> None:
    root.parent.chmod(0o777)

    assert problem(root) is None


def test_a_link_to_a_neighbour_is_followed(root: Path) -> None:
    (root / "tools/link").symlink_to("sub/run.sh")

    assert problem(root, "link") is None
    assert problem(root, "link", may_be_link=False) == "it is a symbolic link"


def test_the_directories_on_the_way_of_a_link_count(root: Path) -> None:
    (root / "tools/link").symlink_to(root / "tools" / "sub" / "run.sh")
    (root / "tools/sub").chmod(0o777)

    assert problem(root, "link") == f"its directory tools/sub {OPEN}"


def test_the_directory_of_a_link_counts_too(root: Path) -> None:
    (root / "tools/open").mkdir()
    (root / "tools/open/link").symlink_to("../sub/run.sh")
    (root / "tools/open").chmod(0o777)

    assert problem(root, "open/link") == f"its directory tools/open {OPEN}"


def test_a_link_that_others_could_point_elsewhere_while_we_look_is_not_trusted(root: Path) -> None:
    """It ends where it should, by way of a directory that is neither its own nor that of the script."""
    (root / "shared").mkdir()
    (root / "shared/hop").symlink_to("../tools/sub/run.sh")
    (root / "tools/link").symlink_to("../shared/hop")
    (root / "shared").chmod(0o777)

    assert problem(root, "link") == f"its directory shared {OPEN}"


def test_the_same_outside_the_project(root: Path) -> None:
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / "hop").symlink_to(root / "tools" / "sub" / "run.sh")
    (root / "tools/link").symlink_to(outside / "hop")

    assert problem(root, "link") is None
    outside.chmod(0o777)
    assert problem(root, "link") == "it is reached through a link outside the project that others can change"


@pytest.mark.parametrize("target", ["../../elsewhere.sh", "/bin/sh"])
def test_a_link_that_leads_out_is_not_trusted(root: Path, target: str) -> None:
    script(root / "elsewhere.sh")
    (root / "tools/sub/link").symlink_to(target)

    assert problem(root, "sub/link") == "it points outside tools/"


def test_a_link_to_itself_is_not_trusted(root: Path) -> None:
    (root / "tools/link").symlink_to("link")

    assert problem(root, "link") == "it cannot be examined: Too many levels of symbolic links"


def test_a_directory_that_is_a_link_counts_with_the_place_where_it_is_linked(root: Path) -> None:
    (root / "kinds").mkdir()
    (root / "kinds/tools").symlink_to("../tools")

    assert problem(root, directory="kinds/tools") is None
    (root / "kinds").chmod(0o777)
    assert problem(root, directory="kinds/tools") == f"its directory kinds {OPEN}"


def test_of_a_directory_elsewhere_the_ones_above_do_not_count(root: Path, tmp_path: Path) -> None:
    away = tmp_path / "open" / "-a b;c"
    script(away / "sub" / "run.sh")
    away.parent.chmod(0o777)
    ground = Ground(str(away), root=str(root))

    assert ground.problem_with(str(away / "sub/run.sh")) is None
    (away / "sub").chmod(0o777)
    found = ground.problem_with(str(away / "sub/run.sh"))
    assert found == "its directory -a b;c/sub can be written to by others (chmod go-w './-a b;c/sub')"


def test_what_is_no_file_is_not_trusted(root: Path) -> None:
    (root / "tools/sub/run.sh").unlink()
    os.mkfifo(root / "tools/sub/run.sh", 0o600)

    assert problem(root) == "it is not a regular file"


def test_of_a_hook_that_does_not_exist_nothing_is_known(root: Path) -> None:
    ground = Ground(str(root / "tools"), root=str(root))

    assert ground.problem_with_hook(str(root / "tools" / "no")) == "it cannot be examined: No such file or directory"


@only_root_gives_away
@pytest.mark.parametrize("given_away", ["tools/sub/run.sh", "tools/sub", "tools", "."])
def test_what_belongs_to_somebody_else_is_not_trusted(root: Path, given_away: str) -> None:
    os.chown(root / given_away, 12345, -1)

    assert f"belongs to another user (chown root {given_away})" in str(problem(root))


@only_root_gives_away
def test_a_link_of_somebody_else_is_not_trusted(root: Path) -> None:
    (root / "tools/link").symlink_to("sub/run.sh")
    os.chown(root / "tools/link", 12345, -1, follow_symlinks=False)

    assert "belongs to another user" in str(problem(root, "link"))
