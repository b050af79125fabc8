"""A bench for tool scripts: the environment of a call, a pipe on descriptor 97, and what the script left behind."""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import pytest

from tests.support.prerequisites import require_program
from tests.support.programs import completed

SDK = Path(__file__).parents[2] / "mcpgreen" / "sdk"
OWN_TOOL = SDK / "json-tool"
# jq, gojq or json-tool: with which the whole suite is run. By itself with gojq, which starts in a tenth of jq's time.
CHOSEN_TOOL = os.environ.get("MCPGREEN_TEST_JSON_TOOL", "")
ANY_TOOL = shutil.which(CHOSEN_TOOL or "gojq") or shutil.which(CHOSEN_TOOL or "jq") or str(OWN_TOOL)
if CHOSEN_TOOL not in ("", Path(ANY_TOOL).name):
    raise pytest.UsageError(f"MCPGREEN_TEST_JSON_TOOL: there is no {CHOSEN_TOOL}")
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
    def __init__(self, directory: Path, json_tool: str, path: str = os.environ["PATH"]) -> None:
        self.directory = directory
        self.answer: Callable[[Any], str] | None = None
        self.cancel_file = directory / "cancelled"
        self.debug_log = directory / "debug.log"
        self.env = {
            "PATH": path,
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
            "MCPBASH_MODE": "full" if json_tool else "minimal",
            "MCPBASH_JSON_TOOL": os.path.basename(json_tool) if json_tool else "none",
            "MCPBASH_JSON_TOOL_BIN": json_tool,
            "MCPGREEN_PYTHON": sys.executable,
        }

    def roots(self, *paths: Path) -> None:
        self.env["MCP_ROOTS_PATHS"] = "\n".join(map(str, paths))
        self.env["MCP_ROOTS_COUNT"] = str(len(paths))

    def shell(self, body: str, arguments: Any = None, *, comments: str = "", is_heard: bool = True, **env: str) -> Run:
        script = self.directory / "tool.sh"
        script.write_text(f'{comments}source "${{MCP_SDK:?}}/tool-sdk.sh"\n{body}\n', encoding="utf-8")
        return self._run(["bash", str(script)], arguments, is_heard, env)

    def python(self, body: str, arguments: Any = None, *, is_heard: bool = True, **env: str) -> Run:
        script = self.directory / "tool.py"
        head = 'import os, sys\nsys.path.insert(0, os.environ["MCP_SDK"])\nimport mcp_tool\n'
        script.write_text(f"{head}{body}\n", encoding="utf-8")
        return self._run([sys.executable, "-S", str(script)], arguments, is_heard, env)

    def _run(self, command: list[str], arguments: Any, is_heard: bool, env: dict[str, str]) -> Run:
        whole_env = {**self.env, "MCP_TOOL_ARGS_JSON": json.dumps(arguments or {}), **env}
        reader, writer = os.pipe()
        lines: list[Any] = []
        with open(reader, encoding="utf-8") as stream:
            listener = threading.Thread(target=self._listen, args=(stream, lines))
            if is_heard:
                listener.start()
            else:
                stream.close()
            try:
                ended = completed(
                    ["bash", "-c", ON_97, "bench", str(writer), *command],
                    env=whole_env,
                    cwd=self.directory,
                    pass_fds=(writer,),
                    encoding=None,
                )
            finally:
                os.close(writer)
                if is_heard:
                    listener.join(timeout=120)
        return Run(
            exit_code=ended.returncode,
            stdout=ended.stdout.decode("utf-8"),
            stderr=ended.stderr.decode("utf-8"),
            lines=lines,
            error=_json_of(Path(self.env["MCP_TOOL_ERROR_FILE"])),
            resources=_json_of(Path(self.env["MCP_TOOL_RESOURCES_FILE"])),
        )

    def _listen(self, stream: TextIO, lines: list[Any]) -> None:
        """The server's part of the control pipe: keeps what it hears, and answers what it is asked."""
        for line in stream:
            message = json.loads(line)
            lines.append(message)
            if "ask" in message and self.answer:
                with open(message["reply"], "w", encoding="utf-8") as reply:
                    reply.write(self.answer(message))


def _json_of(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def failure(message: str, code: int = -32602) -> dict[str, object]:
    return {"code": code, "message": message, "data": None}


@pytest.fixture(scope="session")
def path_without_jq(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A directory with every program of PATH except those that read JSON."""
    directory = tmp_path_factory.mktemp("bin")
    for source in os.environ["PATH"].split(os.pathsep):
        for program in Path(source).glob("*") if os.path.isdir(source) else ():
            link = directory / program.name
            if program.name not in ("jq", "gojq") and not link.is_symlink():
                link.symlink_to(program)
    return str(directory)


@pytest.fixture(params=["jq", "gojq", "json-tool"])
def each(request: pytest.FixtureRequest, tmp_path: Path) -> Bench:
    """Hosts with a JSON tool, one after the other: jq, gojq, and neither, where our own has to do."""
    if request.param == OWN_TOOL.name:
        return Bench(tmp_path, str(OWN_TOOL), request.getfixturevalue("path_without_jq"))
    return Bench(tmp_path, require_program(request.param))


@pytest.fixture
def full(request: pytest.FixtureRequest, tmp_path: Path) -> Bench:
    """A host with a JSON tool. That the others understand the same is seen in test_each_json_tool.py, and, for the
    whole suite, with MCPGREEN_TEST_JSON_TOOL."""
    if OWN_TOOL.name == CHOSEN_TOOL:
        return Bench(tmp_path, ANY_TOOL, request.getfixturevalue("path_without_jq"))
    return Bench(tmp_path, ANY_TOOL)


@pytest.fixture
def minimal(tmp_path: Path) -> Bench:
    """A host without one."""
    return Bench(tmp_path, "")


@pytest.fixture
def bench(minimal: Bench) -> Bench:
    """For the Python SDK, which never needs a JSON tool."""
    return minimal


@pytest.fixture(params=["full", "minimal"])
def either(request: pytest.FixtureRequest) -> Bench:
    """With a JSON tool and without: the behaviour must not depend on it."""
    bench: Bench = request.getfixturevalue(request.param)
    return bench
