"""`make run`: the demonstration as people see it, and what setting up says meanwhile."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.terminal import at_terminal
from tests.support.wire import CHECKOUT, Wire, clean_environment

DEMO = CHECKOUT / "scripts" / "demo.py"
TITLES = ["1  Your script", "2  Progress", "3  Cancel", "4  A script asks", "5  A new tool", "6  The newest protocol"]


def in_pipe(**environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, str(DEMO)],
        capture_output=True,
        env=clean_environment(environment),
        timeout=120,
        check=False,
    )


def state_of_checkout() -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in (CHECKOUT / "project").rglob("*") if path.is_file()}


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
    assert state_of_checkout() == before


def test_where_only_ascii_can_be_written_it_writes_ascii() -> None:
    done = in_pipe(PYTHONIOENCODING="ascii", MCPGREEN_TOOL_ALLOWLIST="nothing")
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"<- Removed 3 drafts." in done.stdout
    assert b"#### 100%  done" in done.stdout


@pytest.mark.parametrize(("width", "env"), [(10, {"NO_COLOR": "1"}), (90, {})], ids=["narrow, no colour", "wide"])
def test_at_a_terminal_it_moves_and_fits(tmp_path: Path, width: int, env: dict[str, str]) -> None:
    seen = at_terminal([], cwd=tmp_path, width=width, env=env, program=[sys.executable, str(DEMO)])
    states = [state for line in seen.text.splitlines() for state in line.split("\r") if "█" in state]
    assert seen.status == 0
    assert len(states) > 10
    assert max(len(part) for line in seen.text.splitlines() for part in line.split("\r")) <= max(width, 30)
    assert ("\x1b[1m1  Your script" in seen.raw, "\x1b" in seen.raw) == ((False, False) if env else (True, True))


def test_a_terminal_that_understands_no_escapes_gets_none(tmp_path: Path) -> None:
    seen = at_terminal([], cwd=tmp_path, width=80, env={"TERM": "dumb"}, program=[sys.executable, str(DEMO)])
    assert seen.status == 0
    assert "\x1b" not in seen.raw
    assert "Now yours" in seen.text


def test_a_reader_who_leaves_early_is_no_failure() -> None:
    done = subprocess.run(
        ["bash", "-c", 'set -o pipefail; "$0" "$1" | head -n 2', sys.executable, str(DEMO)],
        capture_output=True,
        env=clean_environment(),
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"mcpgreen: a folder of scripts")


def test_the_example_that_is_shown_has_resources_and_a_prompt(tmp_path: Path) -> None:
    copy = tmp_path / "project"
    shutil.copytree(CHECKOUT / "project", copy, ignore=shutil.ignore_patterns(".registry"))
    explain = {"name": "explain", "arguments": {"topic": "pipes", "audience": "a child"}}
    with Wire(copy) as server:
        server.handshake()
        about = server.result("resources/read", {"uri": "example://about"})
        source = server.result("resources/read", {"uri": "source://hello"})
        explained = server.result("prompts/get", explain)
    assert about["contents"][0]["text"].startswith("# About this project")
    assert "Hello from" in source["contents"][0]["text"]
    assert explained["messages"][0]["content"]["text"].startswith("Explain pipes to a child.")


def set_up(tmp_path: Path, pip: str) -> subprocess.CompletedProcess[str]:
    """`make` with a Python whose venv holds a pip that says what we like: the real one would need the network."""
    environment = tmp_path / "env"
    fake = tmp_path / "python"
    fake.write_text(
        f"#!/bin/sh\nmkdir -p {environment}/bin\nprintf '#!/bin/sh\\n{pip}\\n' > {environment}/bin/python\n"
        f"chmod 755 {environment}/bin/python\n"
    )
    fake.chmod(0o755)
    return subprocess.run(
        ["make", "-C", str(CHECKOUT), f"PYTHON={fake}", f"VENV={environment}", f"{environment}/.runs"],
        capture_output=True,
        text=True,
        env=clean_environment({"PATH": os.environ["PATH"]}),
        timeout=120,
        check=False,
    )


def test_setting_up_names_what_is_installed(tmp_path: Path) -> None:
    done = set_up(tmp_path, "echo Collecting gevent; echo much else; echo Collecting ujson")
    told = [line for line in done.stdout.splitlines() if not line.startswith("make")]
    assert done.returncode == 0
    assert told[0].startswith("Making the environment ")
    assert told[1].startswith("Installing mcpgreen and what it needs")
    assert told[2:] == ["  gevent", "  ujson"]


def test_a_failed_installation_stops_the_setting_up(tmp_path: Path) -> None:
    done = set_up(tmp_path, "echo no network >&2; exit 1")
    assert done.returncode != 0
    assert "no network" in done.stderr
    assert not (tmp_path / "env" / ".runs").exists()
