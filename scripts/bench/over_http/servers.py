"""Who is measured over HTTP, how each is started and stopped, and why one may be missing."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import processes
from bars import OURS
from client import SubjectError
from subjects import CHECKOUT, HERE, Unavailable

TYPESCRIPT = HERE / "over_http" / "typescript"
READY_SECS = 30.0
EXIT_SECS = 3.0
READY = re.compile(rb"http://127\.0\.0\.1:(\d+)/mcp")


@dataclass(frozen=True)
class HttpSubject:
    """`command` comes before the project; `listen_command` where listens need another mode of the server."""

    name: str
    command: tuple[str, ...]
    listen_command: tuple[str, ...]
    extra_env: Mapping[str, str] = field(default_factory=dict)

    def start(self, project: Path, *, scratch: Path, is_for_listens: bool = False) -> Server:
        command = self.listen_command if is_for_listens else self.command
        stderr = scratch / f"{self.name}-http-{time.monotonic_ns()}.stderr"
        return Server([*command, str(project)], env={**os.environ, **self.extra_env}, cwd=project, stderr=stderr)


class Server:
    """A running server, from the moment on that it says where. Leaving it leaves no process behind."""

    def __init__(self, command: list[str], *, env: Mapping[str, str], cwd: Path, stderr: Path) -> None:
        self._stderr = stderr
        with stderr.open("wb") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                env=env,
                cwd=cwd,
                start_new_session=True,
            )
        try:
            self.port = self._await_port()
        except SubjectError:
            self.close()
            raise

    @property
    def pid(self) -> int:
        return self._process.pid

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        with processes.handles([self.pid, *processes.descendants(self.pid)]) as everybody:
            self._process.terminate()
            if not processes.wait_until_gone(everybody, timeout_secs=EXIT_SECS):
                processes.kill(everybody)
        self._process.wait()

    def _await_port(self) -> int:
        deadline = time.monotonic() + READY_SECS
        while time.monotonic() < deadline:
            said = self._stderr.read_bytes()
            if ready := READY.search(said):
                return int(ready[1])
            if self._process.poll() is not None:
                lines = said.decode("utf-8", "replace").strip().splitlines() or ["nothing on stderr"]
                raise SubjectError(f"the server ended: {lines[-1].strip()}")
            time.sleep(0.01)
        raise SubjectError(f"the server is not ready after {READY_SECS:g} s")


def http_subject_named(name: str) -> HttpSubject:
    """The subject, ready to start. Raises Unavailable."""
    command: tuple[str, ...]
    if name == OURS:
        path = os.pathsep.join(filter(None, (str(CHECKOUT), os.environ.get("PYTHONPATH"))))
        command = (sys.executable, "-m", "mcpgreen", "serve", "--http", "127.0.0.1:0", "--project-root")
        return HttpSubject(name, command, command, extra_env={"PYTHONPATH": path})
    if name == "typescript-sdk":
        node = shutil.which("node")
        if node is None:
            raise Unavailable("node is not installed")
        if not (TYPESCRIPT / "node_modules").is_dir():
            raise Unavailable(f"npm ci --prefix {TYPESCRIPT.relative_to(CHECKOUT)} has not been run")
        command = (node, str(TYPESCRIPT / "peer.mjs"))
        return HttpSubject(name, command, command, extra_env={"NODE_ENV": "production"})
    package, module = {"python-sdk": ("mcp", "peer_sdk"), "fastmcp": ("fastmcp", "peer_fastmcp")}[name]
    if importlib.util.find_spec(package) is None:
        raise Unavailable(f"the package {package} is not installed")
    command = (sys.executable, "-m", f"over_http.{module}")
    return HttpSubject(name, (*command, "json"), (*command, "sse"), extra_env={"PYTHONPATH": str(HERE)})
