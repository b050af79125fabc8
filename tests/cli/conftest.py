"""The built wheel and the single file. Each is made once in a run, for all workers."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from scripts import build_launcher
from tests.support.launching import FIRST_START_SECS, OUR_PYTHON, PING, VERSION, FirstStart, with_old_python
from tests.support.once import directory_of_run
from tests.support.wheels import wheels_of_environment


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory for all workers of this run."""
    return directory_of_run(tmp_path_factory, "single-file")


@contextmanager
def only_one(shared: Path) -> Iterator[None]:
    with open(shared / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="session")
def wheels(shared: Path) -> list[Path]:
    """mcpgreen as `make dist` builds it, pip, and all that mcpgreen needs."""
    directory = shared / "wheels"
    with only_one(shared):
        if not directory.exists():
            (shared / "new-wheels").mkdir(exist_ok=True)
            wheels_of_environment(shared / "new-wheels")
            (shared / "new-wheels").rename(directory)
    return sorted(directory.glob("*.whl"))


@pytest.fixture(scope="session")
def launcher(shared: Path, wheels: list[Path]) -> Path:
    """The file of `make launcher OFFLINE=1`, for this Python."""
    path = shared / "bin dir" / "mcpgreen"
    with only_one(shared):
        if not path.exists():
            build_launcher.assemble(path, wheels, pythons=[VERSION])
    return path


@pytest.fixture(scope="session")
def home(shared: Path) -> Path:
    """A home with a Python that is not on the PATH."""
    place = shared / "home" / ".local" / "bin"
    with only_one(shared):
        if not place.exists():
            place.mkdir(parents=True)
            (place / f"python{VERSION}").symlink_to(OUR_PYTHON)
    return shared / "home"


@pytest.fixture(scope="session")
def first_starts(launcher: Path, home: Path, shared: Path) -> list[FirstStart]:
    """Two at the same time, by dash and by busybox, with a python3 that is too old on the PATH."""
    told = shared / "first-starts.json"
    with only_one(shared):
        if not told.exists():
            env = {"PATH": with_old_python(shared / "old"), "HOME": str(home), "XDG_CACHE_HOME": str(shared / "cache")}
            told.write_text(json.dumps(started_at_once(launcher, env)), encoding="utf-8")
    return [FirstStart(*each) for each in json.loads(told.read_text(encoding="utf-8"))]


def started_at_once(launcher: Path, env: dict[str, str]) -> list[FirstStart]:
    dash, busybox = shutil.which("dash"), shutil.which("busybox")
    shells = [[dash or "/bin/sh"], [busybox, "sh"] if busybox else ["/bin/sh"]]
    options = {"stdin": -1, "stdout": -1, "stderr": -1, "text": True, "env": env, "cwd": "/"}
    both = [subprocess.Popen([*shell, str(launcher)], **options) for shell in shells]
    for process in both:
        process.stdin.write(PING.decode())
        process.stdin.flush()
    done = [process.communicate(timeout=FIRST_START_SECS) for process in both]
    return [FirstStart(process.returncode, *texts) for process, texts in zip(both, done, strict=True)]


@pytest.fixture(scope="session")
def cache(first_starts: list[FirstStart], shared: Path) -> Path:
    """A cache directory with an environment that works."""
    assert [each.status for each in first_starts] == [0, 0], first_starts
    return shared / "cache"


@pytest.fixture
def own_cache(cache: Path, tmp_path: Path) -> Path:
    """One that a test may damage: by removing files, since they are those of the other one."""
    shutil.copytree(cache, tmp_path / "cache", symlinks=True, copy_function=os.link)
    (tmp_path / "cache" / "mcpgreen").chmod(0o700)
    return tmp_path / "cache"
