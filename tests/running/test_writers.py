"""A group that is the user's own counts as the user; other groups, and all users, do not."""

from __future__ import annotations

import os
import struct
import subprocess
from pathlib import Path

import pytest

from mcpgreen.files import regular_files, writers
from mcpgreen.files.writers import others_may_write, private_group
from tests.cli.test_commands import mcpgreen

ANN = ("ann", 1000, 1000)
OWN = ("ann", 1000, [])
ACL_VERSION, NO_ID = 2, 0xFFFFFFFF


@pytest.mark.parametrize(
    ("users", "groups", "expected"),
    [
        ([ANN], [OWN], 1000),
        ([ANN], [("ann", 1000, ["ann"])], 1000),
        ([ANN, ("root", 0, 0)], [("root", 0, ["bob"]), OWN], 1000),
        ([ANN], [OWN, OWN], 1000),  # by the network's database and by the file
        ([ANN, ("ann2", 1000, 1000)], [("ann", 1000, ["ann2"])], 1000),  # two names of one user
        ([ANN], [("ann", 1000, ["ann", "bob"])], None),
        ([ANN], [OWN, ("team", 1000, ["bob"])], None),  # the same gid by another name
        ([ANN, ("bob", 1001, 1000)], [OWN], None),  # the primary group of another user
        ([("ann", 1000, 100)], [("users", 100, [])], None),
        ([("ann", 1000, 20)], [("staff", 20, ["ann"])], None),
        ([("ann", 1000, 50)], [OWN, ("team", 50, [])], None),  # not the primary one
        ([ANN], [], None),
        ([("bob", 1001, 1001)], [OWN], None),  # as in a container, where a uid may have no name
        ([], [], None),
    ],
)
def test_which_group_is_private(users: list[writers.User], groups: list[writers.Group], expected: int | None) -> None:
    assert private_group(1000, users, groups) == expected


def file_with(path: Path, mode: int) -> Path:
    path.touch()
    path.chmod(mode)
    return path


@pytest.mark.parametrize(
    ("mode", "is_private", "expected"),
    [(0o644, False, False), (0o664, True, False), (0o664, False, True), (0o646, True, True), (0o666, True, True)],
)
def test_a_private_group_counts_as_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int, is_private: bool, expected: bool
) -> None:
    path = file_with(tmp_path / "file", mode)
    group = path.stat().st_gid if is_private else None
    monkeypatch.setattr(writers, "_own_group", lambda: group)

    assert others_may_write(str(path), path.lstat()) is expected
    with open(path, "rb") as file:
        assert others_may_write(file.fileno(), path.lstat()) is expected


def test_the_databases_are_not_asked_about_what_only_the_user_may_write_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writers, "_own_group", lambda: pytest.fail("asked"))
    path = file_with(tmp_path / "file", 0o644)

    assert not others_may_write(str(path), path.lstat())


def test_a_file_with_an_acl_is_not_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its group bits are the mask: user 12345 may write, the group may not."""
    path = file_with(tmp_path / "file", 0o644)
    owner, named, group, mask, others = (1, 6, NO_ID), (2, 6, 12345), (4, 4, NO_ID), (16, 6, NO_ID), (32, 4, NO_ID)
    entries = b"".join(struct.pack("<HHI", *entry) for entry in (owner, named, group, mask, others))
    try:
        os.setxattr(path, writers.ACL, struct.pack("<I", ACL_VERSION) + entries)
    except (OSError, AttributeError):
        pytest.skip("this file system has no ACLs")
    status = path.lstat()
    monkeypatch.setattr(writers, "_own_group", lambda: status.st_gid)

    assert status.st_mode & 0o777 == 0o664
    assert others_may_write(str(path), status)


def test_a_private_directory_of_an_earlier_umask_is_taken_and_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "cache"
    place.mkdir()
    place.chmod(0o775)
    monkeypatch.setattr(writers, "_own_group", lambda: None)
    with pytest.raises(PermissionError):
        regular_files.private_directory(str(place))
    monkeypatch.setattr(writers, "_own_group", lambda: place.stat().st_gid)
    os.close(regular_files.private_directory(str(place)))

    assert place.stat().st_mode & 0o777 == 0o700


def test_a_tool_that_was_written_with_a_umask_of_002_runs(tmp_path: Path) -> None:
    if writers._own_group() != os.getegid():
        pytest.skip("this user has no private group")
    lines = "umask 002; mkdir p p/tools; cd p; printf '#!/bin/sh\\necho hi\\n' >tools/hi.sh; chmod +x tools/hi.sh"
    subprocess.run(["sh", "-c", lines], cwd=tmp_path, check=True)
    done = mcpgreen("run-tool", "hi", cwd=tmp_path / "p")

    assert (tmp_path / "p/tools/hi.sh").stat().st_mode & 0o777 == 0o775
    assert (done.returncode, done.stderr) == (0, "")
    assert "hi" in done.stdout
