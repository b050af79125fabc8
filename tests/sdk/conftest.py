"""A bench for tool scripts: the environment of a call, a pipe on descriptor 97, and what the script left behind."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

SDK = Path(__file__).parents[2] / "mcpgreen" / "sdk"
JSON_TOOL = shutil.which("jq") or shutil.which("gojq")
STREAM = "/dev/fd/97"
# The descriptor moves to 97 inside the child: a parent that dup2()s onto 97 could hit one of pytest's own files.
ON_97 = 'exec 97>&"$1"; eval "exec $1>&-"; shift; exec "$@"'


@dataclass(frozen=True)
class Run:
    """How one script ended."""

    exit_code: int
    stdout: str
    stderr: str
    lines: list[Any]
    error: Any
    resources: Any

    @property
    def result(self) -> Any:
        return json.loads(self.stdout)

    @property
    def params(self) -> list[Any]:
        return [line["params"] for line in self.lines]


class Bench:
    def __init__(self, directory: Path, mode: str) -> None:
        self.directory = directory
        self.mode = mode
        self.cancel_file = directory / "cancelled"
        self.debug_log = directory / "debug.log"
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(directory),
            "LANG": "C",
            "MCP_SDK": str(SDK),
            "MCP_TOOL_NAME": "bench",
            "MCP_TOOL_ERROR_FILE": str(directory / "error.json"),
            "MCP_TOOL_RESOURCES_FILE": str(directory / "resources.json"),
            "MCP_TOOL_META_JSON": "{}",
            "MCP_PROGRESS_STREAM": STREAM,
            "MCP_LOG_STREAM": STREAM,
            "MCP_PROGRESS_TOKEN": "",
            "MCP_CANCEL_FILE": str(self.cancel_file),
            "MCPBASH_DEBUG_LOG": str(self.debug_log),
            "MCPBASH_MODE": mode,
            "MCPBASH_JSON_TOOL": "jq" if mode == "full" else "none",
            "MCPBASH_JSON_TOOL_BIN": (JSON_TOOL or "") if mode == "full" else "",
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def roots(self, *paths: Path) -> None:
        self.env["MCP_ROOTS_PATHS"] = "\n".join(map(str, paths))
        self.env["MCP_ROOTS_COUNT"] = str(len(paths))

    def shell(self, body: str, arguments: Any = None, *, is_heard: bool = True, **env: str) -> Run:
        script = self.directory / "tool.sh"
        script.write_text(f'source "${{MCP_SDK:?}}/tool-sdk.sh"\n{body}\n', encoding="utf-8")
        return self._run(["bash", str(script)], arguments, is_heard, env)

    def python(self, body: str, arguments: Any = None, *, is_heard: bool = True, **env: str) -> Run:
        script = self.directory / "tool.py"
        head = 'import os, sys\nsys.path.insert(0, os.environ["MCP_SDK"])\nimport mcp_tool\n'
        script.write_text(f"{head}{body}\n", encoding="utf-8")
        return self._run([sys.executable, str(script)], arguments, is_heard, env)

    def _run(self, command: list[str], arguments: Any, is_heard: bool, env: dict[str, str]) -> Run:
        whole_env = {**self.env, "MCP_TOOL_ARGS_JSON": json.dumps(arguments or {}), **env}
        reader, writer = os.pipe()
        with open(reader, encoding="utf-8") as stream:
            if not is_heard:
                stream.close()
            try:
                ended = subprocess.run(
                    ["bash", "-c", ON_97, "bench", str(writer), *command],
                    env=whole_env,
                    cwd=self.directory,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    pass_fds=(writer,),
                    timeout=20,
                )
            finally:
                os.close(writer)
            lines = [json.loads(line) for line in stream] if is_heard else []
        return Run(
            exit_code=ended.returncode,
            stdout=ended.stdout.decode("utf-8"),
            stderr=ended.stderr.decode("utf-8"),
            lines=lines,
            error=_json_of(Path(self.env["MCP_TOOL_ERROR_FILE"])),
            resources=_json_of(Path(self.env["MCP_TOOL_RESOURCES_FILE"])),
        )


def _json_of(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


@pytest.fixture
def full(tmp_path: Path) -> Bench:
    """A host with a JSON tool."""
    if JSON_TOOL is None:
        pytest.skip("neither jq nor gojq is on PATH")
    return Bench(tmp_path, "full")


@pytest.fixture
def minimal(tmp_path: Path) -> Bench:
    """A host without one."""
    return Bench(tmp_path, "minimal")


@pytest.fixture(params=["full", "minimal"])
def either(request: pytest.FixtureRequest) -> Bench:
    """Both hosts, one after the other: the behaviour must not depend on a JSON tool."""
    bench: Bench = request.getfixturevalue(request.param)
    return bench
