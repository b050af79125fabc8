"""From nothing to a tool in an editor, as on the first screen of the README: installed, made, configured, called.

The official client starts what stands in the file that `config --install` has written, and nothing else.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

import pytest

from tests.support.foreign_modules import AT_START, PYTHON_PATHS, plant_traps
from tests.support.launching import with_old_python
from tests.support.prerequisites import require_module, require_program
from tests.support.programs import completed

anyio = require_module("anyio")
mcp = require_module("mcp")
stdio_client = require_module("mcp.client.stdio").stdio_client

PATIENCE_SECS = 60.0


@pytest.fixture(scope="module")
def program(wheels: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`mcpgreen` of a fresh environment with the built wheel in it."""
    environment = tmp_path_factory.mktemp("installed") / "venv"
    venv.EnvBuilder(symlinks=True, with_pip=False).create(environment)
    own = next(wheel for wheel in wheels if wheel.name.startswith("mcpgreen-"))
    pip = [sys.executable, "-m", "pip", "--python", str(environment / "bin" / "python")]
    options = ["--quiet", "--no-compile", "--no-index", "--no-cache-dir", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", *options, "--find-links", str(own.parent), str(own)], check=True)
    return environment / "bin" / "mcpgreen"


def a_first_minute(command: Sequence[str], directory: Path, env: dict[str, str]) -> dict[str, Any]:
    """Make a project in an empty directory, add a tool, tell Cursor. The entry in its file."""

    def mcpgreen(*arguments: str, cwd: Path) -> None:
        done = subprocess.run([*command, *arguments], cwd=cwd, env=env, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, ""), done

    (directory / "work").mkdir()
    mcpgreen("new", "demo", "--no-hello", cwd=directory / "work")
    root = directory / "work" / "demo"
    mcpgreen("scaffold", "tool", "hello", cwd=root)
    mcpgreen("config", "--client", "cursor", "--install", cwd=root)
    servers = json.loads((Path(env["HOME"]) / ".cursor" / "mcp.json").read_text(encoding="utf-8"))["mcpServers"]
    assert list(servers) == ["demo"]
    entry: dict[str, Any] = servers["demo"]
    return entry


def answer_of_hello(entry: dict[str, Any], errors: TextIO, *, before: Sequence[str] = (), **more: str) -> str:
    """What the tool says to a client that was started from a desktop. `before` stands before the entry's command, and
    `more` are variables that the entry does not have."""
    variables = [f"{name}={value}" for name, value in {**more, **entry.get("env", {})}.items()]
    words = ["env", "-i", *variables, *before, entry["command"], *entry["args"]]
    parameters = mcp.StdioServerParameters(command=words[0], args=words[1:], cwd="/")

    async def call() -> str:
        with anyio.fail_after(PATIENCE_SECS):
            async with mcp.Client(stdio_client(parameters, errlog=errors)) as client:
                result = await client.call_tool("hello", {"name": "Ada"})
        return "".join(block.text for block in result.content if block.type == "text")

    said: str = anyio.run(call)
    return said


@pytest.fixture
def errors(tmp_path: Path) -> Iterator[TextIO]:
    """Where servers write stderr: nothing is there to be said."""
    with (tmp_path / "stderr").open("w+", encoding="utf-8") as file:
        yield file
        file.seek(0)
        assert file.read() == ""


def test_an_installed_wheel(program: Path, tmp_path: Path, errors: TextIO) -> None:
    (tmp_path / "home").mkdir()
    entry = a_first_minute([str(program)], tmp_path, {"PATH": os.defpath, "HOME": str(tmp_path / "home")})
    assert entry["command"] == str(program)
    assert "Hello, Ada!" in answer_of_hello(entry, errors)


@pytest.mark.parametrize("python_path", PYTHON_PATHS)
def test_the_installed_command_imports_nothing_from_the_project(
    program: Path, tmp_path: Path, python_path: str
) -> None:
    """The script that pip writes began with `import re`, and Python itself with sitecustomize.py."""
    trace = plant_traps(tmp_path, *AT_START)
    tool = tmp_path / "tools" / "show.sh"
    tool.parent.mkdir()
    tool.write_text('#!/bin/sh\nprintf %s "$PYTHONPATH"\n', encoding="utf-8")
    tool.chmod(0o755)
    link = tmp_path / "linked"
    link.symlink_to(program)
    env = {"PATH": os.defpath, "HOME": str(tmp_path), "MCPGREEN_TOOL_ENV_MODE": "allowlist"}
    env |= {"MCPGREEN_TOOL_ENV_ALLOWLIST": "PYTHONPATH", "PYTHONPATH": f"/none:{python_path}"}
    done = completed([link, "run-tool", "show"], cwd=tmp_path, env=env)

    assert (done.returncode, trace.exists()) == (0, False), done.stderr
    shown = json.loads(done.stdout)["content"][0]["text"]
    assert shown.startswith(f"/none:{python_path}:")  # what the person has there, and then the SDK


@pytest.mark.parametrize("shell", [["dash"], ["busybox", "sh"]], ids=lambda words: words[0])
def test_the_single_file_copied_elsewhere(
    launcher: Path, cache: Path, tmp_path: Path, errors: TextIO, shell: list[str]
) -> None:
    """After two first starts at the same time, see the fixtures. A python3 that is too old is first on the PATH."""
    shell = [require_program(shell[0]), *shell[1:]]
    (tmp_path / "home").mkdir()
    copy = Path(shutil.copy(launcher, tmp_path / "home" / "mcpgreen"))
    path = f"{with_old_python(tmp_path / 'old')}{os.pathsep}{os.defpath}"
    env = {"PATH": path, "HOME": str(tmp_path / "home"), "XDG_CACHE_HOME": str(cache)}
    entry = a_first_minute([*shell, str(copy)], tmp_path, env)
    assert entry["command"] == str(copy)
    assert "Hello, Ada!" in answer_of_hello(entry, errors, before=shell, PATH=path, XDG_CACHE_HOME=str(cache))
