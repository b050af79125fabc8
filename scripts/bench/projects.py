"""The project folders that every subject serves. Same scripts, same names, same descriptions for all."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path

from client import encoded
from functions import FUNCTIONS
from mix import PROJECT as MIX
from mix import write_mix
from shell_tools import write_shell_tools

HERE = Path(__file__).resolve().parent

LINE = b"x" * 99 + b"\n"
MB = 1_000_000
RESOURCE_BYTES = {"1kb": 1000, "1mb": MB}
WATCHED_COUNT = 1000


def write_script(path: Path, body: str) -> None:
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    path.chmod(0o755)


def write_projects(folder: Path, names: Collection[str]) -> None:
    for name in sorted(names):
        _WRITERS[name](folder / name)


def _calls_project(root: Path) -> None:
    """Scripts to call: a trivial one, two that print much, one that has to be cancelled."""
    tools = root / "tools"
    tools.mkdir(parents=True)
    write_script(tools / "ok.sh", "echo ok")
    write_script(tools / "stuck.sh", "sleep 60 &\nsleep 60")
    for size_mb in (1, 10):
        data = root / f"{size_mb}mb.txt"
        data.write_bytes(LINE * (size_mb * MB // len(LINE)))
        write_script(tools / f"print{size_mb}mb.sh", f"cat '{data}'")


def write_tools(root: Path, count: int) -> None:
    """Many described tools to list. The trivial script serves as each of them."""
    tools = root / "tools"
    tools.mkdir(parents=True)
    for number in range(count):
        name = f"tool{number:04}"
        write_script(tools / f"{name}.sh", "echo ok")
        schema = {"type": "object", "properties": {"text": {"type": "string", "default": ""}}}
        description = f"Tool number {number} of the benchmark, described in a sentence of ordinary length."
        meta = {"name": name, "description": description, "inputSchema": schema}
        # One line without its newline: the C floor copies it into the answer as it stands.
        (tools / f"{name}.meta.json").write_bytes(encoded(meta).rstrip())


def _resources_project(root: Path) -> None:
    """Two files to read, and a tool, because every server has one."""
    write_tools(root, 1)
    (root / "resources").mkdir()
    for name, size_bytes in RESOURCE_BYTES.items():
        (root / "resources" / f"{name}.txt").write_bytes(LINE * (size_bytes // len(LINE)))


def _watched_project(root: Path) -> None:
    """Many files to subscribe to."""
    (root / "resources").mkdir(parents=True)
    (root / "tools").mkdir()
    for number in range(WATCHED_COUNT):
        (root / "resources" / f"{number:04}.txt").write_bytes(LINE)


def _python_project(root: Path) -> None:
    """The functions of the benchmark as scripts, for servers that run scripts."""
    (root / "tools").mkdir(parents=True)
    source = (HERE / "functions.py").read_text(encoding="utf-8")
    head, *definitions = source.partition("\nFUNCTIONS")[0].split("\n\n\n")
    imports = [line for line in head.splitlines() if line.startswith("import ")]
    for name, definition in zip(FUNCTIONS, definitions, strict=True):
        needed = [line for line in imports if f"{line.split()[1]}." in definition]
        if name == "ten":
            needed = [line for line in imports if line != "import yaml"]
        emit = f'mcp_tool.emit_text({name}(mcp_tool.require("name")))'
        lines = [f"#!{sys.executable}", *needed, "import mcp_tool", definition, emit, ""]
        if name == "marked":
            lines = [f"#!{sys.executable}", "import mcp_tool", f"@mcp_tool.tool\n{definition}", ""]
        elif name == "plain":
            lines = [f"#!{sys.executable}", f"print({FUNCTIONS[name]('')!r}, end='')", ""]
        schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
        script = root / "tools" / f"{name}.py"
        script.write_text("\n".join(lines), encoding="utf-8")
        script.chmod(0o755)
        meta = {"name": name, "inputSchema": schema, **({"warm": ["yaml"]} if "import yaml" in needed else {})}
        script.with_suffix(".meta.json").write_bytes(encoded(meta).rstrip())


def _shell_project(root: Path) -> None:
    (root / "tools").mkdir(parents=True)
    write_shell_tools(root / "tools")


_WRITERS: dict[str, Callable[[Path], None]] = {
    "calls": _calls_project,
    **{f"tools-{count}": partial(write_tools, count=count) for count in (1, 100, 1000)},
    **{name: partial(write_tools, count=100) for name in ("changing", "static")},
    "resources": _resources_project,
    "watched": _watched_project,
    "python": _python_project,
    MIX: write_mix,
    "shell": _shell_project,
}
