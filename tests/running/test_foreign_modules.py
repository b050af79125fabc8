"""Files of a project that are called like modules of Python: nobody imports them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.foreign_modules import PYTHON_PATHS, plant_traps
from tests.support.project import ProjectBuilder
from tests.support.wire import CHECKOUT, Start, text_of


@pytest.fixture
def traps(project: ProjectBuilder) -> Path:
    return plant_traps(project.root)


@pytest.mark.parametrize("python_path", PYTHON_PATHS)
@pytest.mark.parametrize("way", ["-m", "-c", "launcher"])
def test_a_server_started_in_the_project_imports_nothing_from_it(
    project: ProjectBuilder, start: Start, traps: Path, way: str, python_path: str
) -> None:
    """A tool that saves a file in its working directory was enough to run code in the server."""
    project.tool("picky", "echo ran", inputSchema={"type": "object", "properties": {"x": {"pattern": "^a"}}})
    project.write("tools/yaml.meta.yaml", "description: x\n")
    project.tool("yaml", "echo ran")
    program = "import sys; from mcpgreen.__main__ import main; sys.exit(main())"
    command = {
        "-m": [sys.executable, "-m", "mcpgreen", "serve"],
        "-c": [sys.executable, "-c", program, "serve"],
        "launcher": [str(CHECKOUT / "scripts" / "mcpgreen"), "serve"],
    }[way]
    env = {"MCPGREEN_PYTHON": sys.executable, "PYTHONPATH": f"{CHECKOUT}:{python_path}"}
    wire = start(wire={"command": command, "cwd": project.root}, env=env).greeted()

    assert text_of(wire.call_tool("picky", {"x": "a"})) == "ran\n"
    assert wire.call_tool("picky", {"x": "b"})["isError"] is True
    wire.send_bytes(b"{not json\n")
    wire.request("ping")
    assert wire.stop() == 0
    assert not traps.exists(), traps.read_text(encoding="utf-8")
