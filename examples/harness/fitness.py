"""Whether examples can be run here: mcpgreen, the programs that they need, and files as they were meant."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from examples.harness.ladder import Example
from examples.harness.workplace import NoServer, command

PATIENCE_SECS = 30
HOW_TO_GET = {
    "bash": "apt install bash, or brew install bash",
    "jq": "apt install jq, or brew install jq; without it, mcpgreen uses its own",
    "node": "apt install nodejs, or brew install node",
    "perl": "apt install perl, or brew install perl",
}


class Report(NamedTuple):
    lines: list[str]
    is_good: bool


def report_on(examples: list[Example]) -> Report:
    problems = [*_server(), *(line for example in examples for line in _damaged(example))]
    lines = problems or ["ok       mcpgreen"]
    needed: dict[str, list[str]] = {}
    for example in examples:
        for program in example.needs():
            needed.setdefault(program, []).append(example.name[:2])
    for program, numbers in sorted(needed.items()):
        place = shutil.which(program)
        remedy = HOW_TO_GET.get(program, "install it, or add its folder to PATH")
        shown = f"ok       {program}: {place}" if place else f"missing  {program} ({remedy})"
        lines.append(f"{shown}, for {' '.join(numbers)}")
        problems += [] if place else [program]
    lines += [] if shutil.which("jq") else [f"note     no jq: {HOW_TO_GET['jq'].partition('; ')[2]}"]
    cannot = [example.name for example in examples if not all(map(shutil.which, example.needs()))]
    if cannot:
        lines.append(f"Cannot be run: {', '.join(cannot)}")
    elif not problems:
        lines.append("All of them can be run." if len(examples) > 1 else f"{examples[0].name} can be run.")
    return Report(lines, not problems)


def _server() -> Iterator[str]:
    try:
        done = subprocess.run(
            [command(), "--version"], capture_output=True, encoding="utf-8", timeout=PATIENCE_SECS, check=False
        )
    except (NoServer, OSError, subprocess.TimeoutExpired) as error:
        yield f"missing  mcpgreen: {error}"
        return
    if done.returncode:
        yield f"missing  mcpgreen: {done.stderr.strip() or f'status {done.returncode}'}"


def _damaged(example: Example) -> Iterator[str]:
    for path in sorted(example.folder.rglob("*")):
        if not path.is_file() or ".registry" in path.parts or "__pycache__" in path.parts:
            continue
        with open(path, "rb") as file:
            first_line = file.readline()
        shown = f"{example.name}/{path.relative_to(example.folder).as_posix()}"
        if not first_line.startswith(b"#!"):
            continue
        if first_line.endswith(b"\r\n"):
            yield f"damaged  {shown} has Windows line endings (git config core.autocrlf input, and check it out again)"
        if not os.access(path, os.X_OK):
            yield f"damaged  {shown} is not executable (chmod +x {_relative(path)})"


def _relative(path: Path) -> str:
    return os.path.relpath(path)
