"""Which files may become icons."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mcpgreen.files.confined import Private
from mcpgreen.project.icons import MAX_ICON_BYTES, wire_icons


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    for name in ("tools/greet.png", "art/icon.png", "server.d/icon.svg", "server.d/env", ".env", ".git/icon.png"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"content")
    (tmp_path / "outside.png").write_bytes(b"secret")
    return root


def wire(project: Path, src: str, *, directory: str = "tools") -> tuple[int, list[str]]:
    private = Private(str(project), str(project / "server.d"))
    icons, complaints = wire_icons(
        [{"src": src}], directories=(os.path.normpath(project / directory),), private=private
    )
    return len(icons), complaints


@pytest.mark.parametrize("src", ["greet.png", "../art/icon.png", "../server.d/icon.svg"])
def test_a_picture_of_the_project_is_an_icon(project: Path, src: str) -> None:
    assert wire(project, src) == (1, [])


@pytest.mark.parametrize("src", ["../../outside.png", "{}/outside.png", "link.png", "../server.d/env", "../.env"])
def test_what_is_outside_or_private_is_none(project: Path, src: str) -> None:
    """Any file that the server can read became part of a list."""
    (project / "tools/link.png").symlink_to("../../outside.png")
    icons, (complaint,) = wire(project, src.format(project.parent))

    assert icons == 0
    assert complaint.endswith("is outside the project, or private; put the image next to the description")


@pytest.mark.parametrize("src", ["../.git/icon.png", "env.png"])
def test_nor_is_what_is_only_called_a_picture(project: Path, src: str) -> None:
    (project / "tools/env.png").symlink_to("../server.d/env")

    assert wire(project, src)[0] == 0


def test_a_picture_beside_a_description_elsewhere_is_an_icon(project: Path) -> None:
    assert wire(project, "outside.png", directory="..") == (1, [])


@pytest.mark.parametrize("src", ["nul\0", "loop.png", "pipe.png", "tools", "no.png", "huge.png", "x" * 300])
def test_what_cannot_be_read_is_none(project: Path, src: str) -> None:
    (project / "tools/loop.png").symlink_to("loop.png")
    os.mkfifo(project / "tools/pipe.png")
    (project / "tools/huge.png").write_bytes(b"x" * (MAX_ICON_BYTES + 1))

    icons, complaints = wire(project, src)

    assert (icons, len(complaints)) == (0, 1)
