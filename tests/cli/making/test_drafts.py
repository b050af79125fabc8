"""Files that appear together or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mcpgreen.cli.making.drafts import Draft
from mcpgreen.errors import ProjectError


@pytest.fixture
def draft(tmp_path: Path) -> Draft:
    """A directory with two files, and a file in a directory that exists."""
    (tmp_path / "old").mkdir()
    draft = Draft()
    draft[str(tmp_path / "new/deep/one")] = "1\n"
    draft[str(tmp_path / "new/two")] = "#!2\n"
    draft[str(tmp_path / "old/three")] = "3\n"
    return draft


def entries(root: Path) -> list[str]:
    return sorted(path.relative_to(root).as_posix() for path in root.rglob("*"))


def test_a_file_that_exists_keeps_everything_from_being_written(tmp_path: Path, draft: Draft) -> None:
    (tmp_path / "old/three").symlink_to("nowhere")

    with pytest.raises(ProjectError, match="already exists"):
        draft.write()

    assert entries(tmp_path) == ["old", "old/three"]


@pytest.mark.parametrize("call", ["fchmod", "mkdir"])
def test_an_interrupted_command_leaves_no_file(
    tmp_path: Path, draft: Draft, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """Ctrl-C comes when the call is done, and nobody knows yet: the worst moment."""
    real = getattr(os, call)

    def interrupted(*arguments: object, **options: object) -> None:
        monkeypatch.setattr(os, call, real)
        real(*arguments, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, call, interrupted)
    with pytest.raises(KeyboardInterrupt):
        draft.write()

    assert entries(tmp_path) == ["old"]


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    draft = Draft()
    draft[str(tmp_path / "file/below")] = ""

    with pytest.raises(ProjectError, match=f"^{tmp_path}/file/below: cannot write to it: Not a directory"):
        draft.write()

    assert entries(tmp_path) == ["file"]
