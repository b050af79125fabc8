"""Who is measured: our server, the SDKs, two floors. How each is started, why one may be missing, and its stand: the
place of one subject in the rounds.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from client import AnyServer, RunningServer, Session, text_of
from figures import FRESH, HTTP_SDKS, OURS, REDIS, STDIO, SubjectError, Unavailable

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parent.parent
TYPESCRIPT = HERE / "typescript"
QUICK_SHARE = 20
PYTHONPATH = os.pathsep.join(filter(None, (str(CHECKOUT), os.environ.get("PYTHONPATH"))))
OUR_COMMAND = (sys.executable, "-m", "mcpgreen")


def command_of(name: str, mode: str, scratch: Path) -> tuple[list[str], dict[str, str]]:
    """The command that starts a subject, up to the project, and its environment. `mode` is stdio, or how it answers
    over HTTP: json or sse. Raises Unavailable."""
    if name == "floor-c":
        return [compiled(HERE / "floor.c", scratch / "floor")], {}
    if name == "floor-py":
        return [sys.executable, str(HERE / "floor.py")], {}
    if name in (OURS, FRESH, STDIO):
        http = () if mode == "stdio" else ("--http", "127.0.0.1:0")
        env = {"PYTHONPATH": PYTHONPATH, "MCPGREEN_WARM_PYTHON": "false" if name == FRESH else "true"}
        env["XDG_STATE_HOME"] = str(scratch / "state")  # the store of tasks is there
        return [*OUR_COMMAND, "serve", *http, "--project-root"], env
    if name == "typescript-sdk":
        node = shutil.which("node")
        if node is None:
            raise Unavailable("node is not installed")
        if not (TYPESCRIPT / "node_modules").is_dir():
            raise Unavailable(f"npm ci --prefix {TYPESCRIPT.relative_to(CHECKOUT)} has not been run")
        return [node, str(TYPESCRIPT / "peer.mjs")], {"NODE_ENV": "production"}
    package = {"python-sdk": "mcp", "fastmcp": "fastmcp", REDIS: "fastmcp_tasks"}[name]
    if name == REDIS and shutil.which("redis-server") is None:
        raise Unavailable("redis-server is not installed")
    if importlib.util.find_spec(package) is None:
        raise Unavailable(f"the package {package} is not installed")
    return [sys.executable, str(HERE / "peers.py"), name, mode], {}


@cache
def compiled(source: Path, program: Path) -> str:
    """The program, built. Raises Unavailable."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        raise Unavailable("no compiler")
    build = subprocess.run([compiler, "-O2", "-o", program, source], capture_output=True, text=True, check=False)
    if build.returncode != 0:
        raise Unavailable(f"{source.name} does not compile: {build.stderr.strip()[:200]}")
    return str(program)


class Stand:
    """One subject over pipes, with a server that several workloads share within a round."""

    def __init__(self, name: str, *, scratch: Path, is_quick: bool, project: str = "calls") -> None:
        """Try the subject out, which also fills the page cache and writes bytecode. Raises Unavailable."""
        self.name = name
        self.is_quick = is_quick
        self.scratch = scratch
        self.project = project
        self._shared: RunningServer | None = None
        try:
            self.try_out()
        except (SubjectError, OSError) as error:
            raise Unavailable(f"does not work here: {error}") from error
        finally:
            self.close()

    def times(self, full: int, slow: int | None = None) -> int:
        """How often something is done. SDKs and fresh interpreters are slow: fewer times give the same medians."""
        count = slow if slow is not None and self.name in (FRESH, REDIS, *HTTP_SDKS) else full
        return max(1, count // QUICK_SHARE) if self.is_quick else count

    def folder(self, project: str) -> Path:
        return self.scratch / project

    def start(self, project: str, env: Mapping[str, str] | None = None) -> Session:
        return self.launch(Session, project, "stdio", env or {})

    def launch(self, kind: type[AnyServer], project: str, mode: str, env: Mapping[str, str]) -> AnyServer:
        command, own_env = command_of(self.name, mode, self.scratch)
        folder = self.folder(project)
        stderr = self.scratch / f"{self.name}-{time.monotonic_ns()}.stderr"
        return kind([*command, str(folder)], env={**os.environ, **own_env, **env}, cwd=folder, stderr=stderr)

    def shared(self) -> Session:
        if self._shared is None:
            self._shared = session = self.start(self.project)
            session.get_ready()
        assert isinstance(self._shared, Session)
        return self._shared

    def try_out(self) -> None:
        session = self.shared()
        text_of(session.ask(session.encode_call("ok" if self.project == "calls" else "tool0042")))

    def end_round(self) -> None:
        self.close()

    def close(self) -> None:
        if self._shared is not None:
            self._shared.close()
            self._shared = None
