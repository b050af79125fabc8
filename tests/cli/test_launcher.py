from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.foreign_modules import AT_START, PYTHON_PATHS, plant_traps
from tests.support.programs import completed
from tests.support.project import ProjectBuilder
from tests.support.wire import CHECKOUT

LAUNCHER = CHECKOUT / "scripts" / "mcpgreen"
PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'


def launched(
    launcher: Path, *arguments: str, path: str = "/usr/bin:/bin", cwd: Path | None = None, **env: str
) -> subprocess.CompletedProcess[bytes]:
    return completed(
        [str(launcher), *arguments],
        input=PING,
        env={"PATH": path, "HOME": os.environ.get("HOME", "/"), **env},
        cwd=cwd,
        encoding=None,
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


@pytest.mark.parametrize("python_path", PYTHON_PATHS)
@pytest.mark.parametrize("named", [{}, {"MCPGREEN_PYTHON": sys.executable}], ids=["own", "named"])
def test_it_imports_nothing_from_the_project(project: ProjectBuilder, python_path: str, named: dict[str, str]) -> None:
    trace = plant_traps(project.root, *AT_START)
    done = launched(LAUNCHER, cwd=project.root, PYTHONPATH=f"/none:{python_path}", **named)
    assert (answer(done), trace.exists()) == (PONG, False)


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


def checkout_with(tmp_path: Path, *, python: str, is_complete: bool) -> Path:
    """A checkout whose .venv has this script as its Python; its launcher."""
    launcher = tmp_path / "scripts" / "mcpgreen"
    launcher.parent.mkdir()
    shutil.copy(LAUNCHER, launcher)
    for part in ("mcpgreen", "project"):
        (tmp_path / part).symlink_to(CHECKOUT / part)
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    program = tmp_path / ".venv" / "bin" / "python"
    program.write_text(f"#!/bin/sh\n{python}\n", encoding="utf-8")
    program.chmod(0o755)
    if is_complete:
        (tmp_path / ".venv" / ".runs").touch()
    return launcher


GOOD = f'exec "{sys.executable}" "$@"'


def test_an_environment_that_is_half_made_is_tried_first(tmp_path: Path) -> None:
    """It has Python and not the packages: the server answered with a traceback."""
    launcher = checkout_with(tmp_path, python="echo broken >&2; exit 1", is_complete=False)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").write_text(f"#!/bin/sh\n{GOOD}\n", encoding="utf-8")
    (tmp_path / "bin" / "python3").chmod(0o755)
    done = launched(launcher, path=f"{tmp_path / 'bin'}:/usr/bin:/bin")
    assert (answer(done), done.stderr.count(b"broken")) == (PONG, 0)


@pytest.mark.parametrize(
    ("python", "reason"),
    [
        (None, b"does not exist"),
        ("exit 3", b"is older than Python 3.10"),
        ("exit 1", b"lacks mcpgreen's packages"),
    ],
)
def test_a_python_that_is_named_and_not_fit_is_a_reason_not_to_start(
    tmp_path: Path, python: str | None, reason: bytes
) -> None:
    """It took another one, or said that there is none at all."""
    launcher = checkout_with(tmp_path, python=GOOD, is_complete=True)
    named = tmp_path / "own"
    if python is not None:
        named.write_text(f"#!/bin/sh\n{python}\n", encoding="utf-8")
        named.chmod(0o755)
    done = launched(launcher, MCPGREEN_PYTHON=str(named))
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.startswith(b"mcpgreen: MCPGREEN_PYTHON=" + bytes(named) + b" " + reason)


@pytest.mark.parametrize("where", ["checkout", "elsewhere"])
def test_without_a_fitting_python_it_says_so_on_stderr(tmp_path: Path, where: str) -> None:
    launcher = tmp_path / "scripts" / "mcpgreen"
    launcher.parent.mkdir()
    shutil.copy(LAUNCHER, launcher)
    if where == "checkout":
        (tmp_path / "Makefile").touch()
    empty = tmp_path / "bin"
    empty.mkdir()
    done = launched(launcher, path=str(empty))
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"no Python >= 3.10" in done.stderr
    assert (b"make run" in done.stderr) == (where == "checkout")


def test_it_tells_the_server_where_it_is(project: ProjectBuilder, tmp_path: Path) -> None:
    """For whoever writes a client's configuration: the path that was called, which may be a link, from the root on."""
    project.tool("where", 'printf "%s" "$MCPGREEN_LAUNCHER"')
    (tmp_path / "server").symlink_to(LAUNCHER)
    done = completed(
        ["./server", "run-tool", "where", "--project-root", str(project.root)],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "MCPGREEN_PYTHON": sys.executable},
        encoding=None,
    )
    assert (json.loads(done.stdout)["content"][0]["text"], done.stderr) == (str(tmp_path / "server"), b"")


@pytest.mark.parametrize(
    ("place", "variables"),
    [
        (".local/bin", {}),
        (".pyenv/versions/3.12.1/bin", {}),
        ("elsewhere/versions/3.12.1/bin", {"PYENV_ROOT": "elsewhere"}),
        (".local/share/uv/python/cpython-3.12.1-linux-x86_64-gnu/bin", {}),
    ],
)
def test_a_python_that_is_not_on_the_path_is_found(tmp_path: Path, place: str, variables: dict[str, str]) -> None:
    """Clients that a desktop starts have a short PATH."""
    launcher = checkout_with(tmp_path, python="exit 1", is_complete=False)
    python = tmp_path / "home" / place / "python3.12"
    python.parent.mkdir(parents=True)
    python.write_text(f"#!/bin/sh\n{GOOD}\n", encoding="utf-8")
    python.chmod(0o755)
    env = {name: str(tmp_path / "home" / value) for name, value in variables.items()}
    assert answer(launched(launcher, path="/nonexistent", HOME=str(tmp_path / "home"), **env)) == PONG
