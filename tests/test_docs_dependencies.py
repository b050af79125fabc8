"""docs/dependencies.md tells the truth: its tools run with modules that lie where the page says."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.test_commands import mcpgreen
from tests.support.client import Client
from tests.support.prerequisites import require_program
from tests.support.project import ProjectBuilder
from tests.support.wire import text_of
from tests.test_docs_examples import CHECKOUT, blocks_of

BLOCKS = blocks_of(CHECKOUT / "docs" / "dependencies.md")
FILES = {block.info: block.text for block in BLOCKS if "/" in block.info}
[COMPLAINT] = [block.text for block in BLOCKS if block.language == "text"]


@pytest.fixture
def page(project: ProjectBuilder) -> Callable[[str], ProjectBuilder]:
    """Writes a file of the page."""

    def take(name: str) -> ProjectBuilder:
        is_program = FILES[name].startswith("#!")
        project.write(name, FILES[name]).chmod(0o755 if is_program else 0o644)
        return project

    return take


# uv itself may want the network. What is ours is that it is found, and started with the script.
STAND_IN = f"""#!/bin/sh
[ "$1 $2 $3" = "run --quiet --script" ] || exit 2
shift 3
exec '{sys.executable}' "$@"
"""


def test_a_script_of_uv_runs(
    page: Callable[[str], ProjectBuilder], speak: Callable[..., Client], tmp_path: Path
) -> None:
    page("tools/shout.py")
    uv = tmp_path / "bin" / "uv"
    uv.parent.mkdir()
    uv.write_text(STAND_IN, encoding="utf-8")
    uv.chmod(0o755)
    client = speak(env={"PATH": f"{uv.parent}:{os.environ['PATH']}"})

    assert text_of(client.call_tool("shout", {"text": "hi"})) == "HI"


def test_a_script_of_uv_is_described_and_missed_without_it(page: Callable[[str], ProjectBuilder]) -> None:
    project = page("tools/shout.py")
    done = mcpgreen("validate", "--project-root", str(project.root), env={"PATH": "/usr/bin:/bin"})

    if shutil.which("uv", path="/usr/bin:/bin") is None:
        assert "tools/shout.py is for the interpreter uv" in done.stdout
    listed = mcpgreen("list", "tools", "--project-root", str(project.root))
    assert "Say something loudly" in listed.stdout


def test_an_environment_of_the_project_is_used(
    page: Callable[[str], ProjectBuilder], speak: Callable[..., Client]
) -> None:
    page("server.d/env.sh")
    project = page("tools/wave.py")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", project.root / ".venv"], check=True, timeout=120)

    done = mcpgreen("validate", "--project-root", str(project.root))
    said = [line for line in done.stdout.splitlines() if line.startswith("✗")]
    assert said == [COMPLAINT.strip().replace("PROJECT", str(project.root))]

    [library] = (project.root / ".venv" / "lib").glob("python*/site-packages")
    (library / "greeting.py").write_text("def wave(name): return f'o/ {name}'\n", encoding="utf-8")
    assert mcpgreen("validate", "--project-root", str(project.root)).returncode == 0
    assert text_of(speak().call_tool("wave", {"name": "Ada"})) == "o/ Ada"


def test_node_finds_the_modules_of_the_project(
    page: Callable[[str], ProjectBuilder], speak: Callable[..., Client]
) -> None:
    require_program("node")
    project = page("tools/bow.cjs")
    project.write("node_modules/greeting/index.js", "exports.bow = (name) => `bows to ${name}`;\n")

    assert text_of(speak().call_tool("bow", {"name": "Ada"})) == "bows to Ada\n"


def test_perl_finds_the_modules_of_the_project(
    page: Callable[[str], ProjectBuilder], speak: Callable[..., Client]
) -> None:
    require_program("perl")
    project = page("tools/nod.pl")
    project.write("local/lib/perl5/Greeting.pm", "package Greeting;\nsub nod { return 'nods' }\n1;\n")

    assert text_of(speak().call_tool("nod")) == "nods\n"


def test_every_file_of_the_page_is_tried() -> None:
    assert set(FILES) == {"tools/shout.py", "server.d/env.sh", "tools/wave.py", "tools/bow.cjs", "tools/nod.pl"}
