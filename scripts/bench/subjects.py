"""Who is measured: our server, two SDKs, two floors. How each is started, and why one may be missing."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bars import FLOORS, FRESH, HTTP_SDKS, OURS, SDKS, STDIO
from client import Session, SubjectError, result_of, text_of

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parent.parent
NAMES = (*FLOORS, OURS, FRESH, *SDKS)
HTTP_NAMES = (OURS, STDIO, *HTTP_SDKS)
ALL_NAMES = (*FLOORS, OURS, FRESH, STDIO, *HTTP_SDKS)


class Unavailable(Exception):
    """This subject cannot be measured here. The text says why."""


@dataclass(frozen=True)
class Subject:
    name: str
    command: tuple[str, ...]
    extra_env: Mapping[str, str] = field(default_factory=dict)
    is_peer: bool = False

    def start(self, project: Path, *, scratch: Path, more_env: Mapping[str, str] | None = None) -> Session:
        return Session(
            [*self.command, str(project)],
            env={**os.environ, **self.extra_env, **(more_env or {})},
            cwd=project,
            stderr=scratch / f"{self.name}.stderr",
        )


def subject_named(name: str, *, scratch: Path) -> Subject:
    """The subject, ready to start. Raises Unavailable."""
    if name == "floor-c":
        return Subject(name, (compiled(HERE / "floor.c", scratch / "floor"),))
    if name == "floor-py":
        return Subject(name, (sys.executable, str(HERE / "floor.py")))
    if name in (OURS, FRESH):
        path = os.pathsep.join(filter(None, (str(CHECKOUT), os.environ.get("PYTHONPATH"))))
        command = (sys.executable, "-m", "mcpgreen", "serve", "--project-root")
        # Every start is a first one, unless a workload is about the second.
        extra_env = {"PYTHONPATH": path, "MCPGREEN_LIST_CACHE": "false"}
        extra_env["MCPGREEN_WARM_PYTHON"] = "true" if name == OURS else "false"
        return Subject(name, command, extra_env=extra_env)
    package, script = {"python-sdk": ("mcp", "peer_sdk.py"), "fastmcp": ("fastmcp", "peer_fastmcp.py")}[name]
    if importlib.util.find_spec(package) is None:
        raise Unavailable(f"the package {package} is not installed")
    return Subject(name, (sys.executable, str(HERE / script)), is_peer=True)


def compiled(source: Path, program: Path) -> str:
    """The program, built. Raises Unavailable."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        raise Unavailable("no compiler")
    build = subprocess.run(
        [compiler, "-O2", "-o", str(program), str(source)], capture_output=True, text=True, check=False
    )
    if build.returncode != 0:
        raise Unavailable(f"{source.name} does not compile: {build.stderr.strip()[:200]}")
    return str(program)


def try_out(subject: Subject, project: Path, *, scratch: Path) -> None:
    """Start it once, unmeasured. Also fills the page cache and writes bytecode. Raises Unavailable."""
    try:
        with subject.start(project, scratch=scratch) as session:
            session.initialize()
            session.confirm()
            result_of(session.ask(session.encode("tools/list")))
            text_of(session.ask(session.encode_call("ok")))
    except (SubjectError, OSError) as error:
        raise Unavailable(f"does not work here: {error}") from error
