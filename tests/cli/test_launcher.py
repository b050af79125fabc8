from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.project import ProjectBuilder
from tests.support.wire import CHECKOUT

LAUNCHER = CHECKOUT / "scripts" / "mcpgreen"
PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'


def launched(
    launcher: Path, *arguments: str, path: str = "/usr/bin:/bin", **env: str
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [str(launcher), *arguments],
        input=PING,
        capture_output=True,
        env={"PATH": path, "HOME": os.environ.get("HOME", "/"), **env},
        timeout=30,
        check=False,
    )


def answer(done: subprocess.CompletedProcess[bytes]) -> dict[str, object]:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)  # type: ignore[no-any-return]


PONG = {"jsonrpc": "2.0", "id": 1, "result": {}}


def test_it_serves_without_arguments(project: ProjectBuilder) -> None:
    done = launched(LAUNCHER, MCPGREEN_PYTHON=sys.executable, MCPBASH_PROJECT_ROOT=str(project.root))
    assert answer(done) == PONG


def test_it_passes_arguments_on(project: ProjectBuilder) -> None:
    assert (
        answer(launched(LAUNCHER, "serve", "--project-root", str(project.root), MCPGREEN_PYTHON=sys.executable)) == PONG
    )


def test_a_link_to_it_finds_the_checkout(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "link").symlink_to(LAUNCHER)
    (tmp_path / "server").symlink_to("inner/link")
    assert answer(launched(tmp_path / "server", MCPGREEN_PYTHON=sys.executable)) == PONG


def test_a_copy_finds_an_installed_package(tmp_path: Path) -> None:
    """A single file, put anywhere, with the package on Python's path."""
    (tmp_path / "bin").mkdir()
    copy = tmp_path / "bin" / "mcpgreen"
    shutil.copy(LAUNCHER, copy)
    python = tmp_path / "bin" / "python3"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n', encoding="utf-8")
    python.chmod(0o755)
    done = launched(copy, path=f"{tmp_path / 'bin'}:/usr/bin:/bin", PYTHONPATH=str(CHECKOUT))
    assert answer(done) == PONG


@pytest.mark.parametrize("where", ["checkout", "elsewhere"])
def test_without_a_fitting_python_it_says_so_on_stderr(tmp_path: Path, where: str) -> None:
    launcher = tmp_path / "scripts" / "mcpgreen"
    launcher.parent.mkdir()
    shutil.copy(LAUNCHER, launcher)
    if where == "checkout":
        (tmp_path / "Makefile").touch()
    empty = tmp_path / "bin"
    empty.mkdir()
    for program in ("sh", "dirname", "readlink"):
        found = shutil.which(program)
        assert found is not None
        (empty / program).symlink_to(found)
    done = launched(launcher, path=str(empty))
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"no Python >= 3.10" in done.stderr
    assert (b"make run" in done.stderr) == (where == "checkout")
