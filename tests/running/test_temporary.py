"""Where temporary files are made when TMPDIR or tmp_root is not what it should be."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.running.test_inherited import SERVE
from tests.support.prerequisites import without_privileges
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually
from tests.support.wire import Start, Wire, text_of

SHOW = 'echo "$TMPDIR $MCPBASH_STATE_DIR"'


def place_of_kind(kind: str, below: Path) -> Path:
    place = below / "place"
    if kind == "missing":
        return place / "further"
    if kind == "file":
        place.write_text("")
        return place
    place.mkdir()
    place.chmod({"read-only": 0o555, "open to all": 0o777, "open to the group": 0o770, "sticky": 0o1777}[kind])
    return place


UNUSABLE = ["missing", "file", "read-only", "open to all"]


@pytest.mark.parametrize("kind", UNUSABLE)
def test_a_tmpdir_that_will_not_do_is_not_made_and_the_systems_place_is_used(
    project: ProjectBuilder, tmp_path: Path, kind: str
) -> None:
    project.tool("show", SHOW)
    place = place_of_kind(kind, tmp_path)
    existed = place.exists()
    with Wire(project.root, command=[*without_privileges(), *SERVE], env={"TMPDIR": str(place)}).greeted() as wire:
        seen, state_dir = text_of(wire.call_tool("show")).split()
        assert (seen, os.path.dirname(state_dir)) == ("/tmp", "/tmp")
        assert wire.stop() == 0
    assert wire.stderr.count("TMPDIR is ") == 1
    assert place.exists() == existed


@pytest.mark.parametrize("kind", UNUSABLE)
def test_a_tmp_root_that_will_not_do_keeps_the_server_from_starting(
    project: ProjectBuilder, tmp_path: Path, kind: str
) -> None:
    place = place_of_kind(kind, tmp_path)
    existed = place.exists()
    env = {"MCPGREEN_TMP_ROOT": str(place)}
    with Wire(project.root, command=[*without_privileges(), *SERVE], env=env) as wire:
        assert wire.wait() == 1
        eventually(lambda: "or choose another directory" in wire.stderr)
    assert str(place) in wire.stderr
    assert place.exists() == existed


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory to a group")
@pytest.mark.parametrize(("kind", "is_warned"), [("sticky", False), ("open to the group", True)])
def test_a_directory_whose_group_could_replace_our_files_is_warned_about(
    project: ProjectBuilder, start: Start, tmp_path: Path, kind: str, is_warned: bool
) -> None:
    project.tool("show", SHOW)
    place = place_of_kind(kind, tmp_path)
    os.chown(place, -1, 12345)
    wire = start(tmp_root=place).greeted()
    assert str(place) in text_of(wire.call_tool("show"))
    assert wire.stop() == 0
    assert ("its group" in wire.stderr) == is_warned


def test_a_relative_tmp_root_is_meant_below_the_project(project: ProjectBuilder, start: Start) -> None:
    project.tool("show", SHOW)
    (project.root / "scratch").mkdir()
    wire = start(tmp_root="scratch", wire={"cwd": "/"}).greeted()
    assert f"{project.root}/scratch/" in text_of(wire.call_tool("show"))
