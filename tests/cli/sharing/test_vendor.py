"""`vendor`: a project that serves with a copy of the runtime beside it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_commands import mcpgreen
from tests.support.foreign_modules import AT_START, PYTHON_PATHS, plant_traps
from tests.support.programs import completed


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("vendored")
    mcpgreen("new", "demo", "--lang", "sh", cwd=place)
    done = mcpgreen("vendor", cwd=place / "demo")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith(f"Serve with {place}/demo/run-server.sh\n")
    return place / "demo"


def run_server(root: Path, *arguments: str, cwd: str = "/", **more: str) -> subprocess.CompletedProcess[str]:
    """By a Python that has none of our packages."""
    env = {"PATH": os.defpath, "MCPGREEN_PYTHON": os.path.realpath(sys.executable), **more}
    command = [str(root / "run-server.sh"), *arguments]
    ping = '{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n'
    return completed(command, env=env, cwd=cwd, input=ping)


def test_it_serves_and_obeys_commands(root: Path) -> None:
    served = run_server(root)
    assert (served.returncode, json.loads(served.stdout)) == (0, {"jsonrpc": "2.0", "id": 1, "result": {}})
    ran = run_server(root, "run-tool", "hello")
    assert json.loads(ran.stdout)["content"][0]["text"] == "Hello, World!\n"
    entry = json.loads(run_server(root, "config", "--client", "vscode", "--scope", "project", HOME="/none").stdout)
    assert entry["servers"]["demo"]["command"] == "${workspaceFolder}/run-server.sh"


@pytest.mark.parametrize("python_path", PYTHON_PATHS)
def test_it_imports_nothing_from_the_project(root: Path, tmp_path: Path, python_path: str) -> None:
    """The json.py of a project was enough to be run by its run-server.sh."""
    trace = plant_traps(tmp_path, *AT_START)
    served = run_server(root, cwd=str(tmp_path), PYTHONPATH=f"/none:{python_path}")
    assert (served.returncode, trace.exists()) == (0, False), served.stderr


@pytest.mark.parametrize("python_path", PYTHON_PATHS)
def test_a_start_by_hand_imports_nothing_from_the_project(root: Path, tmp_path: Path, python_path: str) -> None:
    """Without the packages of this machine's Python, which may import anything before we are asked."""
    trace = plant_traps(tmp_path)
    command = [os.path.realpath(sys.executable), "-S", str(root / ".mcpgreen/start.py"), "--version"]
    env = {"PATH": os.defpath, "PYTHONPATH": f"/none:{python_path}"}
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, trace.exists()) == (0, False), done.stderr


def test_a_copy_that_was_changed_is_noticed(root: Path) -> None:
    run_server(root)  # Python may have compiled something meanwhile, and that is no change
    done = mcpgreen("vendor", "--verify", cwd=root)
    assert (done.returncode, done.stderr) == (0, "")

    changed = root / ".mcpgreen/lib/mcpgreen/journal.py"
    before = changed.read_text(encoding="utf-8")
    changed.write_text(before + "# changed\n", encoding="utf-8")
    try:
        done = mcpgreen("vendor", "--verify", cwd=root)
        assert (done.returncode, done.stdout) == (1, "")
        assert "it was changed after it was copied; replace it with vendor --upgrade" in done.stderr

        refused = mcpgreen("vendor", cwd=root)
        assert (refused.returncode, refused.stdout) == (1, "")
        assert "replace it with --upgrade" in refused.stderr

        assert mcpgreen("vendor", "--upgrade", cwd=root).returncode == 0
        assert changed.read_text(encoding="utf-8") == before
    finally:
        changed.write_text(before, encoding="utf-8")


def test_what_is_missing_is_not_verified_and_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    mcpgreen("new", "demo", "--no-hello", cwd=tmp_path)
    before = sorted((tmp_path / "demo").iterdir())

    planned = mcpgreen("vendor", "--dry-run", cwd=tmp_path / "demo")
    verified = mcpgreen("vendor", "--verify", cwd=tmp_path / "demo")

    assert (planned.returncode, verified.returncode) == (0, 1)
    assert "Would write" in planned.stdout
    assert "create one with mcpgreen vendor" in verified.stderr
    assert sorted((tmp_path / "demo").iterdir()) == before
