"""dist/mcpgreen, the launcher with everything inside, copied elsewhere and started as clients do."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from scripts.launcher import install
from tests.support.launching import OUR_PYTHON, FirstStart, environment_in, started
from tests.support.prerequisites import require_program, without_privileges
from tests.support.wire import Wire, text_of

PONG = {"jsonrpc": "2.0", "id": 1, "result": {}}
SETTING_UP = b"mcpgreen: setting up "


def answer(done: subprocess.CompletedProcess[bytes]) -> Any:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_two_first_starts_at_the_same_time_both_serve(first_starts: list[FirstStart], cache: Path) -> None:
    """With dash and busybox, and a python3 that is too old first on the PATH. Nothing but answers is on stdout."""
    require_program("dash")
    require_program("busybox")
    assert [(each.status, json.loads(each.stdout)) for each in first_starts] == [(0, PONG), (0, PONG)]
    assert sum(each.stderr.count(SETTING_UP.decode()) for each in first_starts) == 1, first_starts
    assert sorted(each.name for each in (cache / "mcpgreen").iterdir()) == [environment_in(cache).name, "lock"]
    assert (cache / "mcpgreen").stat().st_mode & 0o777 == 0o700


def test_an_environment_has_no_program_that_cannot_run(cache: Path) -> None:
    """`mcpgreen` in it began with the path of a Python that was no more, and `config` could have named it."""
    programs = os.listdir(environment_in(cache) / "bin")
    assert [name for name in programs if not name.startswith("python")] == []


def test_it_becomes_the_server_and_names_itself(launcher: Path, cache: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(launcher)
    env = {"XDG_CACHE_HOME": str(cache), "MCPGREEN_PYTHON": sys.executable, "PATH": os.environ["PATH"]}
    with Wire(None, command=["./link", "serve"], env=env, cwd=tmp_path).greeted() as wire:
        assert wire.call_tool("hello")["isError"] is False
        told = text_of(wire.call_tool("getting_started"))
        running = Path(f"/proc/{wire.process.pid}/cmdline").read_bytes().split(b"\0")
    environment = environment_in(cache)
    assert running[:3] == [bytes(environment / "bin" / "python"), b"-I", bytes(environment / "start.py")]
    assert f'"command": "{tmp_path}/link"' in told


def without_a_package(environment: Path) -> None:
    shutil.rmtree(next(environment.glob("lib/python3*/site-packages/gevent")))


def test_a_broken_environment_is_made_anew(launcher: Path, home: Path, own_cache: Path) -> None:
    without_a_package(environment_in(own_cache))
    (own_cache / "mcpgreen" / "new-left-behind").mkdir()

    done = started([require_program("busybox"), "sh", str(launcher)], HOME=str(home), XDG_CACHE_HOME=str(own_cache))

    assert answer(done) == PONG
    assert done.stderr.count(SETTING_UP) == 1
    assert len(os.listdir(own_cache / "mcpgreen")) == len(("the environment", "lock"))
    assert SETTING_UP not in started([str(launcher)], XDG_CACHE_HOME=str(own_cache)).stderr


def test_an_environment_that_others_can_write_to_is_refused(launcher: Path, home: Path, own_cache: Path) -> None:
    (own_cache / "mcpgreen").chmod(0o770)
    done = started([str(launcher)], HOME=str(home), XDG_CACHE_HOME=str(own_cache))
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.decode() == (
        f"mcpgreen: {own_cache}/mcpgreen is open to others, who could change what is run. "
        f"Run: chmod 700 '{own_cache}/mcpgreen'\n"
    )


def test_an_environment_of_another_user_is_refused(launcher: Path, home: Path, own_cache: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    os.chown(own_cache / "mcpgreen", 65534, -1)
    done = started([str(launcher)], HOME=str(home), XDG_CACHE_HOME=str(own_cache))
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"belongs to another user" in done.stderr


def test_an_environment_behind_a_link_is_refused(launcher: Path, home: Path, own_cache: Path, tmp_path: Path) -> None:
    """Whoever made the link would choose where environments are made, and folders of older ones removed."""
    (own_cache / "mcpgreen").rename(tmp_path / "elsewhere")
    (own_cache / "mcpgreen").symlink_to(tmp_path / "elsewhere")
    done = started([str(launcher)], HOME=str(home), XDG_CACHE_HOME=str(own_cache))
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"mcpgreen is a link, or not a directory" in done.stderr


def test_a_home_that_is_read_only_is_told_with_the_remedy(launcher: Path, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir(mode=0o500)
    env = {"HOME": str(tmp_path / "home"), "MCPGREEN_PYTHON": OUR_PYTHON}
    done = started([str(launcher)], prefix=without_privileges(), **env)
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.decode() == (
        f"mcpgreen: {tmp_path}/home/.cache/mcpgreen cannot be created: Permission denied. "
        "Set XDG_CACHE_HOME to a directory that you can write to.\n"
    )


def test_environments_of_older_launchers_are_removed_unless_they_are_in_use(tmp_path: Path) -> None:
    for name in ("0.9.0-aaaa", "0.10.0-used", "0.10.0-ours", "0.10.0-same", "0.11.0-newer", "old-swept"):
        (tmp_path / name).mkdir()
    fd = os.open(tmp_path / "0.10.0-used", os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_SH)
        install._remove_older(str(tmp_path), str(tmp_path / "0.10.0-ours"))
    finally:
        os.close(fd)
    assert sorted(os.listdir(tmp_path)) == ["0.10.0-ours", "0.10.0-used", "0.11.0-newer"]


def test_a_server_that_runs_keeps_its_environment(launcher: Path, own_cache: Path) -> None:
    environment = environment_in(own_cache)
    with Wire(None, command=[str(launcher)], env={"XDG_CACHE_HOME": str(own_cache)}).greeted():
        install._remove_older(str(environment.parent), str(environment.parent / "9.9.9-newer"))
        assert environment.is_dir()
    install._remove_older(str(environment.parent), str(environment.parent / "9.9.9-newer"))
    assert not environment.exists()
