"""`make run`: the demonstration as people see it, and what setting up says meanwhile."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.programs import completed
from tests.support.terminal import at_terminal
from tests.support.wire import CHECKOUT, clean_environment

DEMO = CHECKOUT / "scripts" / "demo.py"
TITLES = ["1  Your script", "2  Progress", "3  Cancel", "4  A script asks", "5  A new tool", "6  The newest protocol"]


def in_pipe(**environment: str) -> subprocess.CompletedProcess[bytes]:
    return completed([sys.executable, str(DEMO)], env=clean_environment(environment), encoding=None)


def state_of_checkout() -> dict[str, int]:
    """Without `.registry/`, which other tests write that serve the same project at the same time."""
    files = (path for path in (CHECKOUT / "project").rglob("*") if path.is_file() and ".registry" not in path.parts)
    return {str(path): path.stat().st_mtime_ns for path in files}


def test_in_a_pipe_it_is_plain_and_leaves_the_checkout_alone() -> None:
    before = state_of_checkout()
    done = in_pipe(PYTHONIOENCODING="utf-8")
    text = done.stdout.decode()
    assert (done.returncode, done.stderr) == (0, b"")
    assert [title for title in TITLES if f"\n{title}" not in text] == []
    assert "\x1b" not in text
    assert "\r" not in text
    assert text.count("█ 100%  done") == 1
    assert re.search(r"Process \d+ was gone after \d+ ms\.", text)
    assert text.count("← Removed 3 drafts.") == 2
    assert "← notifications/tools/list_changed after" in text
    assert "← You rolled a " in text
    assert max(map(len, text.splitlines())) <= 100
    assert text.endswith("\nNext: scripts/mcpgreen new ../my-server, then docs/tutorial.md, docs/clients.md\n")
    assert state_of_checkout() == before


@pytest.mark.parametrize(("width", "env"), [(10, {"NO_COLOR": "1"}), (90, {})], ids=["narrow, no colour", "wide"])
def test_at_a_terminal_it_moves_and_fits(tmp_path: Path, width: int, env: dict[str, str]) -> None:
    seen = at_terminal([], cwd=tmp_path, width=width, env=env, program=[sys.executable, str(DEMO)])
    states = [state for line in seen.text.splitlines() for state in line.split("\r") if "█" in state]
    assert seen.status == 0
    assert len(states) > 10
    assert max(len(part) for line in seen.text.splitlines() for part in line.split("\r")) <= max(width, 30)
    assert ("\x1b[1m1  Your script" in seen.raw, "\x1b" in seen.raw) == ((False, False) if env else (True, True))


def set_up(tmp_path: Path, pip: str) -> subprocess.CompletedProcess[str]:
    """`make` with a Python whose venv holds a pip that says what we like: the real one would need the network."""
    environment = tmp_path / "env"
    fake = tmp_path / "python"
    fake.write_text(
        f"#!/bin/sh\nmkdir -p {environment}/bin\nprintf '#!/bin/sh\\n{pip}\\n' > {environment}/bin/python\n"
        f"chmod 755 {environment}/bin/python\n"
    )
    fake.chmod(0o755)
    return completed(
        ["make", "-C", str(CHECKOUT), f"PYTHON={fake}", f"VENV={environment}", f"{environment}/.runs"],
        env=clean_environment({"PATH": os.environ["PATH"]}),
    )


def test_a_failed_installation_stops_the_setting_up(tmp_path: Path) -> None:
    done = set_up(tmp_path, "echo no network >&2; exit 1")
    assert done.returncode != 0
    assert "no network" in done.stderr
    assert not (tmp_path / "env" / ".runs").exists()
